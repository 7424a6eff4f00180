// Package yamledit adds and removes one entry of a mapping in a YAML file that a person wrote, and preserves every
// other byte: comments, order, quotes, line ends. It locates the edit in the parsed file and changes the text there;
// the result is parsed again and must differ by that entry alone.
package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	// ErrFlow means that the mapping is in flow style (braces), which is not edited.
	ErrFlow = errors.New("is written in braces; write it as an indented block, then it can be edited")
	// ErrExists means that the name has an entry already.
	ErrExists = errors.New("is there already")
	// ErrMissing means that the name has no entry.
	ErrMissing = errors.New("is not there")
	// ErrUnsafe means that the file cannot be edited without changing something else.
	ErrUnsafe = errors.New("cannot be edited without a change to something else; edit it by hand")
)

// Add appends an entry to the mapping at the top-level key section, which is created if it is missing or empty. The
// value is marshalled with yaml.v3. Empty data is an empty file.
func Add(data []byte, section, name string, value any) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	if f.root != nil && f.root.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("the file %w", ErrFlow)
	}
	key, mapping := f.find(section)
	if mapping != nil && find(mapping, name) >= 0 {
		return nil, fmt.Errorf("%q %w", name, ErrExists)
	}
	candidates, err := f.additions(section, name, value, key, mapping)
	if err != nil {
		return nil, err
	}
	for _, made := range candidates {
		if f.differsBy(made, section, name) {
			return made, nil
		}
	}
	return nil, fmt.Errorf("the file %w", ErrUnsafe)
}

func (f *file) additions(section, name string, value any, key, mapping *yaml.Node) ([][]byte, error) {
	switch {
	case key == nil:
		text, err := f.block(map[string]any{section: map[string]any{name: value}}, 0)
		return [][]byte{f.insert(f.contentEnd(1, f.end(), -1), text), f.insert(f.end(), text)}, err
	case mapping == nil || len(mapping.Content) == 0:
		text, err := f.block(map[string]any{name: value}, 2)
		made, ok := f.fill(key, text)
		if !ok {
			return nil, errors.Join(err, fmt.Errorf("%q %w", section, ErrFlow))
		}
		return [][]byte{made}, err
	case mapping.Style&yaml.FlowStyle != 0:
		return nil, fmt.Errorf("%q %w", section, ErrFlow)
	}
	indent := mapping.Content[0].Column - 1
	text, err := f.block(map[string]any{name: value}, indent)
	end := f.after(f.root, key)
	var places [][]byte // the first keeps comments apart from the entry, but may be inside of a text
	for _, line := range []int{f.contentEnd(key.Line+1, end, anyIndent), f.contentEnd(key.Line+1, end, indent-1), end} {
		places = append(places, f.insert(line, text))
	}
	return places, err
}

// forEditors starts the comment that names the schema of a file for editors.
const forEditors = "# yaml-language-server:"

// Put inserts a top-level key with a plain text above the others, below the comment for editors. The error for an existing key is [ErrExists].
func Put(data []byte, name, value string) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	text, err := f.block(map[string]string{name: value}, 0)
	switch {
	case err != nil:
		return nil, err
	case f.root == nil || len(f.root.Content) == 0 || f.root.Style&yaml.FlowStyle != 0:
		return nil, fmt.Errorf("the file %w", ErrFlow)
	case find(f.root, name) >= 0:
		return nil, fmt.Errorf("%q %w", name, ErrExists)
	}
	first := f.root.Content[0]
	line := first.Line
	for line > 1 && commentAt(f.line(line-1)) == 0 && !strings.HasPrefix(f.line(line-1), forEditors) {
		line--
	}
	for _, made := range [][]byte{f.insert(line, text), f.insert(first.Line, text)} {
		if f.differsByText(made, name, value) {
			return made, nil
		}
	}
	return nil, fmt.Errorf("the file %w", ErrUnsafe)
}

// differsByText reports whether made is the file with only that key added at the top.
func (f *file) differsByText(made []byte, name, value string) bool {
	g, err := parse(made)
	if err != nil || g.root == nil || len(g.root.Content) != len(f.root.Content)+2 {
		return false
	}
	return g.root.Content[0].Value == name && g.root.Content[1].Value == value && g.without(name, "") == f.without(name, "")
}

// Remove removes an entry of the mapping at section, with the comment lines directly above it. An empty mapping
// becomes {}.
func Remove(data []byte, section, name string) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	key, mapping := f.find(section)
	at := -1
	if mapping != nil {
		at = find(mapping, name)
	}
	switch {
	case at < 0:
		return nil, fmt.Errorf("%q %w", name, ErrMissing)
	case f.root.Style&yaml.FlowStyle != 0 || mapping.Style&yaml.FlowStyle != 0:
		return nil, fmt.Errorf("%q %w", section, ErrFlow)
	}
	entry := mapping.Content[at]
	limit := f.after(f.root, key)
	if at+2 < len(mapping.Content) {
		limit = mapping.Content[at+2].Line
	}
	first, last := f.commentStart(entry, key.Line), f.contentEnd(entry.Line+1, limit, entry.Column-1)
	if f.blank(first-1) && last < f.lines() && f.blank(last) {
		last++ // of two blank lines around it, one goes with it
	}
	made := slices.Concat(f.data[:f.start(first)], f.data[f.start(last):])
	if len(mapping.Content) == 2 {
		made = f.empty(key, first, last)
	}
	if !f.differsBy(made, section, name) {
		return nil, fmt.Errorf("the file %w", ErrUnsafe)
	}
	return made, nil
}

// differsBy reports whether made equals the file except for that one entry.
func (f *file) differsBy(made []byte, section, name string) bool {
	g, err := parse(made)
	if err != nil {
		return false
	}
	return f.without(section, name) == g.without(section, name)
}

// without returns the parsed content of the file without one entry, as text.
func (f *file) without(section, name string) string {
	var b strings.Builder
	if f.root == nil {
		return ""
	}
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		key, value := f.root.Content[i], f.root.Content[i+1]
		if key.Value != section {
			dump(&b, key)
			dump(&b, value)
			continue
		}
		for j := 0; j+1 < len(value.Content); j += 2 {
			if value.Content[j].Value != name {
				dump(&b, value.Content[j])
				dump(&b, value.Content[j+1])
			}
		}
	}
	return b.String()
}

func dump(b *strings.Builder, n *yaml.Node) {
	fmt.Fprintf(b, "%d %s %q %s(", n.Kind, n.Tag, n.Value, n.Anchor)
	for _, c := range n.Content {
		dump(b, c)
	}
	b.WriteString(")")
}

// find returns the index of a key in a mapping's content, -1 if it is missing.
func find(mapping *yaml.Node, name string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("write yaml: %w", err)
	}
	return b.Bytes(), enc.Close()
}
