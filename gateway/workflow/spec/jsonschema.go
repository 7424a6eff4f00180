package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/yamlstrict"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"gopkg.in/yaml.v3"
)

// types are the types of JSON Schema.
var types = []string{"string", "integer", "number", "boolean", "array", "object", "null"}

// A keyword is a keyword of JSON Schema, with the shape of its values; the shapes sub, subs and subMap contain schemas.
type keyword struct{ name, shape, doc string }

const (
	typeShape = `{"$ref":"#/$defs/type"}`
	sub       = `{"$ref":"#/$defs/schema"}`
	subs      = `{"type":"array","minItems":1,"items":{"$ref":"#/$defs/schema"}}`
	subMap    = `{"type":"object","additionalProperties":{"$ref":"#/$defs/schema"}}`
	number    = `{"type":"number"}`
	natural   = `{"type":"integer","minimum":0}`
	wordList  = `{"type":"array","items":{"type":"string"},"uniqueItems":true}`
)

// keywords are the keywords of JSON Schema 2020-12 except references: schemas in a definition are written out.
var keywords = []keyword{
	{"type", typeShape, "string, integer, number, boolean, array, object or null, or a list of these"},
	{"description", wordsShape, "what it is, for people and models"},
	{"title", textShape, "a short name for people"},
	{"enum", `{"type":"array"}`, "the values that it may have"},
	{"const", anyShape, "the one value that it may have"},
	{"examples", `{"type":"array"}`, "examples, for people and models"},
	{"default", anyShape, "its default: a note for readers"},
	{"format", textShape, "what a text is, as email, uri, date or date-time"},
	{"pattern", `{"type":"string","format":"regex"}`, "a regular expression (RE2) that a text must match"},
	{"minLength", natural, "characters of a text, at least"},
	{"maxLength", natural, "characters of a text, at most"},
	{"minimum", number, "of a number, at least"},
	{"maximum", number, "of a number, at most"},
	{"exclusiveMinimum", number, "of a number, more than"},
	{"exclusiveMaximum", number, "of a number, less than"},
	{"multipleOf", `{"type":"number","exclusiveMinimum":0}`, "a divisor of a number"},
	{"items", sub, "the schema of a list's items"},
	{"prefixItems", subs, "the schemas of a list's first items"},
	{"contains", sub, "what an item of a list must be"},
	{"minContains", natural, "how many of them, at least"},
	{"maxContains", natural, "how many of them, at most"},
	{"minItems", natural, "items of a list, at least"},
	{"maxItems", natural, "items of a list, at most"},
	{"uniqueItems", boolShape, "the items of a list are unique"},
	{"properties", subMap, "the schemas of an object's members, by name"},
	{"required", wordList, "the members that an object must have"},
	{"additionalProperties", sub, "the schema of other members; false allows none"},
	{"patternProperties", subMap, "the schemas of members by a regular expression of their names"},
	{"propertyNames", sub, "the schema of members' names"},
	{"minProperties", natural, "members of an object, at least"},
	{"maxProperties", natural, "members of an object, at most"},
	{"dependentRequired", `{"type":"object","additionalProperties":` + wordList + `}`, "members that others require"},
	{"dependentSchemas", subMap, "schemas that members require"},
	{"allOf", subs, "schemas that must all hold"},
	{"anyOf", subs, "schemas of which one must hold"},
	{"oneOf", subs, "schemas of which exactly one must hold"},
	{"not", sub, "a schema that must not hold"},
	{"if", sub, "a schema that decides between then and else"},
	{"then", sub, "what must hold if it does"},
	{"else", sub, "what must hold if it does not"},
	{"unevaluatedItems", sub, "the schema of items that no other keyword covers"},
	{"unevaluatedProperties", sub, "the schema of members that no other keyword covers"},
	{"deprecated", boolShape, "it will be removed"},
	{"readOnly", boolShape, "a note for readers"},
	{"writeOnly", boolShape, "a note for readers"},
	{"contentMediaType", textShape, "what is in a text"},
	{"contentEncoding", textShape, "how it is written there"},
	{"$comment", textShape, "a note for readers of the definition"},
}

