package yamlstrict

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/suggest"

	"gopkg.in/yaml.v3"
)

// Advice is what a format knows about the mistakes that people make in it. A nil function knows nothing.
type Advice struct {
	// Key returns the message for an unknown key of the mapping at a path, "" for the usual one.
	Key func(at Path, key, value *yaml.Node) string
	// Elsewhere says which other mappings have an unknown key of the mapping at a path, "" for none.
	Elsewhere func(at Path, word string) string
	// Fits reports whether a known key makes sense in a mapping that does not have it.
	Fits func(at Path, mapping *yaml.Node, name string) bool
	// Value returns what to do about a value of the wrong kind, "" for the usual text.
	Value func(at Path, n *yaml.Node) string
}

// maxNamed bounds the keys that a message lists.
const maxNamed = 5

// unknownKey returns the message for an unknown key of a mapping.
func (d *Decoder) unknownKey(at Path, n, key, value *yaml.Node, keys []Key) string {
	if d.Advice.Key != nil {
		if message := d.Advice.Key(at, key, value); message != "" {
			return message
		}
	}
	return fmt.Sprintf("unknown key %.40q; %s", key.Value, d.suggest(at, n, key.Value, keys))
}

// suggest returns the key that was probably meant, or the mappings that have the key, or some keys that fit.
func (d *Decoder) suggest(at Path, n *yaml.Node, word string, keys []Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	if meant := d.meant(word, names); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	if d.Advice.Elsewhere != nil {
		if message := d.Advice.Elsewhere(at, word); message != "" {
			return message
		}
	}
	if len(names) <= maxNamed {
		return "the keys here are " + strings.Join(names, ", ")
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !d.fits(at, n, name) })
	return "other keys here are " + strings.Join(names[:min(len(names), maxNamed)], ", ")
}

// meant returns the key that a word of another program or a misspelt word stands for.
func (d *Decoder) meant(word string, names []string) string {
	if d.KeyAlias != nil {
		if elsewhere := d.KeyAlias(word); slices.Contains(names, elsewhere) {
			return elsewhere
		}
	}
	return suggest.Of(word, names)
}

func (d *Decoder) fits(at Path, mapping *yaml.Node, name string) bool {
	return ValueOf(mapping, name) == nil && (d.Advice.Fits == nil || d.Advice.Fits(at, mapping, name))
}

// fix returns what to do about a value of the wrong kind, after a semicolon.
func (d *Decoder) fix(at Path, n *yaml.Node, kind yaml.Kind) string {
	if d.Advice.Value != nil {
		if fix := d.Advice.Value(at, n); fix != "" {
			return "; " + fix
		}
	}
	switch {
	case kind == yaml.MappingNode && n.Kind == yaml.SequenceNode:
		return "; " + listFix(n)
	case n.Tag == "!!null":
		return "; " + emptyHint(kind)
	case kind == yaml.SequenceNode && n.Kind == yaml.ScalarNode:
		return `; write "- " before each item, or put it in [ ]`
	}
	return ""
}

// listFix returns how to write a list as a mapping.
func listFix(n *yaml.Node) string {
	assigns := func(item *yaml.Node) bool { return item.Kind == yaml.ScalarNode && strings.Contains(item.Value, "=") }
	switch {
	case len(n.Content) == 0:
		return "write {} for an empty mapping"
	case slices.ContainsFunc(n.Content, assigns):
		return "write NAME: VALUE for each NAME=VALUE"
	case slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return ValueOf(item, "name") != nil }):
		return `write each name as a key, NAME:, in place of "- name: NAME"`
	case n.Style&yaml.FlowStyle != 0:
		return "write {NAME: VALUE}"
	}
	return `remove the "- " and write NAME: VALUE`
}
