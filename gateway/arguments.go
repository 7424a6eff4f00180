package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// argumentCheck refuses arguments that do not fit a tool's input schema before
// the upstream sees them, with an error that tells what would fit. Schemas are
// compiled when a tool is first called. A schema that cannot be compiled is no
// reason to refuse a call: the upstream then judges for itself.
type argumentCheck struct {
	catalog *catalog
	mu      sync.Mutex
	schemas map[string]*inputSchema // by the tool's digest
}

// inputSchema is a compiled input schema; check is nil where it could not be compiled.
type inputSchema struct {
	check *jsonschema.Schema
	names []string // the properties
	open  bool     // other properties are expressly allowed
}

// maxSchemas bounds the cache; a catalog that changes for ever must not fill the memory.
const maxSchemas = 5000

func newArgumentCheck(c *catalog) *argumentCheck {
	return &argumentCheck{catalog: c, schemas: map[string]*inputSchema{}}
}

func (a *argumentCheck) middleware(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		t, err := a.catalog.tool(call.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		if len(bytes.TrimSpace(call.Args)) == 0 {
			call.Args = json.RawMessage("{}")
		}
		if err := a.schema(t).refuse(call.Args); err != nil {
			return tool.Result{}, err
		}
		return next(ctx, call)
	}
}

func (a *argumentCheck) schema(t tool.Tool) *inputSchema {
	digest := t.Digest()
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.schemas[digest]; ok {
		return s
	}
	if len(a.schemas) >= maxSchemas {
		clear(a.schemas)
	}
	s := compileSchema(t.Input)
	a.schemas[digest] = s
	return s
}

func compileSchema(input json.RawMessage) *inputSchema {
	s := &inputSchema{}
	var shape struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Additional json.RawMessage            `json:"additionalProperties"`
		Pattern    json.RawMessage            `json:"patternProperties"`
	}
	if json.Unmarshal(input, &shape) != nil {
		return s
	}
	for name := range shape.Properties {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	s.open = shape.Pattern != nil || shape.Additional != nil && string(bytes.TrimSpace(shape.Additional)) != "false" || len(s.names) == 0
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return s
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if compiler.AddResource(schemaURL, doc) != nil {
		return s
	}
	s.check, _ = compiler.Compile(schemaURL)
	return s
}

const schemaURL = "tool:///input"

// noLoader refuses to fetch a schema: a $ref of an upstream must not make us read a file or a URL.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("schemas are not fetched") }

// refuse returns what is wrong with args, nil if they fit.
func (s *inputSchema) refuse(args json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	object, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return &tool.Error{Kind: tool.Invalid, Message: "arguments must be one JSON object"}
	}
	if err := s.refuseUnknown(object); err != nil || s.check == nil {
		return err
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](s.check.Validate(value))
	if !ok {
		return nil
	}
	return &tool.Error{Kind: tool.Invalid, Message: "wrong arguments: " + describeInvalid(invalid), Hint: s.accepted()}
}

// refuseUnknown catches misspelt names even where the schema forgot to forbid
// them: most servers ignore what they do not know, and a model never learns.
func (s *inputSchema) refuseUnknown(object map[string]any) error {
	if s.open {
		return nil
	}
	for name := range object {
		if _, known := slices.BinarySearch(s.names, name); known {
			continue
		}
		err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown parameter %q", plain.Line(name, 80)), Hint: s.accepted()}
		if near := nearest.Of(name, s.names); near != "" {
			err.Hint = fmt.Sprintf("did you mean %s? %s", near, err.Hint)
		}
		return err
	}
	return nil
}

func (s *inputSchema) accepted() string {
	if len(s.names) == 0 {
		return ""
	}
	names := s.names[:min(len(s.names), 30)]
	return plain.Line("parameters: "+strings.Join(names, ", "), 600)
}

// describeInvalid names the first faults: where, and what was expected.
func describeInvalid(err *jsonschema.ValidationError) string {
	var faults []string
	printer := message.NewPrinter(language.English)
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 && len(faults) < 3 {
			faults = append(faults, plain.Line(place(e.InstanceLocation)+e.ErrorKind.LocalizedString(printer), 300))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(err)
	return strings.Join(faults, "; ")
}

func place(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return strings.Join(path, ".") + ": "
}

var _ jsonschema.URLLoader = noLoader{}
