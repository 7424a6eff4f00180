package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// file is the text of a file, its lines and its only document. Lines count from 1.
type file struct {
	data   []byte
	starts []int // offset of each line
	eol    string
	root   *yaml.Node // the mapping; nil for an empty file
}

func parse(data []byte) (*file, error) {
	f := &file{data: data, starts: lineStarts(data), eol: "\n"}
	if at := bytes.IndexByte(data, '\n'); at > 0 && data[at-1] == '\r' {
		f.eol = "\r\n"
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return f, nil
	} else if err != nil {
		return nil, fmt.Errorf("read yaml: %w", err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file has a second document and %w", ErrUnsafe)
	}
	root := doc.Content[0]
	switch {
	case root.Tag == "!!null" && root.Value == "":
		return f, nil
	case root.Kind != yaml.MappingNode:
		return nil, errors.New("the file is not a mapping")
	}
	f.root = root
	return f, nil
}

// lineStarts splits where YAML does.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, r := range string(data) {
		switch r {
		case '\r':
			if i+1 < len(data) && data[i+1] == '\n' {
				continue
			}
			fallthrough
		case '\n', '\u0085', '\u2028', '\u2029':
			starts = append(starts, i+utf8.RuneLen(r))
		}
	}
	return starts
}

// lines returns the number of the last non-empty line plus one.
func (f *file) lines() int {
	if f.starts[len(f.starts)-1] == len(f.data) {
		return len(f.starts)
	}
	return len(f.starts) + 1
}

// start returns the offset of a line, or of the end of the file.
func (f *file) start(line int) int {
	if line > len(f.starts) {
		return len(f.data)
	}
	return f.starts[line-1]
}

func (f *file) line(n int) string { return string(f.data[f.start(n):f.start(n+1)]) }

func (f *file) blank(n int) bool {
	return n >= 1 && n < f.lines() && strings.TrimSpace(strings.TrimPrefix(f.line(n), "\ufeff")) == ""
}

// find returns the top-level key section and its mapping; nil where there is none.
func (f *file) find(section string) (key, mapping *yaml.Node) {
	if f.root == nil {
		return nil, nil
	}
	at := find(f.root, section)
	if at < 0 {
		return nil, nil
	}
	if value := f.root.Content[at+1]; value.Kind == yaml.MappingNode {
		return f.root.Content[at], value
	}
	return f.root.Content[at], nil
}

// end returns the line after the document.
func (f *file) end() int {
	for n := f.lines() - 1; n >= 1; n-- {
		if line := f.line(n); strings.HasPrefix(line, "...") {
			return n
		}
	}
	return f.lines()
}

// after returns the line of the key after key in mapping, or the end of the document.
func (f *file) after(mapping, key *yaml.Node) int {
	at := slices.Index(mapping.Content, key)
	if at+2 < len(mapping.Content) {
		return mapping.Content[at+2].Line
	}
	return f.end()
}

// anyIndent is larger than any indentation.
const anyIndent = 1 << 30

// contentEnd moves up from the line limit, not above from, over blank lines and over comments that are indented by at
// most indent, and returns the line below the remaining content.
func (f *file) contentEnd(from, limit, indent int) int {
	for n := limit; n > from; n-- {
		if f.blank(n - 1) {
			continue
		}
		if at := commentAt(f.line(n - 1)); at < 0 || at > indent {
			return n
		}
	}
	return from
}

// commentAt returns the column, from 0, of a comment that is alone in its line; else -1.
func commentAt(line string) int {
	if trimmed := strings.TrimLeft(line, " "); strings.HasPrefix(trimmed, "#") {
		return len(line) - len(trimmed)
	}
	return -1
}

// commentStart returns the first of the comment lines directly above a key with its indentation; the line of the key if
// there is none.
func (f *file) commentStart(key *yaml.Node, above int) int {
	n := key.Line
	for n-1 > above && commentAt(f.line(n-1)) == key.Column-1 {
		n--
	}
	return n
}

// block returns value as indented YAML.
func (f *file) block(value any, indent int) (string, error) {
	text, err := marshal(value)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", indent))
		}
		b.WriteString(strings.TrimSuffix(line, "\n") + f.eol)
	}
	return b.String(), nil
}

// insert inserts lines above line n.
func (f *file) insert(n int, text string) []byte {
	at := f.start(n)
	if at > 0 && at == len(f.data) && !bytes.HasSuffix(f.data, []byte("\n")) {
		text = f.eol + text
	}
	return slices.Concat(f.data[:at], []byte(text), f.data[at:])
}

// colon returns the offset after the colon of a plain or quoted key at the start of its line.
func (f *file) colon(key *yaml.Node) (int, bool) {
	line := f.line(key.Line)
	at := strings.IndexByte(line, ':')
	if at < 0 || strings.Trim(strings.TrimPrefix(line[:at], "\ufeff"), ` "'`) != key.Value {
		return 0, false
	}
	return f.start(key.Line) + at + 1, true
}

// fill inserts a block below a key without a value or with {}.
func (f *file) fill(key *yaml.Node, text string) ([]byte, bool) {
	at, ok := f.colon(key)
	if !ok {
		return nil, false
	}
	rest := string(f.data[at:f.start(key.Line+1)])
	trimmed := strings.TrimLeft(rest, " ")
	after := strings.TrimPrefix(trimmed, "{}")
	if s := strings.TrimSpace(after); s != "" && !strings.HasPrefix(s, "#") {
		return nil, false // {more, or spread over lines
	}
	if strings.TrimSpace(after) == "" {
		after = strings.TrimLeft(after, " ")
	}
	head := slices.Concat(f.data[:at], []byte(after))
	if !bytes.HasSuffix(head, []byte("\n")) {
		head = append(head, f.eol...)
	}
	return slices.Concat(head, []byte(text), f.data[f.start(key.Line+1):]), true
}

// empty removes the lines from first to before last and sets the key's value to {}.
func (f *file) empty(key *yaml.Node, first, last int) []byte {
	at, ok := f.colon(key)
	if !ok || first <= key.Line {
		return f.data
	}
	return slices.Concat(f.data[:at], []byte(" {}"), f.data[at:f.start(first)], f.data[f.start(last):])
}
