// Package environmentscmd has the verb that shows and removes the images and packages of environments.
package environmentscmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
