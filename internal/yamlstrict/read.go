package yamlstrict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/suggest"

	"gopkg.in/yaml.v3"
)

// Fields reads a mapping of known keys and returns those that are present.
func (d *Decoder) Fields(at Path, n *yaml.Node, keys []Key) map[string]bool {
	seen := map[string]bool{}
	d.Each(at, n, func(under Path, key, value *yaml.Node) {
		seen[key.Value] = true
		for _, k := range keys {
			if k.Name == key.Value {
				k.Read(under, value)
				return
			}
		}
		d.Fail(at.Unknown(), key, "%s", d.unknownKey(at, n, key, value, keys))
	})
	return seen
}

// Each reads a mapping and calls read for every key that is a string and not a duplicate.
func (d *Decoder) Each(at Path, n *yaml.Node, read func(at Path, key, value *yaml.Node)) {
	if !d.Allowed(at, n) || !d.Kind(at, n, yaml.MappingNode, "a mapping") {
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content) && !d.Full(); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !d.allowedKey(at, key) {
			continue
		}
		if line := lines[key.Value]; line > 0 {
			d.Fail(at.Unknown(), key, "the key %.40q is here already, on line %d", key.Value, line)
			continue
		}
		lines[key.Value] = key.Line
		under := at.To(key.Value)
		d.setPlace(under, key, value)
		read(under, key, value)
	}
}

// Items reads a list; want describes it, as in "a list of strings".
func (d *Decoder) Items(at Path, n *yaml.Node, want string, read func(at Path, i int, item *yaml.Node)) {
	if !d.isList(at, n, want) {
		return
	}
	for i, item := range n.Content {
		if d.Full() {
			return
		}
		under := at.Item(i)
		d.setPlace(under, item, item)
		read(under, i, item)
	}
}

func (d *Decoder) isList(at Path, n *yaml.Node, want string) bool {
	return d.Allowed(at, n) && d.Kind(at, n, yaml.SequenceNode, want)
}

// List reads a list with read for each item; nil if it is not a list.
func List[T any](d *Decoder, at Path, n *yaml.Node, read func(at Path, n *yaml.Node, into *T)) (all []T) {
	d.Items(at, n, "a list", func(at Path, i int, item *yaml.Node) {
		if all == nil {
			all = make([]T, len(n.Content))
		}
		read(at, item, &all[i])
	})
	return all
}

func (d *Decoder) allowedKey(at Path, key *yaml.Node) bool {
	switch {
	case key.Tag == "!!merge":
		d.Fail(at.Unknown(), key, "merge keys are not supported; write the keys out")
	case !d.Allowed(at.Unknown(), key):
	case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
		d.Fail(at.Unknown(), key, "a key must be a string, not %s; put it in quotes", Describe(key))
	default:
		return true
	}
	return false
}

// Allowed rejects YAML features that our files do not need: aliases, anchors, tags.
func (d *Decoder) Allowed(at Path, n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		d.Fail(at, n, "aliases are not supported; write the value out")
	case n.Anchor != "":
		d.Fail(at, n, "anchors are not supported; write the value wherever it is needed")
	case n.Style&yaml.TaggedStyle != 0:
		d.Fail(at, n, "tags such as %.40q are not supported", n.Tag)
	default:
		return true
	}
	return false
}

// AllowedDeep is Allowed for a value and everything in it.
func (d *Decoder) AllowedDeep(at Path, n *yaml.Node) bool {
	if !d.Allowed(at, n) {
		return false
	}
	for _, child := range n.Content {
		if !d.AllowedDeep(at, child) {
			return false
		}
	}
	return true
}

// Kind rejects a value of another kind; want describes the right one, as in "a mapping".
func (d *Decoder) Kind(at Path, n *yaml.Node, kind yaml.Kind, want string) bool {
	switch {
	case n.Kind == kind && n.Tag != "!!null":
		return true
	case n.Tag == "!!null":
		d.Fail(at, n, "%s has no value%s", d.label(at), d.fix(at, n, kind))
	default:
		d.Fail(at, n, "%s must be %s, not %s%s", d.label(at), want, Describe(n), d.fix(at, n, kind))
	}
	return false
}

func emptyHint(kind yaml.Kind) string {
	switch kind {
	case yaml.MappingNode:
		return "write {} for an empty mapping"
	case yaml.SequenceNode:
		return "write [] for an empty list"
	}
	return "write a value, or remove the key"
}

// Text reads a string.
func (d *Decoder) Text(into *string) Reader {
	return func(at Path, n *yaml.Node) {
		if !d.IsText(at, n) {
			return
		}
		*into = n.Value
		if d.Expand != nil {
			*into = d.Expand(at, n)
		}
	}
}

// Texts reads a list of strings.
func (d *Decoder) Texts(into *[]string) Reader {
	return func(at Path, n *yaml.Node) {
		if !d.isList(at, n, "a list of strings") {
			return
		}
		*into = make([]string, len(n.Content))
		d.Items(at, n, "", func(at Path, i int, item *yaml.Node) { d.Text(&(*into)[i])(at, item) })
	}
}

// OneOf reads one of a few words; an empty value keeps the default.
func (d *Decoder) OneOf(into *string, words ...string) Reader {
	return func(at Path, n *yaml.Node) {
		var text string
		if d.Text(&text)(at, n); text == "" || d.Bad(at) || slices.Contains(words, text) {
			if !d.Bad(at) {
				*into = cmp.Or(text, *into)
			}
			return
		}
		hint := "use " + strings.Join(words, ", ")
		if meant := suggest.Of(text, words); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		d.Fail(at, n, "%s cannot be %.40q; %s", d.label(at), text, hint)
	}
}

// IsText rejects a value that is not a string.
func (d *Decoder) IsText(at Path, n *yaml.Node) bool {
	if !d.Allowed(at, n) {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!str" && n.Tag != "!!null" {
		d.Fail(at, n, "%s must be a string, not %s; put it in quotes", d.label(at), Describe(n))
		return false
	}
	return d.Kind(at, n, yaml.ScalarNode, "a string")
}

// Scalar reads a value with parse, which returns an error text or "".
func Scalar[T any](d *Decoder, into *T, parse func(*yaml.Node) (T, string)) Reader {
	return func(at Path, n *yaml.Node) {
		if !d.Allowed(at, n) || !d.Kind(at, n, yaml.ScalarNode, "one value") {
			return
		}
		value, wrong := parse(n)
		if wrong != "" {
			d.Fail(at, n, "%s %s", d.label(at), wrong)
			return
		}
		*into = value
	}
}

// ValueOf returns the value of a key of a mapping, nil if it is missing.
func ValueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// Describe names the type of n.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return "a string"
}
