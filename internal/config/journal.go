package config

import (
	"slices"
	"time"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Journal configures the journals, by which executions can be resumed.
type Journal struct {
	// Keep is how long the calls and results of a failed program are kept; default 24h. With 0 no results are kept and
	// nothing can be resumed.
	Keep time.Duration
	// Size bounds all journals on the disk; default 256MiB. The oldest are removed.
	Size Size
	// Successes also keeps journals of successful programs, with the arguments of calls, to create workflows from them; default true.
	// They are removed first when the size is exceeded.
	Successes bool
	// Sync syncs a call to the disk before it is sent, unless its tool is read-only or idempotent, so that after a power failure it is
	// known that the call may have been done; default true.
	Sync bool
}

func defaultJournal() Journal {
	return Journal{Keep: 24 * time.Hour, Size: 256 * MiB, Successes: true, Sync: true}
}

func (d *decoder) journal(at path, n *yaml.Node, j *Journal) {
	d.Fields(at, n, []key{
		{"keep", scalar(d, &j.Keep, yamlstrict.Duration)},
		{"size", scalar(d, &j.Size, parseSize)},
		{"successes", scalar(d, &j.Successes, yamlstrict.Bool)},
		{"sync", scalar(d, &j.Sync, yamlstrict.Bool)},
	})
}

func (j Journal) problems(at path) []problem {
	return slices.Concat(
		between(at.To("keep"), j.Keep, 0, 30*24*time.Hour),
		between(at.To("size"), j.Size, MiB, TiB),
	)
}
