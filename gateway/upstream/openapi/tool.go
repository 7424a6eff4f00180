package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sallyport/gateway/upstream/webapi"
)

// definition returns the definition of the tool of an operation.
func (r *reader) definition(o *operation) (json.RawMessage, error) {
	if o.body != nil {
		if err := r.setMembers(o.body); err != nil {
			return nil, err
		}
	}
	o.nameArguments()
	input, err := r.buildSchema(false, func(s *schemas) (*object, error) { return r.input(s, o) })
	if err != nil {
		return nil, err
	}
	output, err := r.output(o)
	if err != nil {
		return nil, err
	}
	tool := newObject("name", o.name)
	if title := prose(o.summary, 100); title != "" {
		tool.Set("title", title)
	}
	tool.Set("description", o.describe())
	tool.Set("inputSchema", input)
	if output != nil {
		tool.Set("outputSchema", output)
	}
	tool.Set("annotations", o.annotations())
	return webapi.AppendJSON(nil, tool), nil
}

// annotations derives the hints from the method. What POST and PATCH do is not known.
func (o *operation) annotations() *object {
	switch o.method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return newObject("readOnlyHint", true, "destructiveHint", false, "idempotentHint", true)
	case http.MethodPut:
		return newObject("readOnlyHint", false, "idempotentHint", true)
	case http.MethodDelete:
		return newObject("readOnlyHint", false, "destructiveHint", true, "idempotentHint", true)
	}
	return newObject("readOnlyHint", false)
}

// nameArguments names the arguments: those of the body, and then the parameters.
func (o *operation) nameArguments() {
	var members []string
	if o.body != nil {
		if members = o.body.members; !o.body.flat {
			o.body.argument = "body"
			members = []string{"body"}
		}
	}
	argumentNames(o.params, members)
}

// input returns the schema of the arguments.
func (r *reader) input(s *schemas, o *operation) (*object, error) {
	properties, required := newObject(), []string{}
	for _, p := range o.params {
		v, err := s.convert(p.schema, 1)
		if err != nil {
			return nil, err
		}
		properties.Set(p.name, s.described(v, p.description))
		if p.required {
			required = append(required, p.name)
		}
	}
	if o.body != nil {
		more, err := r.bodyInput(s, o.body, properties)
		if err != nil {
			return nil, err
		}
		required = append(required, more...)
	}
	schema := newObject("type", "object", "properties", properties)
	if len(required) > 0 {
		schema.Set("required", webapi.List(required))
	}
	schema.Set("additionalProperties", false)
	if r.opts.Server == "" {
		schema.Set("x-server", o.server) // so that a change of it is a change of the tool
	}
	return schema, nil
}

// described adds the description of a parameter, which replaces that of its schema.
func (s *schemas) described(v any, text string) any {
	text = prose(text, maxNested)
	o, ok := v.(*object)
	if text == "" || !ok {
		return v
	}
	o.Set("description", text)
	return o
}

// bodyInput adds the arguments of the body, and returns the required ones.
func (r *reader) bodyInput(s *schemas, b *body, properties *object) ([]string, error) {
	v, err := r.bodySchema(s, b)
	if err != nil {
		return nil, err
	}
	if !b.flat {
		properties.Set(b.argument, s.described(v, b.about()))
		if b.required {
			return []string{b.argument}, nil
		}
		return nil, nil
	}
	o := v.(*object)
	for _, name := range b.members {
		properties.Set(name, o.Object("properties").Get(name))
	}
	if !b.required {
		return nil, nil
	}
	return slices.DeleteFunc(o.Texts("required"), func(name string) bool { return !slices.Contains(b.members, name) }), nil
}

func (r *reader) bodySchema(s *schemas, b *body) (any, error) {
	switch {
	case b.kind == binaryBody:
		return newObject("type", "string", "contentEncoding", "base64"), nil
	case b.kind == textBody:
		return newObject("type", "string"), nil
	case !b.flat:
		return s.convert(b.schema, 1)
	}
	p, err := r.l.resolve(b.schema)
	if err != nil {
		return nil, err
	}
	return s.keywords(p, p.object(), 0)
}

// about describes the argument that is the whole body.
func (b *body) about() string {
	switch {
	case b.kind == binaryBody:
		return strings.TrimSpace(b.description + " (base64 of the bytes)")
	case b.kind == textBody && b.mime != "text/plain":
		return strings.TrimSpace(fmt.Sprintf("%s (%s)", b.description, b.mime))
	}
	return b.description
}

// resultForm says how a response becomes structured content.
type resultForm int

const (
	asFound  resultForm = iota // nothing is declared
	asObject                   // the declared type is an object
	wrapped                    // {"result": VALUE}
)

// output returns the schema of the results, nil if the document declares none.
func (r *reader) output(o *operation) (json.RawMessage, error) {
	found, err := r.responses(o)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return r.buildSchema(true, func(s *schemas) (*object, error) {
		arms := make([]any, len(found))
		all := true
		for i, p := range found {
			all = all && s.isObject(p, 0)
			if arms[i], err = s.convert(p, 1); err != nil {
				return nil, err
			}
		}
		value := arms[0]
		if len(arms) > 1 {
			value = newObject("anyOf", arms)
		}
		if !all {
			o.result = wrapped
			return newObject("type", "object", "properties", newObject("result", value), "required", []any{"result"}, "x-fastmcp-wrap-result", true), nil
		}
		o.result = asObject
		return s.objectSchema(found, value)
	})
}

// objectSchema returns the schema of a result that is an object, which must say so itself.
func (s *schemas) objectSchema(found []place, value any) (*object, error) {
	if len(found) == 1 {
		p, err := s.l.resolve(found[0])
		if err != nil {
			return nil, err
		}
		if value, err = s.keywords(p, p.object(), 1); err != nil {
			return nil, err
		}
	}
	out := value.(*object)
	if out.Text("type") == "object" {
		return out, nil
	}
	typed := newObject("type", "object")
	for _, key := range out.Keys() {
		if key != "type" {
			typed.Set(key, out.Get(key))
		}
	}
	return typed, nil
}

// responses returns the distinct schemas of successful responses in JSON.
func (r *reader) responses(o *operation) (found []place, err error) {
	all := o.at.in("responses")
	seen := map[string]bool{}
	for _, status := range successes(all.object()) {
		p, err := r.l.resolve(all.in(status))
		if isLimit(err) {
			return nil, err
		}
		if err != nil {
			r.l.note(err)
			continue
		}
		o.paged = o.paged || p.object().Object("headers").Has("Link")
		schema := p.in("schema")
		if !r.legacy {
			content := p.in("content")
			mime := preferredJSON(content.object().Keys())
			if mime == "" {
				continue
			}
			schema = content.in(mime).in("schema")
		}
		so := schema.object()
		if so == nil || len(so.Keys()) == 0 || so.Text("type") == "file" {
			continue
		}
		if key := schema.doc.name + string(webapi.AppendJSON(nil, withoutText(so))); !seen[key] && len(found) < 8 {
			seen[key] = true
			found = append(found, schema)
		}
	}
	return found, nil
}

// withoutText returns o itself, or the reference that it is.
func withoutText(o *object) *object {
	if ref := o.Text("$ref"); ref != "" {
		return newObject("$ref", ref)
	}
	return o
}

// successes returns the statuses of success, or else "default".
func successes(o *object) (found []string) {
	for _, status := range o.Keys() {
		if len(status) == 3 && status[0] == '2' {
			found = append(found, status)
		}
	}
	slices.Sort(found)
	if len(found) == 0 && o.Has("default") {
		return []string{"default"}
	}
	return found
}
