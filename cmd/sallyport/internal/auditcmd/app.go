// Package auditcmd has the verbs that show what happened: executions, explain and log.
package auditcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
