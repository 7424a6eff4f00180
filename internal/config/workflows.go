package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Workflows configures workflows and the limits of their runs.
type Workflows struct {
	// Path is the absolute folder of the definitions; default "workflows" next to the file. It need not exist.
	Path string
	// Secrets are the signing secrets of webhooks, by their names in definitions. Those with a reference without a value
	// are omitted.
	Secrets Secrets
	// Keep is how long a run is kept after its end; default 30 days.
	Keep time.Duration
	// Runs bounds concurrent runs. More wait in a queue; default 64.
	Runs int
	// Limits bound each run.
	Limits RunLimits
	// Problem describes references in Secrets without a value; "" if all have one.
	Problem string
}

// RunLimits bound one run of a workflow, including nested workflows and the runs that its steps start.
type RunLimits struct {
	// Items bounds the passes of all loops (for_each, while) of a run together; default 10000.
	Items int
	// Steps bounds the steps of a run, including retries; default 100000.
	Steps int
	// Bytes bounds the log of a run; default 64MiB.
	Bytes Size
	// Time bounds the duration of a run, without waiting times; default 1d.
	Time time.Duration
}

func defaultWorkflows() Workflows {
	return Workflows{Keep: 30 * 24 * time.Hour, Runs: 64, Limits: RunLimits{Items: 10_000, Steps: 100_000, Bytes: 64 * MiB, Time: 24 * time.Hour}}
}

// minSigningSecret is the least length of a webhook's secret, against guessing.
const minSigningSecret = 16

// secretName matches the names of secrets in definitions.
var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

func (d *decoder) workflows(at path, n *yaml.Node, w *Workflows) {
	d.Fields(at, n, []key{
		{"path", d.path(&w.Path)},
		{"secrets", func(at path, n *yaml.Node) { d.signingSecrets(at, n, w) }},
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

// signingSecrets reads the secrets. A secret without a value affects its webhook only.
func (d *decoder) signingSecrets(at path, n *yaml.Node, w *Workflows) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { w.Problem = withProblem(w.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.secrets(&w.Secrets)(at, n)
	maps.DeleteFunc(w.Secrets, func(name, _ string) bool { return d.Bad(at.To(name)) })
}

// setDefaultPath sets the default of Path, which depends on the directory of the file.
func (w *Workflows) setDefaultPath(dir string) {
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
		case len(w.Secrets[name]) < minSigningSecret && !isPlaceholder(w.Secrets[name]):
			all = append(all, problem{at: under, message: fmt.Sprintf("secret %.40q is shorter than %d characters; make one with: openssl rand -hex 32", name, minSigningSecret)})
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
