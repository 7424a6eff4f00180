package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/internal/nearest"
	"sallyport/internal/tool"

	"gopkg.in/yaml.v3"
)

// decoder walks the nodes of a file into a Config and collects what is wrong.
type decoder struct {
	src    *source
	dir    string
	getenv func(string) (string, bool)
	faults []fault
	// places says where a path stands in the file, bad which paths have a fault.
	places map[string]place
	bad    map[string]bool
	// lenient is true inside a disabled upstream, whose variables may be unset.
	lenient bool
}

type place struct{ key, value *yaml.Node }

// reader reads the value at a path.
type reader func(at path, n *yaml.Node)

// key is one key that a mapping may have.
type key struct {
	name string
	read reader
}

func (d *decoder) config(n *yaml.Node, c *Config) {
	seen := d.fields(path{}, n, []key{
		{"upstreams", func(at path, n *yaml.Node) { d.upstreams(at, n, c) }},
		{"sandbox", func(at path, n *yaml.Node) { d.sandbox(at, n, &c.Sandbox) }},
	})
	if n.Kind == yaml.MappingNode && !seen["upstreams"] && !d.bad[path{}.unknown().key()] {
		d.fail(path{}, n, `the key "upstreams" is missing`)
	}
}

func (d *decoder) upstreams(at path, n *yaml.Node, c *Config) {
	d.each(at, n, func(at path, key, value *yaml.Node) {
		u := defaultUpstream(d.dir)
		u.Name, u.ID = key.Value, tool.Identifier(key.Value)
		d.upstream(at, value, &u)
		c.Upstreams = append(c.Upstreams, u)
	})
}

func (d *decoder) upstream(at path, n *yaml.Node, u *Upstream) {
	d.lenient = disabled(n)
	defer func() { d.lenient = false }()
	seen := d.fields(at, n, []key{
		{"description", d.text(&u.Description)},
		{"command", d.text(&u.Command)},
		{"args", d.texts(&u.Args)},
		{"env", d.secrets(&u.Env)},
		{"cwd", d.path(&u.Dir)},
		{"url", d.text(&u.URL)},
		{"headers", d.secrets(&u.Headers)},
		{"timeout", scalar(d, &u.Timeout, parseDuration)},
		{"disabled", scalar(d, &u.Disabled, parseBool)},
	})
	if seen["url"] && !seen["cwd"] {
		u.Dir = ""
	}
}

func (d *decoder) sandbox(at path, n *yaml.Node, s *Sandbox) {
	d.fields(at, n, []key{
		{"timeout", scalar(d, &s.Timeout, parseDuration)},
		{"memory", scalar(d, &s.Memory, parseSize)},
		{"processes", scalar(d, &s.Processes, parseCount)},
		{"open_files", scalar(d, &s.OpenFiles, parseCount)},
		{"workspace", scalar(d, &s.Workspace, parseSize)},
		{"output", scalar(d, &s.Output, parseSize)},
		{"calls", scalar(d, &s.Calls, parseCount)},
		{"concurrency", scalar(d, &s.Concurrency, parseCount)},
		{"runsc", d.program(&s.Runsc)},
		{"python", d.program(&s.Python)},
		{"node", d.program(&s.Node)},
	})
}

// disabled looks ahead, for the key may stand below what it is about.
func disabled(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "disabled" {
			on, err := parseBool(n.Content[i+1])
			return err == "" && on
		}
	}
	return false
}

// fields reads a mapping of known keys and returns those that it has.
func (d *decoder) fields(at path, n *yaml.Node, keys []key) map[string]bool {
	seen := map[string]bool{}
	d.each(at, n, func(under path, key, value *yaml.Node) {
		seen[key.Value] = true
		for _, k := range keys {
			if k.name == key.Value {
				k.read(under, value)
				return
			}
		}
		d.fail(at.unknown(), key, "unknown key %.40q; %s", key.Value, suggest(key.Value, keys))
	})
	return seen
}

// suggest says which key was meant, or which there are.
func suggest(word string, keys []key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
		if k.name == elsewhere(word) {
			return fmt.Sprintf("did you mean %q?", k.name)
		}
	}
	if meant := nearest.Of(word, names); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	return "the keys here are " + strings.Join(names, ", ")
}

// elsewhere translates what other programs call our keys.
func elsewhere(word string) string {
	switch word {
	case "mcpServers", "servers":
		return "upstreams"
	case "environment":
		return "env"
	case "dir", "workdir", "workingDirectory":
		return "cwd"
	case "endpoint":
		return "url"
	}
	return ""
}

// each reads a mapping and gives every key that is a string and is there once.
func (d *decoder) each(at path, n *yaml.Node, read func(at path, key, value *yaml.Node)) {
	if !d.allowed(at, n) || !d.kind(at, n, yaml.MappingNode, "a mapping") {
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content) && !d.full(); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !d.allowedKey(at, key) {
			continue
		}
		if line := lines[key.Value]; line > 0 {
			d.fail(at.unknown(), key, "the key %.40q is here already, on line %d", key.Value, line)
			continue
		}
		lines[key.Value] = key.Line
		under := at.to(key.Value)
		d.places[under.key()] = place{key, value}
		read(under, key, value)
	}
}

func (d *decoder) allowedKey(at path, key *yaml.Node) bool {
	switch {
	case key.Tag == "!!merge":
		d.fail(at.unknown(), key, "merge keys are not supported; write the keys out")
	case !d.allowed(at.unknown(), key):
	case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
		d.fail(at.unknown(), key, "a key must be a string, not %s; put it in quotes", describe(key))
	default:
		return true
	}
	return false
}

// allowed refuses what YAML has and this file does not need.
func (d *decoder) allowed(at path, n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(at, n, "aliases are not supported; write the value out")
	case n.Anchor != "":
		d.fail(at, n, "anchors are not supported; write the value wherever it is needed")
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(at, n, "tags such as %.40q are not supported", n.Tag)
	default:
		return true
	}
	return false
}

func (d *decoder) kind(at path, n *yaml.Node, kind yaml.Kind, want string) bool {
	switch {
	case n.Kind == kind && n.Tag != "!!null":
		return true
	case n.Tag == "!!null":
		d.fail(at, n, "%s has no value; %s", at.label(), whenEmpty(kind))
	default:
		d.fail(at, n, "%s must be %s, not %s", at.label(), want, describe(n))
	}
	return false
}

func whenEmpty(kind yaml.Kind) string {
	switch kind {
	case yaml.MappingNode:
		return "write {} for an empty mapping"
	case yaml.SequenceNode:
		return "write [] for an empty list"
	}
	return "write a value, or remove the key"
}

func (d *decoder) text(into *string) reader {
	return func(at path, n *yaml.Node) {
		if d.isText(at, n) {
			*into = d.expand(at, n)
		}
	}
}

func (d *decoder) texts(into *[]string) reader {
	return func(at path, n *yaml.Node) {
		if !d.allowed(at, n) || !d.kind(at, n, yaml.SequenceNode, "a list of strings") {
			return
		}
		*into = make([]string, len(n.Content))
		for i, item := range n.Content {
			if d.full() {
				return
			}
			under := at.item(i)
			d.places[under.key()] = place{item, item}
			d.text(&(*into)[i])(under, item)
		}
	}
}

func (d *decoder) secrets(into *Secrets) reader {
	return func(at path, n *yaml.Node) {
		*into = Secrets{}
		d.each(at, n, func(under path, key, value *yaml.Node) {
			var text string
			d.text(&text)(under, value)
			(*into)[key.Value] = text
		})
	}
}

// path reads a path that starts at the file's directory.
func (d *decoder) path(into *string) reader {
	return func(at path, n *yaml.Node) {
		var text string
		if d.text(&text)(at, n); text != "" {
			*into = absolute(d.dir, text)
		}
	}
}

// program reads a path too, but leaves a bare name to be looked up.
func (d *decoder) program(into *string) reader {
	return func(at path, n *yaml.Node) {
		d.text(into)(at, n)
		if strings.ContainsRune(*into, filepath.Separator) {
			*into = absolute(d.dir, *into)
		}
	}
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func (d *decoder) isText(at path, n *yaml.Node) bool {
	if !d.allowed(at, n) {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!str" && n.Tag != "!!null" {
		d.fail(at, n, "%s must be a string, not %s; put it in quotes", at.label(), describe(n))
		return false
	}
	return d.kind(at, n, yaml.ScalarNode, "a string")
}

// scalar reads a value with parse, which returns what is wrong with it or "".
func scalar[T any](d *decoder, into *T, parse func(*yaml.Node) (T, string)) reader {
	return func(at path, n *yaml.Node) {
		if !d.allowed(at, n) || !d.kind(at, n, yaml.ScalarNode, "one value") {
			return
		}
		value, wrong := parse(n)
		if wrong != "" {
			d.fail(at, n, "%s %s", at.label(), wrong)
			return
		}
		*into = value
	}
}

// expand returns the text of n with its variables filled in.
func (d *decoder) expand(at path, n *yaml.Node) string {
	text, bad := expand(n.Value, d.getenv)
	for _, b := range bad {
		if d.full() {
			break
		}
		if b.unset == "" || !d.lenient {
			d.failReference(at, n, b)
		}
	}
	return text
}

func (d *decoder) failReference(at path, n *yaml.Node, b badReference) {
	message := b.message
	if b.unset != "" {
		message = fmt.Sprintf("the variable %.80s is not set (%s); set it, or give a default: ${%.80[1]s:-...}", b.unset, at.owner())
	}
	start, _, _ := strings.Cut(n.Value[b.offset:], "\n")
	start = start[:min(len(start), len("${")+len(b.unset))]
	line, column := d.src.find(n, strings.Count(n.Value[:b.offset], "${"), start)
	d.failAt(at, line, column, message)
}

func (d *decoder) fail(at path, n *yaml.Node, format string, args ...any) {
	d.failAt(at, n.Line, n.Column, fmt.Sprintf(format, args...))
}

func (d *decoder) failAt(at path, line, column int, message string) {
	d.bad[at.key()] = true
	d.faults = append(d.faults, fault{line, column, message})
}

// full says that looking for more is not worth the time.
func (d *decoder) full() bool { return len(d.faults) >= maxFaults }

// report gives problems their place in the file. A problem that is only there
// because of a fault that is known already is left out.
func (d *decoder) report(problems []problem) {
	for _, p := range problems {
		if d.bad[p.at.key()] || d.anyBad(p.needs) {
			continue
		}
		f := fault{message: p.message}
		if where, ok := d.places[p.at.key()]; ok && p.onKey {
			f.line, f.column = where.key.Line, where.key.Column
		} else if ok {
			f.line, f.column = where.value.Line, where.value.Column
		}
		d.faults = append(d.faults, f)
	}
}

func (d *decoder) anyBad(paths []path) bool {
	for _, p := range paths {
		if d.bad[p.key()] {
			return true
		}
	}
	return false
}
