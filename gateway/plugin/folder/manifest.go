// Package folder reads the folders of plugins: the manifest, plugin.yaml, the files with the code, and the lock file with
// the digests that a person has reviewed. Its main type is [Plugin]. It runs nothing.
package folder

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/pii"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// ManifestName is the name of the manifest in the folder of a plugin.
const ManifestName = "plugin.yaml"

// Manifest says what a plugin offers, and what it may use. It must not be modified.
type Manifest struct {
	// Name is the name of the folder, and the id of the upstream with its tools.
	Name        string
	Version     string
	Description string
	// Entry is the file with its functions: main.py or main.ts.
	Entry string
	// Tools are functions that become tools; ReadOnly are those of them that change nothing.
	Tools, ReadOnly []string
	// Steps are functions for workflows.
	Steps       []string
	Hooks       []Hook
	Recognizers []Recognizer
	Checks      []Check
	Renderers   []Renderer
	// Hosts are the hosts that it asks to reach over https, Secrets the names of secrets, Files the names of files or folders
	// of the machine, at /files/NAME in its sandbox.
	Hosts, Secrets, Files []string
	// Timeout bounds one call of a function; default 10s.
	Timeout time.Duration
	// Memory bounds its sandbox, in bytes; default 256MiB.
	Memory config.Size
}

// Hook is a function that is called before or after the calls of some tools.
type Hook struct {
	// Tools are globs over upstream.tool, as of path.Match. After says that it gets the result.
	Tools []string
	After bool
	Run   string
	// Pass lets calls pass that the hook cannot judge; default they are refused.
	Pass bool
}

// Recognizer is a function that finds personal data of a kind in a text.
type Recognizer struct{ Kind, Run string }

// Check is a function that judges programs before they run.
type Check struct {
	Run string
	// Languages are python and typescript; empty is both.
	Languages []string
}

// Renderer is a function that shows results of some tools.
type Renderer struct {
	Tools []string
	Run   string
}

// The limits of a manifest.
const (
	maxDescription = 200
	maxList        = 64
	minTimeout     = 100 * time.Millisecond
	maxTimeout     = 10 * time.Minute
	minMemory      = 64 * config.MiB
	maxMemory      = 2 * config.GiB
)

var (
	functionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	versionText  = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,31}$`)
	fileName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	secretName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	hostName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:[0-9]{1,5})?$`)
)

