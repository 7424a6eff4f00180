package plugin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/codegen/bundle"
)

// tsFunctions describes the exported functions of a TypeScript module from their type hints.
func tsFunctions(source string, wanted []string) (map[string]function, error) {
	exports, _ := bundle.Exports(source)
	types := tsTypes(source)
	found := map[string]function{}
	for _, e := range exports {
		if !slices.Contains(wanted, e.Name) {
			continue
		}
		f, err := tsFunction(e, types)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		found[e.Name] = f
	}
	return found, nil
}

func tsFunction(e bundle.Export, types map[string]string) (function, error) {
	f := function{Doc: e.Doc}
	input := object{properties: map[string]any{}}
	for _, p := range e.Parameters {
		parts := tsParameter.FindStringSubmatch(p)
		if parts == nil {
			return f, fmt.Errorf("parameter %.60q must be a name with a type, as in limit: number = 10", p)
		}
		name, optional, hint, standard := parts[1], parts[2] != "", strings.TrimSpace(parts[3]), parts[4]
		schema, err := schemaOfHint(hint, standard, types)
		if err != nil {
			return f, fmt.Errorf("parameter %s: %w", name, err)
		}
		f.Order = append(f.Order, name)
		input.add(name, schema, !optional && standard == "")
	}
	f.Input = input.schema()
	_, result, _ := strings.Cut(e.Signature[strings.LastIndexByte(e.Signature, ')')+1:], ":")
	if result = strings.TrimSpace(result); result != "" {
		if schema, err := schemaOfHint(result, "", types); err == nil && len(schema) > 0 {
			f.Output, _ = json.Marshal(schema) // made of maps
		}
	}
	return f, nil
}

// tsParameter matches a parameter: its name, "?", the type, the default.
var tsParameter = regexp.MustCompile(`^([A-Za-z_$][\w$]*)(\?)?\s*(?::((?:[^=]|=>)*))?(?:=\s*(.*))?$`)

// schemaOfHint returns the schema of a type, or of a default without a type.
func schemaOfHint(hint, standard string, types map[string]string) (map[string]any, error) {
	var value any
	known := standard != "" && json.Unmarshal([]byte(standard), &value) == nil
	if hint == "" && known {
		switch hint = "any"; value.(type) {
		case string:
			hint = "string"
		case float64:
			hint = "number"
		case bool:
			hint = "boolean"
		}
	}
	if hint == "" {
		return map[string]any{}, nil
	}
	schema, err := parseTSType(hint, types)
	if err == nil && known {
		schema["default"] = value
	}
	return schema, err
}

// object builds the schema of an object.
type object struct {
	properties map[string]any
	required   []string
}

func (o *object) add(name string, schema map[string]any, required bool) {
	if o.properties[name] = schema; required {
		o.required = append(o.required, name)
	}
}

func (o *object) schema() json.RawMessage {
	data, _ := json.Marshal(o.fields(false)) // made of maps
	return data
}

func (o *object) fields(open bool) map[string]any {
	fields := map[string]any{"type": "object", "properties": o.properties, "additionalProperties": open}
	if open {
		delete(fields, "additionalProperties")
	}
	if len(o.required) > 0 {
		fields["required"] = o.required
	}
	return fields
}

var (
	tsComment   = regexp.MustCompile(`(?s)/\*.*?\*/|(?m)^\s*//.*$`)
	tsInterface = regexp.MustCompile(`(?m)^(?:export\s+)?interface\s+(\w+)\s*\{`)
	tsAlias     = regexp.MustCompile(`(?m)^(?:export\s+)?type\s+(\w+)\s*=`)
	tsToken     = regexp.MustCompile(`^(?:\s+|//[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|[A-Za-z_$][\w$]*|\[\]|.)`)
)

// tsTypes returns the text of the interfaces and types that a module declares, by name.
func tsTypes(source string) map[string]string {
	source = tsComment.ReplaceAllString(source, "")
	types := map[string]string{}
	for _, at := range tsInterface.FindAllStringSubmatchIndex(source, -1) {
		types[source[at[2]:at[3]]] = source[at[1]-1:]
	}
	for _, at := range tsAlias.FindAllStringSubmatchIndex(source, -1) {
		types[source[at[2]:at[3]]] = source[at[1]:]
	}
	return types
}

// maxTypeDepth bounds how deep types nest.
const maxTypeDepth = 16

// tsParser parses a type. The text may go on after it.
type tsParser struct {
	text  string
	types map[string]string
	depth int
}

func parseTSType(text string, types map[string]string) (map[string]any, error) {
	return (&tsParser{text: text, types: types}).union()
}

