// Package server has the verbs that run or open a server: serve, worker and dashboard.
package server

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
