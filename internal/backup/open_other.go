//go:build !unix

package backup

import "os"

// openPlain opens a file for reading.
func openPlain(root *os.Root, name string) (*os.File, error) { return root.Open(name) }