// next returns the next token without consuming it.
func (p *tsParser) next() string {
	for {
		t := tsToken.FindString(p.text)
		if t == "" || strings.TrimSpace(t) != "" && !strings.HasPrefix(t, "//") {
			return t
		}
		p.text = p.text[len(t):]
	}
}

// take consumes the next token if it is one of those.
func (p *tsParser) take(tokens ...string) bool {
	if t := p.next(); t != "" && slices.Contains(tokens, t) {
		p.text = p.text[len(t):]
		return true
	}
	return false
}

func (p *tsParser) union() (map[string]any, error) {
	if p.depth++; p.depth > maxTypeDepth {
		return nil, fmt.Errorf("its type nests more than %d deep", maxTypeDepth)
	}
	defer func() { p.depth-- }()
	p.take("|")
	var all []map[string]any
	for {
		one, err := p.postfix()
		if err != nil {
			return nil, err
		}
		if one != nil { // undefined is absence
			all = append(all, one)
		}
		if !p.take("|") {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	var words []any
	for _, one := range all {
		words = append(words, slices.Clone(enumOf(one))...)
	}
	if len(words) == len(all) && len(all) > 0 {
		return map[string]any{"enum": words}, nil
	}
	return map[string]any{"anyOf": all}, nil
}

func enumOf(schema map[string]any) []any {
	words, _ := schema["enum"].([]any)
	return words
}

func (p *tsParser) postfix() (map[string]any, error) {
	one, err := p.primary()
	for err == nil && p.take("[]") {
		one = map[string]any{"type": "array", "items": one}
	}
	return one, err
}

func (p *tsParser) primary() (map[string]any, error) {
	word := p.next()
	switch {
	case word == "":
		return nil, fmt.Errorf("a type is missing")
	case p.take("("):
		one, err := p.union()
		if err == nil && !p.take(")") {
			err = p.unsupported(word)
		}
		return one, err
	case p.take("{"):
		return p.members()
	}
	p.take(word)
	if strings.ContainsAny(word[:1], `"'-0123456789`) {
		return literal(word)
	}
	return p.named(word)
}

func literal(word string) (map[string]any, error) {
	if strings.HasPrefix(word, "'") {
		word = `"` + strings.ReplaceAll(strings.Trim(word, "'"), `"`, `\"`) + `"`
	}
	var value any
	if err := json.Unmarshal([]byte(word), &value); err != nil {
		return nil, fmt.Errorf("%.40s cannot be read", word)
	}
	return map[string]any{"enum": []any{value}}, nil
}

func (p *tsParser) unsupported(word string) error {
	return fmt.Errorf("the type %.40q cannot be described; use string, number, boolean, T[], Record, unions, and interfaces of this file", word)
}

// named parses a type that begins with a word.
func (p *tsParser) named(word string) (map[string]any, error) {
	switch word {
	case "string", "number", "boolean", "null":
		return map[string]any{"type": word}, nil
	case "true", "false":
		return map[string]any{"enum": []any{word == "true"}}, nil
	case "undefined", "void":
		return nil, nil //nolint:nilnil // no value
	case "any", "unknown":
		return map[string]any{}, nil
	case "object":
		return map[string]any{"type": "object"}, nil
	case "Array", "ReadonlyArray", "Promise", "Record":
		return p.generic(word)
	}
	text, ok := p.types[word]
	if !ok {
		return nil, p.unsupported(word)
	}
	return (&tsParser{text: text, types: p.types, depth: p.depth}).union()
}

func (p *tsParser) generic(word string) (map[string]any, error) {
	if !p.take("<") {
		return nil, p.unsupported(word)
	}
	first, err := p.union()
	if err != nil {
		return nil, err
	}
	if word == "Record" {
		if !p.take(",") {
			return nil, p.unsupported(word)
		}
		value, err := p.union()
		if err != nil {
			return nil, err
		}
		first = map[string]any{"type": "object", "additionalProperties": value}
	}
	if !p.take(">") {
		return nil, p.unsupported(word)
	}
	if word == "Array" || word == "ReadonlyArray" {
		first = map[string]any{"type": "array", "items": first}
	}
	return first, nil
}

// members parses the members of an object type.
func (p *tsParser) members() (map[string]any, error) {
	o := object{properties: map[string]any{}}
	for !p.take("}") {
		name := p.next()
		if name == "" || !p.take(name) {
			return nil, p.unsupported("{")
		}
		if name == "readonly" && p.next() != ":" && p.next() != "?" {
			continue
		}
		optional := p.take("?")
		if !p.take(":") {
			return nil, p.unsupported(name)
		}
		schema, err := p.union()
		if err != nil {
			return nil, err
		}
		o.add(strings.Trim(name, `"'`), schema, !optional)
		p.take(";", ",")
	}
	return o.fields(true), nil
}
