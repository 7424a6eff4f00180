package httpapi

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
)

// object is a JSON object; names are written sorted.
type object = map[string]any

// schemas turns Go types into JSON Schemas (2020-12). Structs become components, which others refer to.
type schemas struct {
	tb    testing.TB
	parts map[string]object
	types map[string]reflect.Type
	read  map[string]*source
}

func newSchemas(tb testing.TB) *schemas {
	tb.Helper()
	return &schemas{tb: tb, parts: map[string]object{}, types: map[string]reflect.Type{}, read: map[string]*source{}}
}

// Types that are in JSON something other than their fields.
var special = map[reflect.Type]object{
	reflect.TypeFor[time.Time]():       {"type": "string", "format": "date-time"},
	reflect.TypeFor[time.Duration]():   {"type": "integer", "description": "in nanoseconds"},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[any]():             {},
	reflect.TypeFor[[]byte]():          {"type": "string", "contentEncoding": "base64"},
}

// of is the schema of a type, of a request's body if input.
func (s *schemas) of(t reflect.Type, input bool) object {
	if known, ok := special[t]; ok {
		return maps.Clone(known)
	}
	switch {
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		s.tb.Fatalf("%v writes itself as JSON: say in special how", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return s.text(t)
	case reflect.Pointer:
		return s.of(t.Elem(), input)
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem(), input)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem(), input)}
	case reflect.Struct:
		return object{"$ref": "#/components/schemas/" + s.part(t, input)}
	}
	s.tb.Fatalf("no schema for %v", t)
	return nil
}

// text is a string, of the constants of its type if there are some.
func (s *schemas) text(t reflect.Type) object {
	schema := object{"type": "string"}
	if t.PkgPath() != "" {
		if of := s.source(t.PkgPath()).constants[t.Name()]; len(of) > 0 {
			schema["enum"] = of
		}
	}
	return schema
}

// part is the name of a struct's component, which is made on first use.
func (s *schemas) part(t reflect.Type, input bool) string {
	name := t.Name()
	if seen, ok := s.types[name]; ok {
		if seen != t {
			s.tb.Fatalf("%v and %v would have one name in the document", seen, t)
		}
		return name
	}
	s.types[name] = t
	schema := object{"type": "object"}
	s.parts[name] = schema
	if input {
		schema["additionalProperties"] = false
	}
	if says := s.source(t.PkgPath()).types[name]; says != "" && !strings.Contains(says, name+" is what ") {
		schema["description"] = says
	}
	properties, required := object{}, []string{}
	for _, f := range s.fields(t) {
		properties[f.name] = s.property(f, input)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return name
}

// property is the schema of a field, with its description and its bounds.
func (s *schemas) property(f member, input bool) object {
	schema := s.of(f.Type, input)
	says, instead, old := strings.Cut(f.says, " Deprecated: ")
	if old {
		schema["deprecated"] = true
		says += " Deprecated: " + instead
	}
	if says != "" {
		schema["description"] = says
	}
	if f.Type == reflect.TypeFor[time.Duration]() && !strings.Contains(f.says, "nanoseconds") {
		schema["description"] = strings.TrimSpace(f.says + " In nanoseconds.")
	}
	b := boundsOf(f.StructField)
	if b.object {
		schema["type"] = "object"
	}
	if len(b.words) > 0 {
		schema["enum"] = b.words
	}
	if b.most != 0 && f.Type.Kind() == reflect.String {
		schema["maxLength"] = int(b.most)
	} else if b.most != 0 {
		schema["minimum"], schema["maximum"] = b.least, b.most
	}
	return schema
}

// A member is a field as JSON has it.
type member struct {
	reflect.StructField
	name, says string
	optional   bool
}

// fields are those of a struct and of the structs that it embeds.
func (s *schemas) fields(t reflect.Type) (all []member) {
	names, own := map[string]string{}, map[string]bool{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		own[name] = true
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, slices.DeleteFunc(s.fields(f.Type), func(m member) bool { return own[m.name] })...)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			s.tb.Errorf("%v.%s has no name in JSON", t, f.Name)
		}
		names[f.Name] = name
		all = append(all, member{f, name, s.source(t.PkgPath()).fields[t.Name()+"."+f.Name], strings.Contains(options, "omit")})
	}
	for i, f := range all {
		all[i].says = briefly(f.name, renameTypes(f.says, names))
	}
	return all
}

var word1 = regexp.MustCompile(`\b[A-Z][A-Za-z]*\b`)

// renameTypes has a comment name fields as JSON does.
func renameTypes(text string, names map[string]string) string {
	return word1.ReplaceAllStringFunc(text, func(word string) string {
		if name, ok := names[word]; ok {
			return name
		}
		return word
	})
}

