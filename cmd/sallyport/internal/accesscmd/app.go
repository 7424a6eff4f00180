// Package accesscmd has the verbs that say who may do what: approvals, policy and token.
package accesscmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
