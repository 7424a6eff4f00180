package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

// Limits of what is indexed of one tool. Definitions are untrusted: a schema of a
// megabyte, or with a thousand levels, must cost no more than a large regular one.
const (
	maxParams      = 64
	maxParamDepth  = 4
	maxParamText   = 400
	maxNameText    = 256
	maxDescription = 4000
	maxUpstream    = 1000
	maxResults     = 1000
	maxEnum        = 24  // values of one list
	maxValue       = 40  // bytes of one
	maxValues      = 600 // bytes of all
	maxSchemaBytes = 1 << 20
)

// Kind is what a document describes.
type Kind string

// The kinds. A tool is the zero value.
const (
	Tool     Kind = ""
	Resource Kind = "resource"
	Template Kind = "template" // of resources
	Prompt   Kind = "prompt"
	Function Kind = "function" // of the module "sallyport", for programs
	Skill    Kind = "skill"
	Workflow Kind = "workflow"
)

// Doc is the indexed content of one tool, or of something else that a program can use.
type Doc struct {
	// ID is unique among the documents of one kind. Its Name is matched exactly
	// too: for a resource it is the URI.
	ID   tool.ID
	Kind Kind
	// Wire is the name as the upstream writes it; "" means the same as ID.Name.
	Wire string
	// Upstream holds words about the upstream: its title and its own description.
	Upstream           string
	Title, Description string
	Params             []Param
	// Values holds the words of enums in the schema ("open closed all").
	Values string
	// Results holds the member names of results, declared or observed.
	Results string
}

// Param is one parameter of a tool, or one property inside a parameter.
type Param struct{ Name, Description string }

// equal reports whether two documents have the same content.
func (d *Doc) equal(o *Doc) bool {
	return d.ID == o.ID && d.Kind == o.Kind && d.Wire == o.Wire && d.Upstream == o.Upstream && d.Title == o.Title &&
		d.Description == o.Description && d.Values == o.Values && d.Results == o.Results && sameParams(d.Params, o.Params)
}

// sameParams compares two lists. It is fast for identical slices: an update passes most documents unchanged.
func sameParams(a, b []Param) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// FromTool makes the document of t. upstreamText holds words about its
// upstream (title, description, instructions). The parameters come from the
// input schema, including nested objects, and the names of results from the output
// schema and from observed results. FromTool skips whatever is not a schema, and bounds depth, number and length.
func FromTool(t tool.Tool, upstreamText string) Doc {
	found, values := params(t.Input)
	return Doc{
		ID:          t.ID,
		Wire:        cutText(t.Wire, maxNameText),
		Upstream:    cutText(upstreamText, maxUpstream),
		Title:       cutText(t.Title, maxNameText),
		Description: cutText(t.Description, maxDescription),
		Params:      found,
		Values:      values,
		Results:     results(t),
	}
}

// results returns the distinct member names of a tool's results. If there are too
// many it omits the deepest.
func results(t tool.Tool) string {
	var names []string
	declared, _ := params(t.Output)
	for _, p := range declared {
		names = append(names, p.Name)
	}
	if t.Observed != nil {
		names = append(names, members(t.Observed.Shape)...)
	}
	slices.Sort(names)
	return cutText(strings.Join(slices.Compact(names), " "), maxResults)
}

// members returns the names of the members of a shape, level by level.
func members(s jsontype.Shape) (names []string) {
	level := []jsontype.Shape{s}
	for range maxParamDepth {
		var next []jsontype.Shape
		for _, s := range level {
			for _, inner := range []*jsontype.Shape{s.Elem, s.Values} {
				if inner != nil {
					next = append(next, *inner)
				}
			}
			for _, f := range s.Fields[:min(len(s.Fields), maxParams)] {
				names, next = append(names, cutText(f.Name, maxNameText)), append(next, f.Shape)
			}
		}
		level = next[:min(len(next), maxParams)]
	}
	return names[:min(len(names), maxParams)]
}

// schema is the part of a JSON Schema that the index reads.
type schema struct {
	properties  map[string]any
	description string
	inner       []any
	values      []any
}

// params returns the parameters, and the words of their enums.
func params(input json.RawMessage) ([]Param, string) {
	if len(input) > maxSchemaBytes {
		return nil, ""
	}
	var found paramList
	level := []any{decodeSchema(input)}
	for range maxParamDepth {
		level = found.addLevel(level)
	}
	return found.params, cutText(strings.Join(found.values, " "), maxValues)
}

// decodeSchema decodes a whole schema at once, since decoding each level again dominated indexing time.
// It returns nil for invalid JSON.
func decodeSchema(input json.RawMessage) (value any) {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber() // a number too large for a float must not fail the schema
	if dec.Decode(&value) != nil {
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return value
}

type paramList struct {
	params []Param
	values []string
}

// addLevel adds the properties of all schemas of one depth and returns the
// schemas of the next, so that the limit cuts the deepest ones.
func (l *paramList) addLevel(level []any) []any {
	var next []any
	for _, value := range level {
		s := readSchema(value)
		l.addValues(s.values)
		for _, name := range slices.Sorted(maps.Keys(s.properties)) {
			if len(l.params) == maxParams {
				return nil
			}
			p := s.properties[name]
			l.params = append(l.params, Param{
				Name:        cutText(name, maxNameText),
				Description: cutText(readSchema(p).description, maxParamText),
			})
			next = append(next, p)
		}
		next = append(next, s.inner...)
	}
	return next[:min(len(next), maxParams)]
}

// addValues adds the distinct values that are words. It reads only the start of a
// long list, which names data and not what the tool does.
func (l *paramList) addValues(values []any) {
	for _, value := range values[:min(len(values), maxEnum)] {
		text, _ := value.(string)
		if len(text) > maxValue || text == "" || slices.Contains(l.values, text) || len(l.values) == maxParams {
			continue
		}
		l.values = append(l.values, text)
	}
}

// readSchema reads one level. It ignores members of the wrong type.
func readSchema(value any) (s schema) {
	fields, _ := value.(map[string]any)
	s.properties, _ = fields["properties"].(map[string]any)
	s.description, _ = fields["description"].(string)
	if items := fields["items"]; items != nil {
		s.inner = append(s.inner, items)
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := fields[word].([]any)
		s.inner = append(s.inner, list...)
	}
	s.values, _ = fields["enum"].([]any)
	return s
}

// cutText returns at most max bytes of s as valid UTF-8, cut at a rune boundary.
func cutText(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
