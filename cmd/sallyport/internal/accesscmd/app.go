// Package accesscmd has the verbs for access control: approvals, policy and token.
package accesscmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
