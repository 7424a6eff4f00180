// Package vmcmd has sallyport vm, which runs a worker in a Linux virtual machine of Lima (macOS) or WSL (Windows).
package vmcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
