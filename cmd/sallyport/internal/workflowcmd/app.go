// Package workflowcmd has the verbs of sallyport workflow: definitions are listed, checked and tried out, runs are started, watched, answered and ended.
package workflowcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
