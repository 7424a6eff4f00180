package yamledit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Block is the text of a key with its value and the comments in it.
type Block struct {
	// Text are the lines, without the indentation of the key. They end with "\n".
	Text string
	// Line is the number of the first line in the file, from 1. Indent is the indentation of the key there.
	Line, Indent int
}

// ErrOther means that a text has other keys than the one that it replaces.
var ErrOther = errors.New("has other keys than the one that is edited")

// BlockAt returns the block of the key at a path. A missing key is [ErrMissing], one in braces is [ErrFlow]. For a missing key of
// the top level, Line is where [SetBlock] adds it.
func BlockAt(data []byte, path ...string) (Block, error) {
	f, err := parse(data)
	if err != nil {
		return Block{}, err
	}
	first, last, indent, err := f.blockLines(path)
	if err != nil {
		return Block{Line: f.contentEnd(1, f.end(), -1)}, err
	}
	b := Block{Line: first, Indent: indent}
	for n := first; n < last; n++ {
		line := strings.TrimRight(f.line(n), "\r\n\u0085\u2028\u2029")
		drop := min(indent, len(line)-len(strings.TrimLeft(line, " ")))
		b.Text += line[drop:] + "\n"
	}
	return b, nil
}

// blockLines returns the first line of the block at a path, the line after it, and its indentation.
func (f *file) blockLines(path []string) (first, last, indent int, err error) {
	at := f.locate(path)
	name := strings.Join(path, ".")
	switch {
	case at.parent == nil || at.key == nil:
		return 0, 0, 0, fmt.Errorf("%q %w", name, ErrMissing)
	case at.parent.Style&yaml.FlowStyle != 0:
		return 0, 0, 0, fmt.Errorf("%q %w", name, ErrFlow)
	}
	if strings.Trim(strings.TrimPrefix(f.line(at.key.Line), "\ufeff")[:at.key.Column-1], " ") != "" {
		return 0, 0, 0, fmt.Errorf("%q %w", name, ErrUnsafe)
	}
	first, last = f.region(at)
	return first, last, at.key.Column - 1, nil
}

// SetBlock replaces the block of the key at a path by a text with the same key. A missing key of the top level is added at the
// end. The result must pass check, whose errors are returned as they are, and may differ from data in that key only: else the
// error is [ErrOther].
func SetBlock(data []byte, text string, check func([]byte) error, path ...string) ([]byte, error) {
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	first, last, indent, err := f.blockLines(path)
	if errors.Is(err, ErrMissing) && len(path) == 1 && (f.root == nil || f.root.Style&yaml.FlowStyle == 0) {
		first = f.contentEnd(1, f.end(), -1)
		last, err = first, nil
	}
	if err != nil {
		return nil, err
	}
	made := slices.Concat(f.data[:f.start(first)], []byte(f.joint(first)+f.indented(text, indent)), f.data[f.start(last):])
	if err := check(made); err != nil {
		return nil, err
	}
	g, err := parse(made)
	if err != nil {
		return nil, err
	}
	if g.locate(path).value == nil || g.count(path) != 1 || rest(f.root, path) != rest(g.root, path) {
		return nil, fmt.Errorf("the text %w", ErrOther)
	}
	return made, nil
}

// joint is the line end that is missing before line n.
func (f *file) joint(n int) string {
	if at := f.start(n); at > 0 && !strings.HasSuffix(string(f.data[:at]), "\n") {
		return f.eol
	}
	return ""
}

// indented returns a text with the indentation and the line ends of the file.
func (f *file) indented(text string, indent int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", indent) + line)
		}
		b.WriteString(f.eol)
	}
	return b.String()
}

// count returns how many keys have the name of the last one of a path, in its mapping.
func (f *file) count(path []string) (n int) {
	mapping, _ := f.lookup(path)
	for i := 0; mapping != nil && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == path[len(path)-1] {
			n++
		}
	}
	return n
}

// rest returns what a mapping has besides the key at a path, as text.
func rest(root *yaml.Node, path []string) string {
	if root == nil {
		return ""
	}
	return text(root, path)
}
