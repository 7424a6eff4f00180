package codegen

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// accepts reports whether the neutral type says that a value, as decode returns it, is right.
func accepts(t *typ, v any) bool {
	switch t.kind {
	case nullKind:
		return v == nil
	case boolKind:
		_, ok := v.(bool)
		return ok
	case intKind, numberKind:
		n, ok := v.(json.Number)
		return ok && (t.kind == numberKind || whole(n))
	case stringKind:
		_, ok := v.(string)
		return ok
	case literalKind:
		l, ok := literalOf(v)
		return ok && slices.Contains(t.values, l)
	case listKind, tupleKind:
		list, ok := v.([]any)
		return ok && acceptsItems(t, list)
	case mapKind, objectKind:
		o, ok := v.(*object)
		return ok && acceptsMembers(t.fields, further(t), o)
	case unionKind:
		for _, arm := range t.arms {
			if accepts(arm, v) {
				return true
			}
		}
		return false
	case refKind:
		return accepts(t.def.typ, v)
	}
	return true
}

func whole(n json.Number) bool {
	l, ok := numberLiteral(n)
	return ok && (l.kind == intKind || !strings.Contains(l.text, "."))
}

func further(t *typ) *typ {
	switch {
	case t.kind == mapKind:
		return t.elem
	case t.open:
		return anyType
	}
	return nil
}

func acceptsItems(t *typ, list []any) bool {
	if t.kind == tupleKind && !t.open && (len(list) < len(t.arms) || len(list) > len(t.arms) && t.elem == nil) {
		return false
	}
	for i, item := range list {
		elem := t.elem
		if i < len(t.arms) {
			elem = t.arms[i]
		}
		if elem != nil && !accepts(elem, item) {
			return false
		}
	}
	return true
}

// acceptsMembers checks the members of an object; further is the type of those without a field, nil for none.
func acceptsMembers(fields []field, further *typ, o *object) bool {
	known := map[string]bool{}
	for _, f := range fields {
		known[f.name] = true
		if !o.Has(f.name) && f.required || o.Has(f.name) && !accepts(f.typ, o.Get(f.name)) {
			return false
		}
	}
	for _, name := range o.Keys() {
		if !known[name] && (further == nil || !accepts(further, o.Get(name))) {
			return false
		}
	}
	return true
}

// soundness counts what was tried.
type soundness struct{ tools, valid, made int }

// check makes values for a tool's schemas and fails where a valid one is not what its type says.
func (s *soundness) check(t *testing.T, name string, tl tool.Tool, rounds int) {
	t.Helper()
	fn := model(tl)
	s.tools++
	s.schema(t, name+" input", tl.Input, rounds, func(v any) bool {
		o, ok := v.(*object) // a call has no other arguments
		return !ok || acceptsMembers(fn.params, extra(tl.Input, fn), o)
	})
	s.schema(t, name+" output", tl.Output, rounds, func(v any) bool { return accepts(fn.result, v) })
}

// extra is the type of further arguments. A plain "additionalProperties": true
// beside named ones is not taken by wrappers on purpose, so that a misspelt name is found.
func extra(schema json.RawMessage, fn function) *typ {
	root, _ := decode(schema)
	if o, ok := root.(*object); ok && o.Get("additionalProperties") == true {
		return anyType
	}
	return fn.extra
}

func (s *soundness) schema(t *testing.T, name string, raw json.RawMessage, rounds int, fits func(any) bool) {
	t.Helper()
	root, err := decode(raw)
	checker := compileSchema(raw)
	if err != nil || checker == nil {
		return
	}
	for i := range rounds {
		in := newInstances(root, uint64(i))
		in.left = 200
		data, err := json.Marshal(in.value([]any{root}, 0))
		if err != nil {
			t.Fatal(err)
		}
		s.made++
		v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if checker.Validate(v) != nil {
			continue
		}
		s.valid++
		if v, _ := decode(data); !fits(v) {
			t.Errorf("%s: the type refuses a valid value\nvalue:  %.400s\nschema: %.1000s", name, data, raw)
			return
		}
	}
}

func compileSchema(raw json.RawMessage) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	compiler := jsonschema.NewCompiler()
	if compiler.AddResource("test:///schema", doc) != nil {
		return nil
	}
	schema, err := compiler.Compile("test:///schema")
	if err != nil {
		return nil
	}
	return schema
}

// toolList reads a tools/list answer.
func toolList(t *testing.T, data []byte) []tool.Tool {
	t.Helper()
	var list struct {
		Tools []struct {
			Name                      string
			InputSchema, OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	tools := make([]tool.Tool, len(list.Tools))
	for i, l := range list.Tools {
		tools[i] = tool.Tool{ID: tool.ID{Upstream: "up", Name: tool.Identifier(l.Name)}, Wire: l.Name, Input: l.InputSchema, Output: l.OutputSchema}
	}
	return tools
}

func TestTypesAcceptWhatTheCatalogAccepts(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	paths, _ := filepath.Glob("../../shared/catalog/*.json")
	if len(paths) == 0 {
		t.Skip("no ../../shared/catalog beside the project: real tool lists are not checked")
	}
	var s soundness
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, tl := range toolList(t, data) {
			s.check(t, filepath.Base(path)+" "+tl.Wire, tl, 4)
		}
	}
	if s.valid*10 < s.made*8 {
		t.Errorf("%d of %d values were valid: too few to tell", s.valid, s.made)
	}
	t.Logf("%d tools, %d values, %d of them valid", s.tools, s.made, s.valid)
}

func TestTypesAcceptWhatTheGoldensAccept(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var s soundness
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "-- tools.json --\n")
		list, _, _ := strings.Cut(rest, "\n-- ")
		for _, tl := range toolList(t, []byte(list)) {
			s.check(t, filepath.Base(path)+" "+tl.Wire, tl, 60)
		}
	}
	t.Logf("%d tools, %d values, %d of them valid", s.tools, s.made, s.valid)
}

// TestTypesAcceptEveryDraft goes through what the drafts can say and the catalogue does not.
func TestTypesAcceptEveryDraft(t *testing.T) {
	var s soundness
	for i, schema := range drafts {
		before := s.valid
		tl := tool.Tool{ID: tool.ID{Upstream: "up", Name: "f"}}
		tl.Input, tl.Output = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`), json.RawMessage(schema)
		s.check(t, strconv.Itoa(i), tl, 120)
		if s.valid-before < 150 { // 120 of them for the input
			t.Errorf("%d: only %d valid values of %s", i, s.valid-before-120, schema)
		}
	}
	t.Logf("%d schemas, %d values, %d of them valid", s.tools, s.made, s.valid)
}
