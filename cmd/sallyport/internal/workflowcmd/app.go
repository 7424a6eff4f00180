// Package workflowcmd has the verbs of sallyport workflow: they list, check and test definitions, and start, watch, answer and end runs.
package workflowcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
