package spec

import (
	"fmt"
	"unicode/utf8"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// lines is a definition's text.
type lines = yamlstrict.Source

// place is where a text stands, in more detail than its Pos: the node that it is of, and how many bytes of that come before it.
// The zero place is of a text that is not from a file.
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

// Error is a fault of the definition at a place in it, with that line and a caret below it.
func (d *Definition) Error(at Pos, format string, args ...any) *yamlstrict.Error {
	f := yamlstrict.Fault{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
	if d.lines == nil { // nobody read it from a file
		return &yamlstrict.Error{File: d.Path, Line: f.Line, Column: f.Column, Message: f.Message}
	}
	if at.Line < 1 || at.Line > d.lines.Lines() {
		f.Line, f.Column = 0, 0
	}
	f.Column = min(f.Column, utf8.RuneCountInString(d.lines.Line(f.Line))+1)
	return d.lines.Error(f)
}

func posOf(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }
