package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/nearest"

	"gopkg.in/yaml.v3"
)

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

// oneOf reads one of a few words.
func (d *decoder) oneOf(into *string, words ...string) reader {
	return func(at path, n *yaml.Node) {
		var text string
		if d.text(&text)(at, n); text == "" || d.bad[at.key()] || slices.Contains(words, text) {
			if !d.bad[at.key()] {
				*into = cmp.Or(text, *into)
			}
			return
		}
		hint := "use " + strings.Join(words, ", ")
		if meant := nearest.Of(text, words); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		d.fail(at, n, "%s cannot be %.40q; %s", at.label(), text, hint)
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

// expand returns the text of n with its references filled in.
func (d *decoder) expand(at path, n *yaml.Node) string {
	text, bad := d.refs.expand(n.Value)
	for _, b := range bad {
		if d.full() {
			break
		}
		if b.missing == "" || !d.refs.lenient {
			d.failReference(at, n, b)
		}
	}
	return text
}

func (d *decoder) failReference(at path, n *yaml.Node, b badReference) {
	if b.missing != "" && d.excused != nil {
		d.bad[at.key()] = true
		d.excused(at, n, b)
		return
	}
	line, column := d.where(n, b)
	d.failAt(at, line, column, b.text(at.owner()))
}

// where is the place of a reference in the text of n.
func (d *decoder) where(n *yaml.Node, b badReference) (line, column int) {
	start, _, _ := strings.Cut(n.Value[b.offset:], "\n")
	start = start[:min(len(start), len("${")+len(b.missing))]
	return d.src.find(n, strings.Count(n.Value[:b.offset], "${"), start)
}
