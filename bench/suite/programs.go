package suite

import "embed"

//go:embed programs
var programs embed.FS
