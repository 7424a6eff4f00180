package spec

import (
	"fmt"
	"unicode/utf8"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// lines is the source text of a definition.
type lines = yamlstrict.Source

// place is the detailed location of a text: its node, and its offset in the node's text, in bytes.
// The zero place is for a text that is not from a file.
type place struct {
	in   *lines
	node *yaml.Node
	skip int
}

func (p place) at(start Pos, offset int) Pos {
	if p.in == nil || p.node == nil {
		return start
	}
	line, column := p.in.Inside(p.node, p.skip+max(offset, 0))
	return Pos{line, column}
}

// Error returns an error at a position of the definition, with the source line and a caret.
func (d *Definition) Error(at Pos, format string, args ...any) *yamlstrict.Error {
	f := yamlstrict.Fault{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
	if d.lines == nil { // it was not parsed
		return &yamlstrict.Error{File: d.Path, Line: f.Line, Column: f.Column, Message: f.Message}
	}
	if at.Line < 1 || at.Line > d.lines.Lines() {
		f.Line, f.Column = 0, 0
	}
	f.Column = min(f.Column, utf8.RuneCountInString(d.lines.Line(f.Line))+1)
	return d.lines.Error(f)
}

func posOf(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }
