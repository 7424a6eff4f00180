package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Workflows says where workflows are, and what their runs may use.
type Workflows struct {
	// Path is the folder of the definitions, absolute; default "workflows" next to the file. It need not be there.
	Path string
	// Secrets sign the requests of webhooks, by the names that definitions have for them. Those whose references have no
	// value are left out.
	Secrets Secrets
	// Keep is how long a run is kept after its end; default 30 days.
	Keep time.Duration
	// Runs is how many go on at once, more wait for their turn; default 64.
	Runs int
	// Limits bound each run.
	Limits RunLimits
	// Problem says which references in Secrets have no value; "" if all have one.
	Problem string
}

// RunLimits bound one run of a workflow: those that it nests and the runs that its steps start count for it too.
type RunLimits struct {
	// Items is how many passes its loops (for_each, while) make, all together; default 10000.
	Items int
	// Steps is how many steps it makes, and makes again; default 100000.
	Steps int
	// Bytes is how large its log becomes; default 64MiB.
	Bytes Size
	// Time is how long it continues, without the time that it waits; default 1d.
	Time time.Duration
}

func defaultWorkflows() Workflows {
	return Workflows{Keep: 30 * 24 * time.Hour, Runs: 64, Limits: RunLimits{Items: 10_000, Steps: 100_000, Bytes: 64 * MiB, Time: 24 * time.Hour}}
}

// minSigning keeps the secret of a webhook from being guessed.
const minSigning = 16

// secretName is what a definition can call a secret.
var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

func (d *decoder) workflows(at path, n *yaml.Node, w *Workflows) {
	d.Fields(at, n, []key{
		{"path", d.path(&w.Path)},
		{"secrets", func(at path, n *yaml.Node) { d.signing(at, n, w) }},
		{"keep", scalar(d, &w.Keep, yamlstrict.Age)},
		{"runs", scalar(d, &w.Runs, yamlstrict.Count)},
		{"limits", func(at path, n *yaml.Node) { d.runLimits(at, n, &w.Limits) }},
	})
}

func (d *decoder) runLimits(at path, n *yaml.Node, l *RunLimits) {
	d.Fields(at, n, []key{
		{"items", scalar(d, &l.Items, yamlstrict.Count)},
		{"steps", scalar(d, &l.Steps, yamlstrict.Count)},
		{"bytes", scalar(d, &l.Bytes, parseSize)},
		{"time", scalar(d, &l.Time, yamlstrict.Age)},
	})
}

// signing reads the secrets. One without a value affects its webhook only.
func (d *decoder) signing(at path, n *yaml.Node, w *Workflows) {
	d.excused = func(_ path, _ *yaml.Node, b badReference) { w.Problem = withProblem(w.Problem, b.message) }
	defer func() { d.excused = nil }()
	d.secrets(&w.Secrets)(at, n)
	maps.DeleteFunc(w.Secrets, func(name, _ string) bool { return d.Bad(at.To(name)) })
}

// within fills in what depends on where the file is.
func (w *Workflows) within(dir string) {
	if w.Path == "" && dir != "" {
		w.Path = filepath.Join(dir, "workflows")
	}
}

func (w Workflows) problems(at path) []problem {
	all := slices.Concat(
		between(at.To("keep"), w.Keep, time.Hour, 3650*24*time.Hour),
		between(at.To("runs"), w.Runs, 1, 1024),
		w.Limits.problems(at.To("limits")),
	)
	for _, name := range sortedKeys(w.Secrets) {
		under := at.To("secrets").To(name)
		switch {
		case !secretName.MatchString(name):
			all = append(all, problem{at: under, onKey: true, message: `a secret's name is a letter, then letters, digits, "_" and "-"`})
		case len(w.Secrets[name]) < minSigning:
			all = append(all, problem{at: under, message: fmt.Sprintf("secret %.40q is shorter than %d characters; make one with: openssl rand -hex 32", name, minSigning)})
		}
	}
	return all
}

func (l RunLimits) problems(at path) []problem {
	return slices.Concat(
		between(at.To("items"), l.Items, 1, 1_000_000),
		between(at.To("steps"), l.Steps, 1, 1_000_000),
		between(at.To("bytes"), l.Bytes, MiB, 384*MiB),
		between(at.To("time"), l.Time, time.Second, 366*24*time.Hour),
	)
}
