// Package clientscmd has the verbs that read and write the settings of MCP clients: import and install.
package clientscmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
