package config

import (
	"slices"
	"time"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Journal says how long what programs did can be continued.
type Journal struct {
	// Keep is how long the calls and results of a program are kept that did not end well; default 24h. 0 keeps no results:
	// nothing can be resumed.
	Keep time.Duration
	// Size is how much all of them take on the disk, the oldest go; default 256MiB.
	Size Size
	// Successes keeps those of programs, too, that ended well, with the arguments of calls: a workflow can be made of them; default true.
	// They go first where room is needed.
	Successes bool
	// Sync has a call on the disk before it leaves, unless its tool only reads or is idempotent, so that after a loss of power, too, it is
	// known that it may have been done; default true.
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
