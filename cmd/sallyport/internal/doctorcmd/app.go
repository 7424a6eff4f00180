// Package doctorcmd has sallyport doctor, which checks what programs and upstreams need.
package doctorcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
