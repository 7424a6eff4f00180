// Package envfile reads and extends files of environment variables: lines such as export NAME='value'. They hold secrets:
// errors show no value, and a file that others can read is refused.
package envfile

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The format is the common subset of shells and dotenv libraries: NAME=value, with or
// without "export", '...', "...", \ and #. Where they differ it is an error, except for
// "$", which is always literal. The usual libraries do not fit: they expand variables,
// and show values in their errors.

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// LineError is an error in a line, counted from 1. It contains no text of the line except names.
type LineError struct {
	Line    int
	Message string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// Parse parses the content of a file. The error of an invalid line is a *[LineError].
func Parse(data []byte) (map[string]string, error) {
	p := parser{rest: strings.TrimPrefix(string(data), "\ufeff"), line: 1}
	vars, lines := map[string]string{}, map[string]int{}
	for p.rest != "" {
		start := p.line
		name, value, err := p.next()
		switch {
		case err != nil:
			return nil, &LineError{start, err.Error()}
		case name == "":
			continue
		case lines[name] > 0:
			return nil, &LineError{start, fmt.Sprintf("%.80s is there already, on line %d", name, lines[name])}
		case strings.ContainsRune(value, 0):
			return nil, &LineError{start, "the value has a NUL byte"}
		}
		vars[name], lines[name] = value, start
	}
	return vars, nil
}

// parser is the state of Parse; line is the line number of rest.
type parser struct {
	rest string
	line int
}

// next reads one variable; name is "" for a line without one.
func (p *parser) next() (name, value string, err error) {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.end() {
		return "", "", nil
	}
	if rest, ok := strings.CutPrefix(p.rest, "export"); ok && strings.IndexAny(rest, " \t") == 0 {
		p.rest = strings.TrimLeft(rest, " \t")
	}
	line, _, _ := strings.Cut(p.rest, "\n")
	name, _, ok := strings.Cut(line, "=")
	if !ok || !variableForm.MatchString(name) {
		return "", "", errors.New("must be NAME=value, without a space around the =")
	}
	p.rest = p.rest[len(name)+1:]
	value, err = p.value()
	return name, value, err
}

// end skips the end of a line, with a comment, and reports whether there was one.
func (p *parser) end() bool {
	line, rest, _ := strings.Cut(p.rest, "\n")
	if line != "" && line != "\r" && line[0] != '#' {
		return false
	}
	p.rest = rest
	p.line++
	return true
}

// value reads a value: quoted and unquoted pieces up to the end of the line.
func (p *parser) value() (string, error) {
	var out strings.Builder
	for {
		if p.rest == "" || p.rest[0] == '\n' || strings.HasPrefix(p.rest, "\r\n") {
			p.end()
			return out.String(), nil
		}
		piece, err := p.piece(p.rest[0])
		if err != nil {
			return "", err
		}
		if piece == nil {
			return out.String(), nil
		}
		out.WriteString(*piece)
	}
}

// piece reads the piece that begins with c; nil is the end of the line.
func (p *parser) piece(c byte) (*string, error) {
	switch c {
	case ' ', '\t':
		p.rest = strings.TrimLeft(p.rest, " \t")
		if !p.end() {
			return nil, errors.New("a value with a space must be in quotes")
		}
		return nil, nil
	case '\'':
		text, rest, ok := strings.Cut(p.rest[1:], "'")
		return p.takeQuoted(text, rest, ok)
	case '"':
		return p.readDoubleQuoted()
	case '\\':
		return p.readEscape(` '"\#$`, "put it into single quotes")
	}
	text := p.rest
	if at := strings.IndexAny(text[1:], " \t'\"\\\r\n"); at >= 0 {
		text = text[:at+1]
	}
	p.rest = p.rest[len(text):]
	return &text, nil
}

func (p *parser) takeQuoted(text, rest string, closed bool) (*string, error) {
	if !closed {
		return nil, errors.New("a quote is not closed")
	}
	p.line += strings.Count(text, "\n")
	p.rest = rest
	return &text, nil
}

// readDoubleQuoted reads a string in double quotes.
func (p *parser) readDoubleQuoted() (*string, error) {
	var out strings.Builder
	p.rest = p.rest[1:]
	for {
		at := strings.IndexAny(p.rest, `"\`)
		if at < 0 {
			return p.takeQuoted("", "", false)
		}
		text := p.rest[:at]
		p.rest = p.rest[at:]
		out.WriteString(text)
		p.line += strings.Count(text, "\n")
		if p.rest[0] == '"' {
			whole := out.String()
			p.rest = p.rest[1:]
			return &whole, nil
		}
		c, err := p.readEscape("\"\\$`nrt", "use single quotes for a plain one")
		if err != nil {
			return nil, err
		}
		out.WriteString(unescape(*c))
	}
}

// readEscape reads a "\" and one of the allowed characters.
func (p *parser) readEscape(allowed, otherwise string) (*string, error) {
	if len(p.rest) < 2 || !strings.Contains(allowed, p.rest[1:2]) {
		return nil, errors.New(`a "\" cannot stand here; ` + otherwise)
	}
	c := p.rest[1:2]
	p.rest = p.rest[2:]
	return &c, nil
}

func unescape(c string) string {
	switch c {
	case "n":
		return "\n"
	case "r":
		return "\r"
	case "t":
		return "\t"
	}
	return c
}

// Merge returns data with a line added for each of vars that it does not have. A
// variable that data has with another value is an error, which shows neither value.
func Merge(data []byte, vars map[string]string) ([]byte, error) {
	old, err := Parse(data)
	if err != nil {
		return nil, err
	}
	out := slices.Clip(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		switch value, ok := old[name]; {
		case !variableForm.MatchString(name) || strings.ContainsRune(vars[name], 0):
			return nil, fmt.Errorf("%.80q cannot be written: its name or value is none of a variable", name)
		case !ok:
			out = append(out, "export "+name+"='"+strings.ReplaceAll(vars[name], "'", `'\''`)+"'\n"...)
		case value != vars[name]:
			return nil, fmt.Errorf("%.80s has another value there already", name)
		}
	}
	return out, nil
}
