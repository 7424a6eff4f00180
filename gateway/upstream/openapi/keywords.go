package openapi

import (
	"encoding/json"
	"regexp"
	"slices"

	"sallyport/gateway/upstream/webapi"
)

var validTypes = map[string]bool{"string": true, "number": true, "integer": true, "boolean": true, "array": true, "object": true, "null": true}

// keyword says how the value of a keyword is converted. It returns nil for a value that is invalid, which is left out:
// a schema with one would not be checked at all.
type keyword func(s *schemas, p place, depth int) (any, error)

// keywordOf returns how a keyword is converted, nil for one that is left out, as it has no meaning in JSON Schema or none for a call.
func keywordOf(key string) keyword {
	switch key {
	case "items", "not", "propertyNames", "contains", "if", "then", "else", "additionalProperties", "unevaluatedProperties":
		return func(s *schemas, p place, depth int) (any, error) { return s.convert(p, depth+1) }
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return convertList
	case "patternProperties", "dependentSchemas":
		return convertMap
	case "required":
		return keepTexts
	case "enum":
		return keepList
	case "const", "default":
		return keep
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return keepNumber
	case "uniqueItems", "deprecated":
		return keepFlag
	case "pattern":
		return keepPattern
	case "format", "contentEncoding", "contentMediaType":
		return keepText
	}
	return nil
}

func keep(_ *schemas, p place, _ int) (any, error) { return p.value, nil }

func keepText(_ *schemas, p place, _ int) (any, error) {
	if text, ok := p.value.(string); ok {
		return text, nil
	}
	return nil, nil
}

func keepFlag(_ *schemas, p place, _ int) (any, error) {
	if p.value == true {
		return true, nil
	}
	return nil, nil
}

func keepNumber(_ *schemas, p place, _ int) (any, error) {
	if n, ok := p.value.(json.Number); ok {
		return n, nil
	}
	return nil, nil
}

func keepList(_ *schemas, p place, _ int) (any, error) {
	if l, ok := p.value.([]any); ok && len(l) > 0 {
		return unique(l), nil
	}
	return nil, nil
}

// unique removes repeated values, which JSON Schema does not allow in an enum.
func unique(values []any) []any {
	seen, all := map[string]bool{}, []any{}
	for _, v := range values {
		if key := string(webapi.AppendJSON(nil, v)); !seen[key] {
			seen[key] = true
			all = append(all, v)
		}
	}
	return all
}

func keepTexts(_ *schemas, p place, _ int) (any, error) {
	l, ok := p.value.([]any)
	if !ok || len(l) == 0 || slices.ContainsFunc(l, func(v any) bool { _, ok := v.(string); return !ok }) {
		return nil, nil
	}
	return unique(l), nil
}

// keepPattern keeps an expression that Go can run, in linear time. Others are left to the server.
func keepPattern(_ *schemas, p place, _ int) (any, error) {
	text, ok := p.value.(string)
	if !ok || len(text) > 1000 {
		return nil, nil
	}
	if _, err := regexp.Compile(text); err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return text, nil
}

func convertList(s *schemas, p place, depth int) (any, error) {
	arms, ok := p.value.([]any)
	if !ok || len(arms) == 0 {
		return nil, nil
	}
	all := make([]any, len(arms))
	for i, arm := range arms {
		v, err := s.convert(place{p.doc, arm}, depth+1)
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

func convertMap(s *schemas, p place, depth int) (any, error) {
	o := p.object()
	if o == nil {
		return nil, nil
	}
	out := newObject()
	for _, key := range o.Keys() {
		v, err := s.convert(p.in(key), depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	return out, nil
}

// keywords converts the keywords of a schema other than $ref.
func (s *schemas) keywords(p place, o *object, depth int) (any, error) {
	out := newObject()
	setType(out, o, s.response)
	for _, key := range o.Keys() {
		if err := s.setKeyword(out, p, key, depth); err != nil {
			return nil, err
		}
	}
	if err := s.setProperties(out, p, depth); err != nil {
		return nil, err
	}
	if text := prose(o.Text("description"), maxNested); text != "" && !s.brief {
		out.Set("description", text)
	}
	legacyBounds(out, o)
	return withNull(out, o), nil
}

// setKeyword converts one keyword other than type and properties.
func (s *schemas) setKeyword(out *object, p place, key string, depth int) error {
	convert := keywordOf(key)
	if convert == nil || out.Has(key) || s.response && key == "default" {
		return nil
	}
	v, err := convert(s, p.in(key), depth)
	if err != nil || v == nil && key != "const" && key != "default" {
		return err
	}
	if key == "oneOf" { // arms of APIs overlap, which the server decides
		key = "anyOf"
	}
	if key == "anyOf" && out.Has(key) {
		v = append(out.List(key), v.([]any)...)
	}
	out.Set(key, v)
	return nil
}

// setType sets the type, and how bytes are written.
func setType(out, o *object, response bool) {
	switch t := o.Get("type").(type) {
	case string:
		if t == "file" { // OpenAPI 2.0
			out.Set("type", "string")
			out.Set("contentEncoding", "base64")
		} else if validTypes[t] {
			out.Set("type", t)
		}
	case []any:
		if len(t) > 0 && !slices.ContainsFunc(t, func(v any) bool { word, _ := v.(string); return !validTypes[word] }) {
			out.Set("type", unique(t))
		}
	}
	if f := o.Text("format"); !response && (f == "binary" || f == "byte") {
		out.Set("contentEncoding", "base64")
	}
}

// setProperties converts the properties: arguments lack those that are read-only, results those that are write-only.
func (s *schemas) setProperties(out *object, p place, depth int) error {
	all := p.in("properties")
	if all.object() == nil {
		return nil
	}
	hidden := "readOnly"
	if s.response {
		hidden = "writeOnly"
	}
	properties, dropped := newObject(), map[string]bool{}
	for _, name := range all.object().Keys() {
		one := all.in(name)
		if target, err := s.l.resolve(one); isLimit(err) {
			return err
		} else if one.object().Flag(hidden) || err == nil && target.object().Flag(hidden) {
			dropped[name] = true
			continue
		}
		v, err := s.convert(one, depth+1)
		if err != nil {
			return err
		}
		properties.Set(name, v)
	}
	out.Set("properties", properties)
	if len(dropped) > 0 && out.Has("required") {
		out.Set("required", slices.DeleteFunc(out.List("required"), func(v any) bool { return dropped[v.(string)] }))
	}
	return nil
}

// legacyBounds converts the exclusive bounds of OpenAPI 3.0, which are flags.
func legacyBounds(out, o *object) {
	for flag, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if n := out.Get(bound); o.Flag(flag) && n != nil {
			out.Set(flag, n)
			out.Remove(bound)
		}
	}
}

// withNull allows null where OpenAPI 3.0 says nullable.
func withNull(out, o *object) any {
	if !o.Flag("nullable") && !o.Flag("x-nullable") {
		return out
	}
	if word, ok := out.Get("type").(string); ok && word != "null" && !out.Has("const") {
		out.Set("type", []any{word, "null"})
		if values := out.List("enum"); values != nil && !slices.Contains(values, nil) {
			out.Set("enum", append(slices.Clone(values), nil))
		}
		return out
	}
	if len(out.Keys()) == 0 {
		return out
	}
	return newObject("anyOf", []any{out, newObject("type", "null")})
}
