package config

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"sallyport/internal/access"
	"sallyport/internal/literal"
	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// scalar reads a value with parse, which returns what is wrong with it or "".
func scalar[T any](d *decoder, into *T, parse func(*yaml.Node) (T, string)) reader {
	return yamlstrict.Scalar(d.Decoder, into, parse)
}

func parseSize(n *yaml.Node) (Size, string) {
	size, err := ParseSize(n.Value)
	if err != nil {
		return 0, err.Error()
	}
	return size, ""
}

func parseRate(n *yaml.Node) (access.Rate, string) {
	rate, err := access.ParseRate(n.Value)
	if err != nil {
		return access.Rate{}, err.Error()
	}
	return rate, ""
}

func (d *decoder) secrets(into *Secrets) reader {
	return func(at path, n *yaml.Node) {
		*into = Secrets{}
		d.Each(at, n, func(under path, key, value *yaml.Node) {
			var text string
			d.Text(&text)(under, value)
			(*into)[key.Value] = text
		})
	}
}

// path reads a path that starts at the file's directory.
func (d *decoder) path(into *string) reader {
	return func(at path, n *yaml.Node) {
		var text string
		if d.Text(&text)(at, n); text != "" && noTilde(d.Decoder, at, n) {
			*into = reference.Absolute(d.dir, text)
		}
	}
}

// program reads a path like path, but keeps a name without a slash, to be looked up in PATH.
func (d *decoder) program(into *string) reader {
	return func(at path, n *yaml.Node) {
		d.Text(into)(at, n)
		if strings.ContainsRune(*into, filepath.Separator) && noTilde(d.Decoder, at, n) {
			*into = reference.Absolute(d.dir, *into)
		}
	}
}

// expander returns expandText with a decoder.
func expander(d *decoder) func(path, *yaml.Node) string {
	return func(at path, n *yaml.Node) string { return expandText(d, at, n) }
}

// expandText returns the text of n with its references filled in.
func expandText(d *decoder, at path, n *yaml.Node) string {
	noBackslash(d.Decoder, at, n)
	if len(at) > 2 && at[0] == "upstreams" {
		if message := literal.Warning(at[2], n.Value); message != "" {
			d.warnings = append(d.warnings, yamlstrict.Fault{Line: n.Line, Column: n.Column, Message: message})
		}
	}
	text, bad := d.refs.Expand(n.Value)
	noteManaged(d, n)
	for _, b := range bad {
		if d.Full() {
			break
		}
		if b.Missing == "" || !d.refs.Lenient {
			failReference(d, at, n, b)
		}
	}
	return text
}

func failReference(d *decoder, at path, n *yaml.Node, b reference.Fault) {
	if b.Missing != "" && d.onMissing != nil {
		d.SetBad(at)
		if b.Managed {
			b.Where = where(d, n, b)
		}
		d.onMissing(at, n, b)
		return
	}
	line, column := positionOf(d, n, b)
	d.FailAt(at, line, column, b.Text(owner(at)))
}

// positionOf returns the position of a reference in the text of n.
func positionOf(d *decoder, n *yaml.Node, b reference.Fault) (line, column int) {
	start, _, _ := strings.Cut(n.Value[b.Offset:], "\n")
	start = start[:min(len(start), len("${")+len(b.Missing))]
	return findReference(d.Source, n, strings.Count(n.Value[:b.Offset], "${"), start)
}

// maxLines bounds the lines in which find searches.
const maxLines = 1000

// findReference returns the position of the reference number nth, from 0, in the text of n, which
// starts with text. If it is not found, as it is written with escapes, the position is
// that of n.
func findReference(s *yamlstrict.Source, n *yaml.Node, nth int, text string) (line, column int) {
	for line := n.Line; line < n.Line+maxLines; line++ {
		here, from := s.Line(line), 0
		if line == n.Line {
			from = yamlstrict.OffsetOf(here, n.Column)
		}
		if count := strings.Count(here[from:], "${"); nth >= count {
			nth -= count
			continue
		}
		at := from + strings.Index(here[from:], "${")
		for range nth {
			at += 2 + strings.Index(here[at+2:], "${")
		}
		if strings.HasPrefix(here[at:], text) {
			return line, utf8.RuneCountInString(here[:at]) + 1
		}
		break
	}
	return n.Line, n.Column
}
