package index

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/shape"
	"sallyport/internal/tool"
)

// Bounds of what is indexed of one tool. Definitions come from upstreams: a
// schema of a megabyte, or one that nests a thousand levels, must cost no more
// than a large honest one.
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

// Kind is what a document stands for.
type Kind string

// The kinds. A tool is the zero value.
const (
	Tool     Kind = ""
	Resource Kind = "resource"
	Template Kind = "template" // of resources
	Prompt   Kind = "prompt"
	Function Kind = "function" // of ours, for programs
	Skill    Kind = "skill"
	Workflow Kind = "workflow"
)

// Doc is what the index knows of one tool, or of something else that a program can use.
type Doc struct {
	// ID is unique among the documents of one kind. Its Name is what is looked up by
	// its exact name: a resource's is its URI.
	ID   tool.ID
	Kind Kind
	// Wire is the name as the upstream writes it; "" means the same as ID.Name.
	Wire string
	// Upstream holds words about the upstream: its title and what it says of itself.
	Upstream           string
	Title, Description string
	Params             []Param
	// Values are what the schema allows where it lists it ("open closed all"), as far as these are words.
	Values string
	// Results are the names of what is in a result, as far as that is declared or was observed.
	Results string
}

// Param is one parameter of a tool, or one property inside of a parameter.
type Param struct{ Name, Description string }

// same reports whether two documents say the same.
func (d *Doc) same(o *Doc) bool {
	return d.ID == o.ID && d.Kind == o.Kind && d.Wire == o.Wire && d.Upstream == o.Upstream && d.Title == o.Title &&
		d.Description == o.Description && d.Values == o.Values && d.Results == o.Results && sameParams(d.Params, o.Params)
}

// sameParams is quick where the two are one: an update hands most documents over as they were.
func sameParams(a, b []Param) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// FromTool makes the document of t. upstreamText holds words about its
// upstream (title, description, instructions). The parameters come from the
// input schema, those of nested objects too, and the names of results from the
// output schema and what was observed; whatever in it is not a schema is passed over, and depth, number and length are bounded.
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

// results returns the names of the members of a tool's results, each once, those
// that lie deepest left out where there are too many.
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
func members(s shape.Shape) (names []string) {
	level := []shape.Shape{s}
	for range maxParamDepth {
		var next []shape.Shape
		for _, s := range level {
			for _, inner := range []*shape.Shape{s.Elem, s.Values} {
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

// schema is as much of a JSON Schema as the index reads. Properties stay raw:
// a value of the wrong type spoils that property and nothing else.
type schema struct {
	properties  map[string]json.RawMessage
	description string
	inner       []json.RawMessage
	values      []json.RawMessage
}

// params returns the parameters, and the values that they may have where that is a list of words.
func params(input json.RawMessage) ([]Param, string) {
	if len(input) > maxSchemaBytes {
		return nil, ""
	}
	var found paramList
	level := []json.RawMessage{input}
	for range maxParamDepth {
		level = found.addLevel(level)
	}
	return found.params, cutText(strings.Join(found.values, " "), maxValues)
}

type paramList struct {
	params []Param
	values []string
}

// addLevel adds the properties of all schemas of one depth and
// returns the schemas of the next, so that what is cut is what lies deepest.
func (l *paramList) addLevel(level []json.RawMessage) []json.RawMessage {
	var next []json.RawMessage
	for _, raw := range level {
		s := readSchema(raw)
		l.addValues(s.values)
		for _, name := range sortedKeys(s.properties) {
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

// addValues adds those that are words, each once. A long list names things of the
// world, not what the tool does: of it the head is enough.
func (l *paramList) addValues(values []json.RawMessage) {
	for _, raw := range values[:min(len(values), maxEnum)] {
		var text string
		if len(raw) > maxValue+2 || json.Unmarshal(raw, &text) != nil || text == "" || slices.Contains(l.values, text) || len(l.values) == maxParams {
			continue
		}
		l.values = append(l.values, text)
	}
}

func readSchema(raw json.RawMessage) schema {
	fields := readObject(raw)
	s := schema{properties: readObject(fields["properties"])}
	if err := json.Unmarshal(fields["description"], &s.description); err != nil {
		s.description = ""
	}
	if items := fields["items"]; items != nil {
		s.inner = append(s.inner, items)
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		s.inner = append(s.inner, readArray(fields[word])...)
	}
	s.values = readArray(fields["enum"])
	return s
}

func readObject(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' || json.Unmarshal(trimmed, &fields) != nil {
		return nil
	}
	return fields
}

func readArray(raw json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &items) != nil {
		return nil
	}
	return items
}

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// cutText returns the first max bytes of s as valid UTF-8, no rune cut in two.
func cutText(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
