// Package initcmd has the verbs for a new user: init, which writes the first settings step by step, and try, which runs
// programs against sample servers without any settings. The sample servers are this binary, by a hidden verb.
package initcmd

import "sallyport/cmd/sallyport/internal/cli"

// app has the verbs of this package.
type app struct{ *cli.App }