// briefly leaves out that a field is what follows: a model pays for each word.
func briefly(name, says string) string {
	for _, start := range []string{name + " is ", name + " are "} {
		if rest, ok := strings.CutPrefix(says, start); ok {
			return rest
		}
	}
	return says
}

// source is what the Go files of a package say of its types.
type source struct {
	// types and fields ("Type.Field") have comments, constants the values of a type's constants in their order.
	types, fields map[string]string
	constants     map[string][]string
}

// source reads a package of this module; of others nothing is known.
func (s *schemas) source(path string) *source {
	if known, ok := s.read[path]; ok {
		return known
	}
	from := &source{types: map[string]string{}, fields: map[string]string{}, constants: map[string][]string{}}
	s.read[path] = from
	below, ok := strings.CutPrefix(path, "sallyport/")
	if !ok {
		return from
	}
	files, err := filepath.Glob(filepath.Join(testutil.ModuleRoot(s.tb), filepath.FromSlash(below), "*.go"))
	if err != nil || len(files) == 0 {
		s.tb.Fatalf("no source of %s: %v", path, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			s.tb.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			s.tb.Fatal(err)
		}
		for _, d := range file.Decls {
			if general, ok := d.(*ast.GenDecl); ok {
				from.declare(general)
			}
		}
	}
	return from
}

// declare takes what a declaration says of types and of typed constants.
func (s *source) declare(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = comment(spec.Doc, d.Doc)
			if of, ok := spec.Type.(*ast.StructType); ok {
				s.structure(spec.Name.Name, of)
			}
		case *ast.ValueSpec:
			kind, ok := spec.Type.(*ast.Ident)
			if !ok || d.Tok != token.CONST || len(spec.Values) != 1 {
				continue
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				text, _ := strconv.Unquote(value.Value)
				s.constants[kind.Name] = append(s.constants[kind.Name], text)
			}
		}
	}
}

func (s *source) structure(name string, of *ast.StructType) {
	for _, f := range of.Fields.List {
		for _, ident := range f.Names {
			s.fields[name+"."+ident.Name] = comment(f.Doc, f.Comment)
		}
	}
}

var (
	link = regexp.MustCompile(`\[(\w+\.)?(\w+(?:\.\w+)?)\]`)
	// inside is where a comment points readers of the source to.
	inside = regexp.MustCompile(`(, |; | \()see \[[^\]]+\]\)?`)
)

// comment is the first that there is, in one line and without links.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return link.ReplaceAllString(inside.ReplaceAllString(text, ""), "$2")
		}
	}
	return ""
}

// TestSchemas: what a schema of a type says.
func TestSchemas(t *testing.T) {
	type inner struct {
		// Deep is how deep it is.
		Deep int `json:"deep" min:"1" max:"9"`
	}
	type outer struct {
		inner
		When  time.Time         `json:"when,omitzero"`
		Took  time.Duration     `json:"took"`
		Any   json.RawMessage   `json:"any,omitempty" type:"object"`
		More  []*inner          `json:"more"`
		Names map[string]string `json:"names"`
		Of    string            `json:"of" enum:"a,b"`
		Short string            `json:"short" max:"5"`
		Gone  int               `json:"-"`
	}
	s := newSchemas(t)
	got, err := json.Marshal([]any{s.of(reflect.TypeFor[outer](), true), s.parts})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"$ref":"#/components/schemas/outer"},{"inner":{"additionalProperties":false,"properties":{"deep":{"maximum":9,"minimum":1,"type":"integer"}},"required":["deep"],"type":"object"},` +
		`"outer":{"additionalProperties":false,"properties":{"any":{"type":"object"},"deep":{"maximum":9,"minimum":1,"type":"integer"},"more":{"items":{"$ref":"#/components/schemas/inner"},"type":"array"},` +
		`"names":{"additionalProperties":{"type":"string"},"type":"object"},"of":{"enum":["a","b"],"type":"string"},"short":{"maxLength":5,"type":"string"},` +
		`"took":{"description":"In nanoseconds.","type":"integer"},"when":{"format":"date-time","type":"string"}},"required":["deep","took","more","names","of","short"],"type":"object"}}]`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if names := s.source("sallyport/internal/approval").constants["Scope"]; !slices.Equal(names, []string{"once", "execution", "session"}) {
		t.Errorf("the scopes are %q", names)
	}
	if says := s.source("sallyport/gateway/httpapi").fields["Problem.Detail"]; !strings.HasPrefix(says, "Detail says what is wrong") {
		t.Errorf("the comment is %q", says)
	}
}