// schemaDecoder reads schemas of inputs, outputs and results.
type schemaDecoder struct{ *decoder }

// keywords returns the keys of a schema, which are read into a map.
func (d schemaDecoder) keywords(into map[string]any) []key {
	keys := make([]key, len(keywords))
	for i, k := range keywords {
		keys[i] = key{name: k.name, shape: k.shape, doc: k.doc, read: func(at yamlstrict.Path, n *yaml.Node) {
			into[k.name] = d.keyword(k, at, n)
		}}
	}
	return keys
}

// references returns the reference keywords, which fail with an explanation.
func (d schemaDecoder) references() (keys []key) {
	for _, name := range []string{"$ref", "$defs", "definitions", "$id", "$anchor", "$dynamicRef"} {
		keys = append(keys, key{name: name, read: func(at yamlstrict.Path, n *yaml.Node) {
			d.Fail(at, n, "a schema in a definition has no %q: write out what it refers to", name)
		}})
	}
	return keys
}

// withKeywords returns ours and the schema keywords that are not among them.
func (d schemaDecoder) withKeywords(ours []key, into map[string]any) []key {
	rest := slices.DeleteFunc(d.keywords(into), func(k key) bool {
		return slices.ContainsFunc(ours, func(our key) bool { return our.name == k.name })
	})
	return slices.Concat(ours, rest)
}

func (d schemaDecoder) keyword(k keyword, at yamlstrict.Path, n *yaml.Node) any {
	switch k.shape {
	case sub:
		return d.schema(at, n)
	case subs:
		all := []any{}
		d.Items(at, n, "a list of schemas", func(at yamlstrict.Path, _ int, item *yaml.Node) { all = append(all, d.schema(at, item)) })
		return all
	case subMap:
		all := map[string]any{}
		d.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) { all[key.Value] = d.schema(at, value) })
		return all
	case typeShape:
		return d.types(at, n)
	case wordsShape:
		var text string
		d.words(&text)(at, n)
		return text
	}
	value, _ := d.literal(at, n).Plain()
	return value
}

// types reads one type, or a list of them.
func (d schemaDecoder) types(at yamlstrict.Path, n *yaml.Node) any {
	if n.Kind != yaml.SequenceNode {
		var word string
		d.oneOf(&word, types...)(at, n)
		return word
	}
	all := []any{}
	d.Items(at, n, "a list of types", func(at yamlstrict.Path, _ int, item *yaml.Node) { all = append(all, d.types(at, item)) })
	return all
}

// schema reads a schema within another.
func (d schemaDecoder) schema(at yamlstrict.Path, n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && d.Allowed(at, n) {
		on, _ := yamlstrict.Bool(n)
		return on
	}
	if d.nesting++; d.nesting > maxNesting {
		d.Fail(at, n, "%s is nested too deeply: at most %d levels", label(at), maxNesting)
		d.nesting--
		return false
	}
	defer func() { d.nesting-- }()
	all := map[string]any{}
	d.mapping(at, n, "a schema", slices.Concat(d.keywords(all), d.references()))
	return all
}

// jsonSchema reads a schema.
func (d schemaDecoder) jsonSchema(into *[]byte) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		all, before := map[string]any{}, d.Faults()
		d.mapping(at, n, "a schema", slices.Concat(d.keywords(all), d.references()))
		*into = d.compileSchema(at, n, all, nil, before)
	}
}

