package config

import "sallyport/internal/bytesize"

// Size is a number of bytes, never negative in a valid Config.
type Size = bytesize.Size

// The units that a size can be written in, besides "B".
const (
	KiB = bytesize.KiB
	MiB = bytesize.MiB
	GiB = bytesize.GiB
	TiB = bytesize.TiB
)

// ParseSize is [bytesize.Parse].
func ParseSize(text string) (Size, error) { return bytesize.Parse(text) }
