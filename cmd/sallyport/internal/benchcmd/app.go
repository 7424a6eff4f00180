// Package benchcmd has the verbs of sallyport bench, which measure tokens, times and models with the upstreams of the settings.
package benchcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
