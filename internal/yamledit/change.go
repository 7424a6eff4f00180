package yamledit

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Rename renames the key at a path of keys. Everything else stays, the comments too.
func Rename(data []byte, path []string, name string) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	mapping, at := f.lookup(path)
	if at < 0 {
		return nil, fmt.Errorf("%q %w", strings.Join(path, "."), ErrMissing)
	}
	key, unsafe := mapping.Content[at], fmt.Errorf("%q %w", strings.Join(path, "."), ErrUnsafe)
	made := f.replace(key, name)
	if made == nil || find(mapping, name) >= 0 {
		return nil, unsafe
	}
	key.SetString(name)
	if g, err := parse(made); err != nil || dumped(g.root) != dumped(f.root) {
		return nil, unsafe
	}
	return made, nil
}

func dumped(n *yaml.Node) string {
	var b strings.Builder
	if n != nil {
		dump(&b, n)
	}
	return b.String()
}

// lookup returns the mapping with the last key of a path, and the index of the key; -1 if it is missing.
func (f *file) lookup(path []string) (mapping *yaml.Node, at int) {
	mapping = f.root
	for i, key := range path {
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return nil, -1
		}
		if at = find(mapping, key); at < 0 || i == len(path)-1 {
			return mapping, at
		}
		mapping = mapping.Content[at+1]
	}
	return nil, -1
}

// offset returns the position of a node in the text.
func (f *file) offset(n *yaml.Node) int {
	line, column := f.line(n.Line), n.Column
	if n.Line == 1 && strings.HasPrefix(line, "\ufeff") {
		column++
	}
	for at := range line {
		if column--; column == 0 {
			return f.start(n.Line) + at
		}
	}
	return f.start(n.Line + 1)
}

// written returns the text of a plain or quoted node in one line, "" for another one.
func (f *file) written(n *yaml.Node) string {
	rest := string(f.data[f.offset(n):f.start(n.Line+1)])
	for _, form := range []string{n.Value, `"` + n.Value + `"`, "'" + n.Value + "'"} {
		if n.Kind == yaml.ScalarNode && form != "" && strings.HasPrefix(rest, form) {
			return form
		}
	}
	return ""
}

// replace replaces the text of a node; nil if it is not found as it is.
func (f *file) replace(n *yaml.Node, text string) []byte {
	old, at := f.written(n), f.offset(n)
	if old == "" {
		return nil
	}
	return slices.Concat(f.data[:at], []byte(text), f.data[at+len(old):])
}
