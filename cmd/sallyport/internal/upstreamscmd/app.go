// Package upstreamscmd has the verbs that list, add, remove, try, review and log in to upstreams.
package upstreamscmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