// ParseManifest parses a manifest. path names it in errors, which are *[yamlstrict.Error]s with line and column.
func ParseManifest(path string, data []byte) (Manifest, error) {
	src := yamlstrict.NewSource(path, data)
	root, err := src.Document(`is empty; it needs at least the keys "name" and "version"`)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Timeout: 10 * time.Second, Memory: 256 * config.MiB}
	d := decoder{&yamlstrict.Decoder{Source: src}}
	d.manifest(root, &m)
	if err := d.Err(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

type decoder struct{ *yamlstrict.Decoder }

type (
	atPath = yamlstrict.Path
	key    = yamlstrict.Key
)

func (d decoder) manifest(n *yaml.Node, m *Manifest) {
	seen := d.Fields(atPath{}, n, []key{
		{"name", d.name(&m.Name)},
		{"version", d.matching(&m.Version, versionText, "a version, as 1.0.0")},
		{"description", d.Text(&m.Description)},
		{"entry", d.OneOf(&m.Entry, "main.py", "main.ts")},
		{"tools", d.functions(&m.Tools)},
		{"read_only", d.functions(&m.ReadOnly)},
		{"steps", d.functions(&m.Steps)},
		{"hooks", func(at atPath, n *yaml.Node) { m.Hooks = yamlstrict.List(d.Decoder, at, n, d.hook) }},
		{"recognizers", func(at atPath, n *yaml.Node) { m.Recognizers = yamlstrict.List(d.Decoder, at, n, d.recognizer) }},
		{"checks", func(at atPath, n *yaml.Node) { m.Checks = yamlstrict.List(d.Decoder, at, n, d.check) }},
		{"renderers", func(at atPath, n *yaml.Node) { m.Renderers = yamlstrict.List(d.Decoder, at, n, d.renderer) }},
		{"hosts", d.list(&m.Hosts, hostName, "a host, as api.example.com or api.example.com:8443")},
		{"secrets", d.list(&m.Secrets, secretName, "the name of a secret: a letter, then letters, digits and _")},
		{"files", d.list(&m.Files, fileName, "the name that the file gets below /files")},
		{"timeout", yamlstrict.Scalar(d.Decoder, &m.Timeout, yamlstrict.Duration)},
		{"memory", yamlstrict.Scalar(d.Decoder, &m.Memory, parseSize)},
	})
	for _, name := range []string{"name", "version"} {
		if n.Kind == yaml.MappingNode && !seen[name] && !d.Bad(atPath{}.Unknown()) {
			d.Fail(atPath{}, n, "the key %q is missing", name)
		}
	}
	d.limits(m)
	d.readOnly(m)
	if n.Kind == yaml.MappingNode && d.Faults() == 0 && len(m.Functions()) == 0 {
		d.Fail(atPath{}, n, "the plugin offers nothing; it needs one of tools, hooks, recognizers, checks, steps, renderers")
	}
}

// limits rejects values out of their range.
func (d decoder) limits(m *Manifest) {
	if m.Timeout < minTimeout || m.Timeout > maxTimeout {
		d.failKey("timeout", "timeout must be from %v to %v", minTimeout, maxTimeout)
	}
	if m.Memory < minMemory || m.Memory > maxMemory {
		d.failKey("memory", "memory must be from %v to %v", minMemory, maxMemory)
	}
	if m.Description != sanitize.Line(m.Description, maxDescription) {
		d.failKey("description", "description is one line of at most %d characters", maxDescription)
	}
}

func (d decoder) readOnly(m *Manifest) {
	for _, name := range m.ReadOnly {
		if !slices.Contains(m.Tools, name) {
			d.failKey("read_only", "%q is not in tools", name)
		}
	}
}

// failKey records a fault of a key of the manifest, unless the key has one.
func (d decoder) failKey(name, format string, args ...any) {
	if place, ok := d.Place(atPath{name}); ok && !d.Bad(atPath{name}) {
		d.Fail(atPath{name}, place.Value, format, args...)
	}
}

func (d decoder) hook(at atPath, n *yaml.Node, h *Hook) {
	var before, after []string
	failure := "deny"
	seen := d.Fields(at, n, []key{
		{"before", d.patterns(&before)},
		{"after", d.patterns(&after)},
		{"run", d.function(&h.Run)},
		{"on_failure", d.OneOf(&failure, "deny", "pass")},
	})
	if n.Kind == yaml.MappingNode && seen["before"] == seen["after"] && !d.Bad(at.Unknown()) {
		d.Fail(at, n, `a hook has one of "before" and "after", with patterns of tools`)
	}
	h.Tools, h.After, h.Pass = append(before, after...), seen["after"], failure == "pass"
	d.needs(at, n, seen, "run")
}

func (d decoder) recognizer(at atPath, n *yaml.Node, r *Recognizer) {
	seen := d.Fields(at, n, []key{
		{"kind", func(at atPath, n *yaml.Node) {
			if d.Text(&r.Kind)(at, n); !d.Bad(at) && pii.CheckName(r.Kind) != "" {
				d.Fail(at, n, "%s", pii.CheckName(r.Kind))
			}
		}},
		{"run", d.function(&r.Run)},
	})
	d.needs(at, n, seen, "kind", "run")
}

func (d decoder) check(at atPath, n *yaml.Node, c *Check) {
	seen := d.Fields(at, n, []key{
		{"run", d.function(&c.Run)},
		{"languages", func(at atPath, n *yaml.Node) {
			c.Languages = yamlstrict.List(d.Decoder, at, n, func(at atPath, n *yaml.Node, word *string) { d.OneOf(word, "python", "typescript")(at, n) })
		}},
	})
	d.needs(at, n, seen, "run")
}

func (d decoder) renderer(at atPath, n *yaml.Node, r *Renderer) {
	seen := d.Fields(at, n, []key{{"tools", d.patterns(&r.Tools)}, {"run", d.function(&r.Run)}})
	d.needs(at, n, seen, "tools", "run")
}

// needs rejects a mapping without some of its keys.
func (d decoder) needs(at atPath, n *yaml.Node, seen map[string]bool, names ...string) {
	for _, name := range names {
		if n.Kind == yaml.MappingNode && !seen[name] && !d.Bad(at.Unknown()) {
			d.Fail(at, n, "the key %q is missing", name)
		}
	}
}

// name reads the name of a plugin.
func (d decoder) name(into *string) yamlstrict.Reader {
	return func(at atPath, n *yaml.Node) {
		if d.Text(into)(at, n); !d.Bad(at) && !ValidName(*into) {
			d.Fail(at, n, `%.40q cannot name a plugin: small letters, digits and "_", first a letter, at most 40`, *into)
		}
	}
}

// ValidName reports whether a plugin can have a name.
func ValidName(name string) bool {
	return len(name) <= 40 && functionName.MatchString(name) && strings.ToLower(name) == name && tool.Identifier(name) == name
}

func (d decoder) matching(into *string, re *regexp.Regexp, what string) yamlstrict.Reader {
	return func(at atPath, n *yaml.Node) {
		if d.Text(into)(at, n); !d.Bad(at) && !re.MatchString(*into) {
			d.Fail(at, n, "%.60q is not %s", *into, what)
		}
	}
}

func (d decoder) function(into *string) yamlstrict.Reader {
	return d.matching(into, functionName, "the name of a function: a letter, then letters, digits and _")
}

func (d decoder) functions(into *[]string) yamlstrict.Reader {
	return d.list(into, functionName, "the name of a function: a letter, then letters, digits and _")
}

// list reads a list of different texts.
func (d decoder) list(into *[]string, re *regexp.Regexp, what string) yamlstrict.Reader {
	return func(at atPath, n *yaml.Node) {
		known := map[string]bool{}
		*into = yamlstrict.List(d.Decoder, at, n, func(at atPath, n *yaml.Node, text *string) {
			if d.matching(text, re, what)(at, n); known[*text] && !d.Bad(at) {
				d.Fail(at, n, "%.60q is listed twice", *text)
			}
			known[*text] = true
		})
		if len(*into) > maxList {
			d.Fail(at, n, "a list has at most %d items", maxList)
		}
	}
}

// patterns reads globs over tools.
func (d decoder) patterns(into *[]string) yamlstrict.Reader {
	return func(at atPath, n *yaml.Node) {
		*into = yamlstrict.List(d.Decoder, at, n, func(at atPath, n *yaml.Node, text *string) {
			d.Text(text)(at, n)
			_, err := path.Match(*text, "")
			if up, name, ok := strings.Cut(*text, "."); !d.Bad(at) && (err != nil || !ok || up == "" || name == "" || len(*text) > 200 || strings.ContainsAny(*text, " \"\n")) {
				d.Fail(at, n, "%.60q is not a pattern of tools; write upstream.tool, with * for any text, as in crm.* or *.delete_*", *text)
			}
		})
		if len(*into) == 0 || len(*into) > maxList {
			d.Fail(at, n, "it needs from 1 to %d patterns of tools", maxList)
		}
	}
}

func parseSize(n *yaml.Node) (config.Size, string) {
	size, err := config.ParseSize(n.Value)
	if err != nil {
		return 0, err.Error()
	}
	return size, ""
}

// Functions returns all functions that the manifest names, sorted.
func (m *Manifest) Functions() []string {
	all := map[string]bool{}
	add := func(name string) { all[name] = true }
	for _, name := range slices.Concat(m.Tools, m.Steps) {
		add(name)
	}
	for _, h := range m.Hooks {
		add(h.Run)
	}
	for _, r := range m.Recognizers {
		add(r.Run)
	}
	for _, c := range m.Checks {
		add(c.Run)
	}
	for _, r := range m.Renderers {
		add(r.Run)
	}
	return slices.Sorted(maps.Keys(all))
}

// What a plugin guards besides calls: programs by its checks, results by its recognizers.
const (
	GuardsPrograms = "programs"
	GuardsResults  = "results"
)

// Guards returns what is refused while the plugin does not run, sorted: patterns of tools, GuardsPrograms, GuardsResults.
func (m *Manifest) Guards() []string {
	var all []string
	if len(m.Checks) > 0 {
		all = append(all, GuardsPrograms)
	}
	if len(m.Recognizers) > 0 {
		all = append(all, GuardsResults)
	}
	for _, h := range m.Hooks {
		if !h.Pass {
			all = append(all, h.Tools...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Offers returns what the plugin offers, in words: "2 tools", "a hook before crm.*".
func (m *Manifest) Offers() (lines []string) {
	add := func(what string, names []string) {
		if len(names) > 0 {
			lines = append(lines, what+" "+strings.Join(names, ", "))
		}
	}
	add("tools", m.Tools)
	for _, h := range m.Hooks {
		when, failure := "before", "refused"
		if h.After {
			when = "after"
		}
		if h.Pass {
			failure = "passed"
		}
		lines = append(lines, fmt.Sprintf("a hook %s %s (%s; calls are %s if it fails)", when, strings.Join(h.Tools, ", "), h.Run, failure))
	}
	for _, r := range m.Recognizers {
		lines = append(lines, fmt.Sprintf("a recognizer of %s (%s)", r.Kind, r.Run))
	}
	for _, c := range m.Checks {
		lines = append(lines, strings.TrimSpace("a check of programs "+strings.Join(c.Languages, ", "))+" ("+c.Run+")")
	}
	add("steps", m.Steps)
	for _, r := range m.Renderers {
		lines = append(lines, fmt.Sprintf("a renderer of %s (%s)", strings.Join(r.Tools, ", "), r.Run))
	}
	return lines
}

// Asks returns what the plugin asks for, in words; none if it asks for nothing.
func (m *Manifest) Asks() (lines []string) {
	for _, h := range m.Hosts {
		lines = append(lines, "host "+h)
	}
	for _, s := range m.Secrets {
		lines = append(lines, "secret "+s)
	}
	for _, f := range m.Files {
		lines = append(lines, "file "+f)
	}
	return lines
}
