package yamledit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// SetKey sets the value at a path of keys below the top level, such as upstreams, files, timeout. The value is YAML in one line. A
// missing last key is added to its mapping; of the others only the one before the last may be missing.
func SetKey(data []byte, value string, path ...string) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	var want yaml.Node
	if err := yaml.Unmarshal([]byte(value), &want); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	if len(want.Content) != 1 || strings.ContainsAny(value, "\r\n") {
		return nil, errors.New("the value is not YAML in one line")
	}
	at := f.locate(path)
	if at.parent == nil && len(path) > 2 {
		return SetKey(data, fmt.Sprintf("{%s: %s}", path[len(path)-1], value), path[:len(path)-1]...)
	}
	if at.parent == nil {
		return nil, fmt.Errorf("%q %w", path[0], ErrMissing)
	}
	for _, made := range f.settings(at, path[len(path)-1], value) {
		if f.differsAt(made, path, want.Content[0]) {
			return made, nil
		}
	}
	return nil, fmt.Errorf("the file %w", ErrUnsafe)
}

// Unset removes the key at a path. A mapping that would be empty is removed too.
func Unset(data []byte, path ...string) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	at := f.locate(path)
	if at.parent == nil || at.key == nil {
		return nil, fmt.Errorf("%q %w", path[len(path)-1], ErrMissing)
	}
	if len(at.parent.Content) == 2 && len(path) > 1 {
		return Unset(data, path[:len(path)-1]...)
	}
	for _, made := range f.removals(at) {
		if f.differsAt(made, path, nil) {
			return made, nil
		}
	}
	return nil, fmt.Errorf("the file %w", ErrUnsafe)
}

// place is where a key is, or would be.
type place struct {
	parent, key, value *yaml.Node // key and value are nil for a missing one; parent if its mapping is missing
	limit              int        // line after the parent's entry
	next               *yaml.Node // the key after key, nil for the last
}

// locate finds the place of a path.
func (f *file) locate(path []string) place {
	p := place{parent: f.root, limit: f.end()}
	for i, name := range path {
		if p.parent == nil {
			return place{}
		}
		at := find(p.parent, name)
		if at < 0 {
			p.key, p.value = nil, nil
			if i < len(path)-1 {
				p.parent = nil
			}
			return p
		}
		p.key, p.value, p.next = p.parent.Content[at], p.parent.Content[at+1], nil
		if at+2 < len(p.parent.Content) {
			p.next = p.parent.Content[at+2]
		}
		if i == len(path)-1 {
			return p
		}
		if p.next != nil {
			p.limit = p.next.Line
		}
		p.parent = mappingOf(p.value)
	}
	return p
}

func mappingOf(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		return n
	}
	return nil
}

// settings returns candidates for the file with a value at a place.
func (f *file) settings(at place, name, value string) (all [][]byte) {
	flow := at.parent.Style&yaml.FlowStyle != 0
	switch {
	case at.key != nil:
		start := f.offset(at.value)
		for _, end := range f.ends(at.value) {
			all = append(all, slices.Concat(f.data[:start], []byte(value), f.data[end:]))
		}
		if first, last := f.region(at); !flow {
			text := strings.Repeat(" ", at.key.Column-1) + name + ": " + value + f.eol
			all = append(all, slices.Concat(f.data[:f.start(first)], []byte(text), f.data[f.start(last):]))
		}
	case flow:
		start := f.offset(at.parent) + 1
		text := name + ": " + value
		if len(at.parent.Content) > 0 {
			text += ", "
		}
		all = append(all, slices.Concat(f.data[:start], []byte(text), f.data[start:]))
	default:
		indent := at.parent.Content[0].Column - 1
		text := strings.Repeat(" ", indent) + name + ": " + value + f.eol
		from := at.parent.Content[0].Line + 1
		for _, line := range []int{f.contentEnd(from, at.limit, indent-1), f.contentEnd(from, at.limit, anyIndent), at.limit} {
			all = append(all, f.insert(line, text))
		}
	}
	return all
}

// removals returns candidates for the file without a key.
func (f *file) removals(at place) (all [][]byte) {
	if at.parent.Style&yaml.FlowStyle == 0 {
		first, last := f.region(at)
		return [][]byte{slices.Concat(f.data[:f.start(first)], f.data[f.start(last):])}
	}
	start := f.offset(at.key)
	if at.next != nil {
		return [][]byte{slices.Concat(f.data[:start], f.data[f.offset(at.next):])}
	}
	before := strings.TrimRight(string(f.data[:start]), " \r\n")
	for _, end := range f.ends(at.value) {
		all = append(all, slices.Concat([]byte(strings.TrimSuffix(before, ",")), f.data[end:]))
	}
	return all
}

// region returns the first line of a key in a block mapping, and the line after its value.
func (f *file) region(at place) (first, last int) {
	limit := at.limit
	if at.next != nil {
		limit = at.next.Line
	}
	return at.key.Line, f.contentEnd(at.key.Line+1, limit, at.key.Column-1)
}

// ends returns candidates for where a node ends: a plain text as it is, others at each character that can end it.
func (f *file) ends(n *yaml.Node) (all []int) {
	start := f.offset(n)
	if n.Kind == yaml.ScalarNode && strings.HasPrefix(string(f.data[start:]), n.Value) && n.Value != "" {
		return []int{start + len(n.Value)}
	}
	for i := start + 1; i < len(f.data) && len(all) < maxEnds; i++ {
		if strings.IndexByte(`"'}]`, f.data[i]) >= 0 {
			all = append(all, i+1)
		}
	}
	return all
}

// maxEnds bounds the number of candidates, each of which is parsed.
const maxEnds = 200

// differsAt reports whether made equals the file except at a path, where it has want, or nothing for nil.
func (f *file) differsAt(made []byte, path []string, want *yaml.Node) bool {
	g, err := parse(made)
	if err != nil {
		return false
	}
	got := g.locate(path).value
	if want == nil || got == nil {
		return want == nil && got == nil && text(f.root, path) == text(g.root, path)
	}
	return text(got, nil) == text(want, nil) && text(f.root, path) == text(g.root, path)
}

// text returns the content of a node without the key at a path, as text.
func text(n *yaml.Node, without []string) string {
	var b strings.Builder
	dumpWithout(&b, n, without)
	return b.String()
}

func dumpWithout(b *strings.Builder, n *yaml.Node, without []string) {
	if n == nil || n.Kind != yaml.MappingNode || len(without) == 0 {
		if n != nil {
			dump(b, n)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Value != without[0]:
			dump(b, key)
			dump(b, value)
		case len(without) > 1:
			dump(b, key)
			dumpWithout(b, value, without[1:])
		}
	}
}

// Inline returns a value as YAML in one line: lists, mappings, numbers and booleans as they are, all else as a text.
func Inline(value string) (string, error) {
	var n yaml.Node
	if yaml.Unmarshal([]byte(value), &n) == nil && len(n.Content) == 1 && !strings.Contains(value, "\n") {
		switch n.Content[0].Tag {
		case "!!bool", "!!int", "!!float":
			return value, nil
		}
		if n.Content[0].Style&yaml.FlowStyle != 0 {
			return value, nil
		}
	}
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: styleOf(value)})
	return strings.TrimSuffix(string(text), "\n"), err
}

// styleOf returns a style in which a text is one line, also inside of brackets.
func styleOf(value string) yaml.Style {
	if strings.ContainsAny(value, "\n{}[],:#&*!|>'\"%@`") {
		return yaml.DoubleQuotedStyle
	}
	return 0
}
