package config

import (
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/yamlstrict"
)

// Records configures the records of executions.
type Records struct {
	// Output is how much of the stdout, of the stderr and of the value of a program its record keeps, each from its beginning, with
	// tokens in place of personal data; 0 keeps none. Default 64KiB.
	Output Size
	// Keep is how long a record is kept; default 30d. There are at most 100,000 records, of 256 MiB.
	Keep time.Duration
}

func defaultRecords() Records { return Records{Output: 64 * KiB, Keep: 30 * 24 * time.Hour} }

// recordsDecoder decodes the key records.
type recordsDecoder struct{ *decoder }

func (d recordsDecoder) records(at path, n *yaml.Node, r *Records) {
	d.Fields(at, n, []key{
		{"output", scalar(d.decoder, &r.Output, parseSize)},
		{"keep", scalar(d.decoder, &r.Keep, yamlstrict.Age)},
	})
}

func (r Records) problems(at path) []problem {
	return slices.Concat(
		between(at.To("output"), r.Output, 0, MiB),
		between(at.To("keep"), r.Keep, time.Hour, 3650*24*time.Hour),
	)
}
