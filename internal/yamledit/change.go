package yamledit

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Rename renames the key at a path of keys. Everything else stays, the comments too.
func Rename(data []byte, path []string, name string) ([]byte, error) {
	return change(data, path, func(f *file, mapping *yaml.Node, at int) []byte {
		if find(mapping, name) >= 0 {
			return nil
		}
		key := mapping.Content[at]
		return f.replace(key, name)
	}, func(mapping *yaml.Node, at int) { mapping.Content[at].SetString(name) })
}

// Set replaces the text at a path of keys. A text or a word is replaced; a list or a mapping is not.
func Set(data []byte, path []string, value string) ([]byte, error) {
	return change(data, path, func(f *file, mapping *yaml.Node, at int) []byte {
		return f.replace(mapping.Content[at+1], value)
	}, func(mapping *yaml.Node, at int) {
		var n yaml.Node
		if yaml.Unmarshal([]byte(value), &n) == nil && len(n.Content) == 1 {
			mapping.Content[at+1] = n.Content[0]
		}
	})
}

// Drop removes the key at a path of keys with its value, which is a text or a word.
func Drop(data []byte, path []string) ([]byte, error) {
	return change(data, path, func(f *file, mapping *yaml.Node, at int) []byte {
		if mapping.Style&yaml.FlowStyle != 0 {
			return f.dropInside(mapping, at)
		}
		key, value := mapping.Content[at], mapping.Content[at+1]
		if value.Kind != yaml.ScalarNode || value.Line != key.Line || len(mapping.Content) == 2 {
			return nil
		}
		return slices.Concat(f.data[:f.start(key.Line)], f.data[f.start(key.Line+1):])
	}, func(mapping *yaml.Node, at int) { mapping.Content = slices.Delete(mapping.Content, at, at+2) })
}

// change edits the text of a file at a key. The result must be what edit makes of the parsed file.
func change(data []byte, path []string, text func(f *file, mapping *yaml.Node, at int) []byte, edit func(mapping *yaml.Node, at int)) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	mapping, at := f.lookup(path)
	if at < 0 {
		return nil, fmt.Errorf("%q %w", strings.Join(path, "."), ErrMissing)
	}
	made := text(f, mapping, at)
	if made == nil {
		return nil, fmt.Errorf("%q %w", strings.Join(path, "."), ErrUnsafe)
	}
	edit(mapping, at)
	g, err := parse(made)
	if err != nil || dumped(g.root) != dumped(f.root) {
		return nil, fmt.Errorf("%q %w", strings.Join(path, "."), ErrUnsafe)
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

// dropInside removes a key of a mapping in braces, with the comma after it or before it.
func (f *file) dropInside(mapping *yaml.Node, at int) []byte {
	key, value := mapping.Content[at], mapping.Content[at+1]
	old, from := f.written(value), f.offset(key)
	switch {
	case old == "" || len(mapping.Content) == 2:
		return nil
	case at+2 < len(mapping.Content):
		return slices.Concat(f.data[:from], f.data[f.offset(mapping.Content[at+2]):])
	}
	comma := strings.LastIndexByte(string(f.data[:from]), ',')
	if comma < 0 {
		return nil
	}
	return slices.Concat(f.data[:comma], f.data[f.offset(value)+len(old):])
}
