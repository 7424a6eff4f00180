// Package argcheck checks the arguments of a tool call against the tool's input schema, and explains what is wrong with
// them in words that a model can act on. Schema and arguments are both hostile: the upstream wrote the one, a program in
// a sandbox the other. What is too large or too deep to be checked in bounded time is not checked.
package argcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled input schema. It is safe for concurrent use.
type Schema struct {
	names []string // the properties, sorted
	open  bool     // other properties are allowed
	raw   json.RawMessage
	// check is nil if the schema cannot be compiled; meter counts the steps of a check.
	check *jsonschema.Schema
	meter *meter
}

// Real definitions have up to 3,000 objects, and arguments of more than a few levels are rare.
const (
	maxSchemaNodes = 5000
	maxArgsDepth   = 32
	maxArgsChecked = 1 << 20 // bytes
	maxSteps       = 100_000
)

// Compile compiles an input schema. One that cannot be compiled allows everything.
func Compile(input json.RawMessage) *Schema {
	s := &Schema{open: true, raw: input, meter: &meter{}}
	var keywords map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(input, &keywords) != nil {
		return s
	}
	if raw, ok := keywords["properties"]; ok && json.Unmarshal(raw, &properties) == nil {
		s.names = slices.Sorted(maps.Keys(properties))
		s.open = len(s.names) == 0 || isOpen(keywords)
	}
	s.check = compileSchema(input, s.meter)
	return s
}

// Checks reports whether the schema could be compiled.
func (s *Schema) Checks() bool { return s.check != nil }

// isOpen reports whether a schema can allow properties which its "properties" does not name.
func isOpen(keywords map[string]json.RawMessage) bool {
	for name, value := range keywords {
		switch name {
		case "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "dependencies", "unevaluatedProperties":
			return true
		case "additionalProperties":
			if string(bytes.TrimSpace(value)) != "false" {
				return true
			}
		}
	}
	return false
}

const (
	schemaURL = "tool:///input"
	meterURL  = "tool:///meter"
)

func compileSchema(input json.RawMessage, m *meter) (check *jsonschema.Schema) {
	defer func() {
		if recover() != nil { // some numbers in a schema make the library panic
			check = nil
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil
	}
	if size := measure(doc); size.nodes > maxSchemaNodes || size.hugeNumber {
		return nil
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertVocabs()
	compiler.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     meterURL,
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return m, nil },
	})
	if compiler.AddResource(schemaURL, doc) != nil {
		return nil
	}
	if check, err = compiler.Compile(schemaURL); err != nil {
		return nil
	}
	return check
}

// validate returns the violations of args, nil if there are none. checked is false if args cannot be checked.
func (s *Schema) validate(args json.RawMessage) (invalid *jsonschema.ValidationError, checked bool) {
	if s.check == nil || len(args) > maxArgsChecked {
		return nil, false
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, false
	}
	if size := measure(value); size.depth > maxArgsDepth || size.hugeNumber {
		return nil, false
	}
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	defer func() {
		if recover() != nil { // the meter stopped the check
			invalid, checked = nil, false
		}
	}()
	s.meter.steps = 0
	invalid, _ = errors.AsType[*jsonschema.ValidationError](s.check.Validate(value))
	return invalid, true
}

// noLoader refuses to load a schema: a $ref of an upstream must not read a file or fetch a URL.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(string) (any, error) { return nil, errors.New("schemas are not fetched") }

// meter stops a check that takes too many steps. It panics, as the library has no other way to stop: a few lines of
// anyOf and $ref can take exponential time.
type meter struct {
	mu    sync.Mutex
	steps int
}

// Validate counts one step; every part of a schema calls it.
func (m *meter) Validate(*jsonschema.ValidatorContext, any) {
	if m.steps++; m.steps > maxSteps {
		panic("too many steps")
	}
}

// extent is the size of a JSON value.
type extent struct {
	nodes, depth int
	hugeNumber   bool // a number in it is too large to compute with
}

func measure(v any) extent {
	size := extent{nodes: 1}
	add := func(part any) {
		inner := measure(part)
		size.nodes += inner.nodes
		size.depth = max(size.depth, inner.depth)
		size.hugeNumber = size.hugeNumber || inner.hugeNumber
	}
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			add(part)
		}
		size.depth++
	case []any:
		for _, part := range v {
			add(part)
		}
		size.depth++
	case json.Number:
		size.hugeNumber = isHugeNumber(v.String())
	}
	return size
}

// isHugeNumber reports whether a number is far beyond the range of a float64.
func isHugeNumber(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	n, err := strconv.Atoi(exponent)
	return len(number) > 400 || exponent != "" && (err != nil || max(n, -n) > 400)
}

var (
	_ jsonschema.URLLoader = noLoader{}
	_ jsonschema.SchemaExt = (*meter)(nil)
)
