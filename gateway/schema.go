package gateway

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

// inputSchema is a tool's input schema, made ready to check arguments. Schema
// and arguments are both hostile: the one was written by the upstream, the other
// by a program in a sandbox, and the checker recurses, has no time limit, and
// panics on odd numbers. What is too large or too deep for it is not checked.
type inputSchema struct {
	names []string // the properties, sorted
	open  bool     // there may be others
	raw   json.RawMessage
	// check is nil where the schema cannot be compiled; meter counts its steps.
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

func compileSchema(input json.RawMessage) *inputSchema {
	s := &inputSchema{open: true, raw: input, meter: &meter{}}
	var keywords map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(input, &keywords) != nil {
		return s
	}
	if raw, ok := keywords["properties"]; ok && json.Unmarshal(raw, &properties) == nil {
		s.names = slices.Sorted(maps.Keys(properties))
		s.open = len(s.names) == 0 || isOpen(keywords)
	}
	s.check = compile(input, s.meter)
	return s
}

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

func compile(input json.RawMessage, m *meter) (check *jsonschema.Schema) {
	defer func() {
		if recover() != nil { // some numbers in a schema do that
			check = nil
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil
	}
	if size := measure(doc); size.nodes > maxSchemaNodes || size.odd {
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

// validate returns what of args does not fit, nil if all fits or cannot be checked.
func (s *inputSchema) validate(args json.RawMessage) (invalid *jsonschema.ValidationError) {
	if s.check == nil || len(args) > maxArgsChecked {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil
	}
	if size := measure(value); size.depth > maxArgsDepth || size.odd {
		return nil
	}
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	defer func() {
		if recover() != nil { // the meter has run out
			invalid = nil
		}
	}()
	s.meter.steps = 0
	invalid, _ = errors.AsType[*jsonschema.ValidationError](s.check.Validate(value))
	return invalid
}

// noLoader refuses to fetch a schema: a $ref of an upstream must not make us read a file or a URL.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(string) (any, error) { return nil, errors.New("schemas are not fetched") }

// meter stops a check that takes too long, by a panic, which is the only way
// out of it: a few lines of anyOf and $ref can ask for more steps than there is time.
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

// extent is how large a JSON value is.
type extent struct {
	nodes, depth int
	odd          bool // it holds a number that takes long to compute with
}

func measure(v any) extent {
	size := extent{nodes: 1}
	add := func(part any) {
		inner := measure(part)
		size.nodes += inner.nodes
		size.depth = max(size.depth, inner.depth)
		size.odd = size.odd || inner.odd
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
		size.odd = isOdd(v.String())
	}
	return size
}

// isOdd reports whether a number is far beyond what a float can hold.
func isOdd(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	n, err := strconv.Atoi(exponent)
	return len(number) > 400 || exponent != "" && (err != nil || max(n, -n) > 400)
}

var (
	_ jsonschema.URLLoader = noLoader{}
	_ jsonschema.SchemaExt = (*meter)(nil)
)
