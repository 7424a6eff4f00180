package config

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"maps"
	"strconv"
	"strings"
	"testing"
)

// A schemaWriter writes the schema of settings for editors.
type schemaWriter struct {
	*book
	root   []setting
	ranges map[string][2]int // of whole numbers, by struct and key
}

type object = map[string]any

func newSchemaWriter(t *testing.T) *schemaWriter {
	t.Helper()
	b, root := newBook(t)
	w := &schemaWriter{book: b, root: root, ranges: map[string][2]int{}}
	for _, decl := range b.methods {
		w.readRanges(decl)
	}
	return w
}

// document returns the whole schema as text.
func (w *schemaWriter) document() string {
	all := w.mapping("", "Config", w.root)
	all["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	all["title"] = "Settings of Sallyport: upstreams.yaml"
	all["$defs"] = schemaTypes()
	data, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

// schemaTypes are the schemas of values, by the name of their type without spaces.
func schemaTypes() object {
	text := func(pattern string) object { return object{"type": "string", "pattern": pattern} }
	zero := object{"const": 0}
	const unit = `([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)`
	return object{
		"duration":  object{"anyOf": []any{text("^(" + unit + ")+$"), zero}},
		"age":       object{"anyOf": []any{text("^((" + unit + ")+|[0-9]+d)$"), zero}},
		"size":      text("^[0-9]+ ?([KMGT]iB|B)$"),
		"rate":      object{"anyOf": []any{text("^([0-9]{1,7}/[smh]|0)$"), zero}},
		"reference": text(`^$|\$\{`),
	}
}

// mapping returns the schema of a mapping with a table of keys.
func (w *schemaWriter) mapping(path, owner string, keys []setting) object {
	properties, required := object{}, []string{}
	for i := range keys {
		one := &keys[i]
		w.locate(owner, one)
		f := w.facts(path, one)
		properties[one.key] = w.property(f, owner, one)
		if f.required {
			required = append(required, one.key)
		}
	}
	all := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		all["required"] = required
	}
	if path == "store" {
		all["required"] = []string{"url"}
		if url, ok := properties["url"].(object); ok {
			url["pattern"] = `^(nats|tls)://[^/]|\$\{`
		}
	}
	if path == "upstreams.NAME.tools.NAME" {
		all["required"] = []string{"run"}
	}
	if path == "upstreams.NAME" {
		others := []any{object{"required": []string{"command"}}, object{"required": []string{"openapi"}}, object{"required": []string{"graphql"}}, object{"required": []string{"grpc"}}, object{"required": []string{"tools"}}, object{"required": []string{"egress"}}, object{"required": []string{"url"}}}
		image := object{"required": []string{"isolate"}, "properties": object{"isolate": object{"type": "object", "required": []string{"image"}}}, "not": object{"anyOf": others}}
		all["oneOf"] = []any{image, object{"required": []string{"command"}}, object{"required": []string{"openapi"}}, object{"required": []string{"graphql"}}, object{"required": []string{"grpc"}}, object{"required": []string{"tools"}}, object{"required": []string{"egress"}}, object{"required": []string{"url"}, "not": object{"anyOf": []any{object{"required": []string{"openapi"}}, object{"required": []string{"graphql"}}, object{"required": []string{"grpc"}}}}}}
	}
	return all
}

func (w *schemaWriter) property(f settingFacts, owner string, one *setting) object {
	all := w.value(f, owner, one)
	if doc := strings.TrimSpace(f.doc + defaultSentence(f)); doc != "" {
		all["description"] = doc
	}
	if one.keys != nil && !one.named && f.said != "" { // without the mapping something else counts
		all["x-absent"] = true
	}
	if value, ok := defaultValue(f, one); ok {
		all["default"] = value
	}
	return all
}

// defaultSentence says a default that is no value.
func defaultSentence(f settingFacts) string {
	if f.said == "" || f.value != "" || f.required {
		return ""
	}
	return " Default: " + f.said + "."
}

func defaultValue(f settingFacts, one *setting) (any, bool) {
	switch {
	case f.value == "" || f.required:
		return nil, false
	case one.kind == kinds["Bool"]:
		return f.value == "true", true
	case one.kind == kinds["Count"] || one.kind == kinds["parsePart"] || one.kind == kinds["parseAmount"]:
		return json.Number(f.value), true
	}
	return f.value, true
}

// value returns the schema of a value: a mapping, mappings by name, a list of them, or plain values.
func (w *schemaWriter) value(f settingFacts, owner string, one *setting) object {
	if one.keys == nil {
		return w.plain(one)
	}
	inside := w.mapping(f.full+one.member(), w.inside(owner, one), one.keys)
	switch {
	case one.named:
		return namedSchema(one.key, inside)
	case one.list && one.text:
		return listSchema(object{"anyOf": []any{inside, object{"type": "string"}}})
	case one.list:
		return listSchema(inside)
	case len(one.words) > 0:
		return object{"anyOf": []any{inside, wordsSchema(one.words)}}
	}
	return inside
}

func namedSchema(key string, member object) object {
	all := object{"type": "object", "additionalProperties": member}
	if key == "upstreams" {
		all["propertyNames"] = object{"pattern": upstreamName.String()}
	}
	return all
}

// wordsSchema returns the schema of a word, which may be a reference, or empty for the default.
func wordsSchema(words []string) object {
	if words[0] == "true" {
		return object{"type": "boolean"}
	}
	return object{"anyOf": []any{object{"enum": words}, refSchema("reference")}}
}

func refSchema(name string) object { return object{"$ref": "#/$defs/" + name} }

func listSchema(items object) object { return object{"type": "array", "items": items} }

// patterns are the forms of values and names that some keys have in all mappings.
func patterns(key string) object {
	switch key {
	case "url":
		return object{"pattern": `^[Hh][Tt][Tt][Pp][Ss]?://[^/]|\$\{`}
	case "command":
		return object{"not": object{"pattern": commandLine.String()}}
	case "env":
		return object{"propertyNames": object{"pattern": "^[^=]+$"}}
	case "header", "headers":
		return object{"propertyNames": object{"pattern": headerName.String()}}
	}
	return nil
}

func (w *schemaWriter) plain(one *setting) object {
	all := w.kind(one)
	maps.Copy(all, patterns(one.key))
	if one.named {
		return object{"type": "object", "additionalProperties": all}
	}
	return all
}

// kind returns the schema of a type that the table has.
func (w *schemaWriter) kind(one *setting) object {
	text := object{"type": "string"}
	switch one.kind {
	case "word":
		return wordsSchema(one.words)
	case kinds["Texts"]:
		return listSchema(text)
	case kinds["profiles"]:
		return listSchema(wordsSchema(append([]string{ProfileCore}, append(AllProfiles(), profileAll)...)))
	case kinds["secrets"], kinds["paths"]:
		return object{"type": "object", "additionalProperties": text}
	case "mapping":
		return object{"type": "object"}
	case kinds["expression"]:
		return object{"type": []string{"string", "boolean", "integer"}}
	case kinds["Bool"]:
		return object{"type": "boolean"}
	case kinds["install"]:
		return object{"enum": []any{true, false, "keep"}}
	case kinds["Count"]:
		return w.count(one)
	case kinds["numbers"]:
		return listSchema(object{"type": "integer", "minimum": 0})
	case kinds["parseAmount"]:
		return object{"type": "number", "minimum": 0}
	case kinds["parsePart"]:
		return object{"type": "number", "minimum": 0, "maximum": 1}
	case kinds["Duration"], kinds["parseSize"], kinds["parseRate"]:
		return refSchema(one.kind)
	case kinds["Age"]:
		return refSchema("age")
	}
	return text
}

func (w *schemaWriter) count(one *setting) object {
	all := object{"type": "integer"}
	if bounds, ok := w.ranges[one.owner+"."+one.key]; ok {
		all["minimum"], all["maximum"] = bounds[0], bounds[1]
	}
	return all
}

// readRanges notes the ranges that a method checks: between(at.To("key"), value, least, most) with plain numbers.
func (w *schemaWriter) readRanges(decl *ast.FuncDecl) {
	owner := typeName(decl.Recv.List[0].Type)
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || typeName(call.Fun) != "between" {
			return true
		}
		at, isCall := call.Args[0].(*ast.CallExpr)
		least, ok1 := w.number(call.Args[2])
		most, ok2 := w.number(call.Args[3])
		if isCall && ok1 && ok2 {
			w.ranges[owner+"."+w.text(at.Args[0])] = [2]int{least, most}
		}
		return true
	})
}

// number returns the value of a number, of a constant, or of a shifted number.
func (w *schemaWriter) number(e ast.Expr) (int, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return int(n), err == nil
	case *ast.Ident:
		if value := w.words[e.Name]; value != nil {
			return w.number(value)
		}
	case *ast.BinaryExpr:
		x, ok1 := w.number(e.X)
		y, ok2 := w.number(e.Y)
		return x << y, ok1 && ok2 && e.Op == token.SHL
	}
	return 0, false
}