// compileSchema returns a schema as JSON if it is valid. It also validates constant, if not nil, against it.
// It does nothing if reading the schema has added faults since before.
func (d schemaDecoder) compileSchema(at yamlstrict.Path, n *yaml.Node, schema map[string]any, constant *Value, before int) []byte {
	if d.Faults() > before {
		return nil
	}
	text, err := json.Marshal(schema)
	if err != nil {
		d.Fail(at, n, "%s is not a JSON Schema: %v", label(at), err)
		return nil
	}
	check, err := compile(text)
	if err != nil {
		where, what := firstViolation(err)
		d.Fail(at, nodeAt(n, where), "%s is not a JSON Schema: %s", label(at), what)
		return nil
	}
	if constant == nil {
		return text
	}
	if value, plain := constant.Plain(); plain {
		if err := validate(check, value); err != nil {
			where, what := firstViolation(err)
			p := constant.at(where)
			d.FailAt(at, p.Line, p.Column, "this value does not fit: "+what)
		}
	}
	return text
}

// nodeAt follows a path from n as far as possible.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, name := range path {
		next := yamlstrict.ValueOf(n, name)
		if i, err := strconv.Atoi(name); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			next = n.Content[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// at follows a path into the value as far as possible, and returns the position.
func (v *Value) at(path []string) Pos {
	for _, name := range path {
		next := v
		for i := range v.Members {
			if v.Members[i].Name.Text == name {
				next = &v.Members[i].Value
			}
		}
		if i, err := strconv.Atoi(name); err == nil && i < len(v.Items) {
			next = &v.Items[i]
		}
		v = next
	}
	return v.Pos
}

// schemaURL is a placeholder URL.
const schemaURL = "workflow:///schema"

// compile compiles a schema. It fetches nothing.
func compile(text []byte) (check *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics for some numbers
			err = errors.New("a number in it is too large")
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

type noLoader struct{}

// Load always fails.
func (noLoader) Load(string) (any, error) { return nil, errors.New("schemas are not fetched") }

// validate validates a value of a definition.
func validate(check *jsonschema.Schema, value any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("a number in it is too large")
		}
	}()
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return check.Validate(doc)
}

// firstViolation returns the first problem of a value or schema, and its path.
func firstViolation(err error) (where []string, what string) {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = e.Err
	}
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, sanitize.Line(strings.ReplaceAll(err.Error(), schemaURL, ""), 200)
	}
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return e.InstanceLocation, sanitize.Line(text, 200)
}

// InputSchema returns the JSON Schema of the object of a workflow's inputs, in file order.
func InputSchema(d *Definition) []byte {
	var properties, required []string
	for _, in := range d.Inputs {
		properties = append(properties, member(in.Name.Text, string(in.schema())))
		if in.Default == nil && !in.Optional {
			required = append(required, quote(in.Name.Text))
		}
	}
	return object(properties, required)
}

// schema returns the input's schema, with its default if that is constant.
func (in Input) schema() []byte {
	if in.Default == nil {
		return in.Schema
	}
	value, plain := in.Default.Plain()
	text, err := json.Marshal(value)
	if !plain || err != nil {
		return in.Schema
	}
	rest := bytes.TrimSpace(in.Schema)
	if len(rest) <= len("{}") {
		return []byte("{" + member("default", string(text)) + "}")
	}
	return append([]byte("{"+member("default", string(text))+","), rest[1:]...)
}

// OutputSchema returns the JSON Schema of the object of a workflow's outputs, in file order.
func OutputSchema(d *Definition) []byte {
	var properties, required []string
	for _, out := range d.Outputs {
		schema := out.Schema
		if schema == nil {
			schema = []byte("{}")
		}
		properties = append(properties, member(out.Name.Text, string(schema)))
		required = append(required, quote(out.Name.Text))
	}
	return object(properties, required)
}

func object(properties, required []string) []byte {
	text := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"additionalProperties":false`
	if len(required) > 0 {
		text += `,"required":[` + strings.Join(required, ",") + `]`
	}
	return []byte(text + "}")
}

func member(name, value string) string { return quote(name) + ":" + value }

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // cannot happen for a string
		return `""`
	}
	return string(quoted)
}
