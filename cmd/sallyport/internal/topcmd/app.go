// Package topcmd has sallyport top, which shows what the gateways of a data directory do.
package topcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
