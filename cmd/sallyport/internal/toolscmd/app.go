// Package toolscmd has the verbs for the tools of the upstreams: search, tools, call and generate.
package toolscmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
