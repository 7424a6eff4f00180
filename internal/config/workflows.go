package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"sallyport/internal/strict"

	"gopkg.in/yaml.v3"
)

// Workflows says where workflows are, and what their runs may use.
type Workflows struct {
	// Path is the folder of the definitions, absolute; default "workflows" beside the file. It need not be there.
	Path string
	// Secrets sign the requests of webhooks, by the names that definitions have for them. Those whose references have no
	// value are left out.
	Secrets Secrets
	// Keep is how long a run is kept after its end; default 30 days.
	Keep time.Duration
	// Runs is how many go on at once, more wait for their turn; default 64.
	Runs int
	// Problem says which references in Secrets have no value; "" if all have one.
	Problem string
}

func defaultWorkflows() Workflows { return Workflows{Keep: 30 * 24 * time.Hour, Runs: 64} }

// minSigning keeps the secret of a webhook from being guessed.
const minSigning = 16

// secretName is what a definition can call a secret.
var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

func (d *decoder) workflows(at path, n *yaml.Node, w *Workflows) {
	d.Fields(at, n, []key{
		{"path", d.path(&w.Path)},
		{"secrets", func(at path, n *yaml.Node) { d.signing(at, n, w) }},
		{"keep", scalar(d, &w.Keep, strict.Age)},
		{"runs", scalar(d, &w.Runs, strict.Count)},
	})
}

// signing reads the secrets. One without a value is missed by its webhook, and by nobody else.
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
