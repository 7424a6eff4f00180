package yamlstrict

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// JSON returns the root of a JSON file, as Document does for YAML: both have the same nodes and decoder.
func (s *Source) JSON(empty string) (*yaml.Node, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(s.data)) == 0 {
		return nil, &Error{File: s.Path, Message: empty}
	}
	var all json.RawMessage
	if err := json.Unmarshal(s.data, &all); err != nil {
		return nil, s.jsonError(err)
	}
	r := jsonReader{s: s, dec: json.NewDecoder(bytes.NewReader(s.data)), line: 1, column: 1}
	r.dec.UseNumber()
	return r.value(r.next())
}

func (s *Source) jsonError(err error) error {
	at := len(s.data)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = max(int(syntax.Offset)-1, 0)
	}
	for at > 0 && at < len(s.data) && !utf8.RuneStart(s.data[at]) {
		at--
	}
	return s.faultAt(at, "is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// jsonReader builds nodes from valid JSON.
type jsonReader struct {
	s   *Source
	dec *json.Decoder
	// at is the current offset, line and column its position.
	at, line, column int
}

// next returns the next token, and moves to its start.
func (r *jsonReader) next() (json.Token, error) {
	from := int(r.dec.InputOffset())
	for from < len(r.s.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.s.data[from]) >= 0 {
		from++
	}
	r.move(from)
	return r.dec.Token()
}

func (r *jsonReader) move(to int) {
	for r.line < len(r.s.starts) && r.s.starts[r.line] <= to {
		r.at, r.column = r.s.starts[r.line], 1
		r.line++
	}
	r.column += utf8.RuneCount(r.s.data[r.at:to])
	r.at = to
}

func (r *jsonReader) value(token json.Token, err error) (*yaml.Node, error) {
	if err != nil {
		return nil, r.s.jsonError(err)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line, Column: r.column}
	switch v := token.(type) {
	case json.Delim:
		return n, r.inside(n, v)
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", v.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if v {
			n.Value = "true"
		}
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// inside reads the content and the end of a list or a mapping.
func (r *jsonReader) inside(n *yaml.Node, open json.Delim) error {
	n.Kind, n.Tag, n.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for r.dec.More() {
		child, err := r.value(r.next())
		if err != nil {
			return err
		}
		n.Content = append(n.Content, child)
	}
	_, err := r.next()
	return err
}
