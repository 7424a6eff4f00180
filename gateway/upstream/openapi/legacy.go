package openapi

import (
	"slices"

	"sallyport/gateway/upstream/webapi"
)

// setLegacy reads what OpenAPI 2.0 says differently: the parameter is its own schema, and collectionFormat the style.
func (p *parameter) setLegacy(at place) {
	p.schema = place{at.doc, schemaOfParameter(at.object())}
	switch at.object().Text("collectionFormat") {
	case "multi":
		p.style, p.explode = "form", true
	case "ssv":
		p.style, p.explode = "spaceDelimited", false
	case "pipes":
		p.style, p.explode = "pipeDelimited", false
	case "tsv":
		p.style, p.explode = "tabDelimited", false
	default:
		p.explode = false
	}
}

// schemaOfParameter returns the schema of a parameter of OpenAPI 2.0.
func schemaOfParameter(o *object) *object {
	schema := newObject()
	for _, key := range o.Keys() {
		if !slices.Contains([]string{"name", "in", "required", "collectionFormat", "schema"}, key) {
			schema.Set(key, o.Get(key))
		}
	}
	return schema
}

// legacyBody takes the parameters that are the body, or fields of it, out of those of an operation.
func (r *reader) legacyBody(o *operation, found []place) (others []place) {
	consumes := o.at.object().Texts("consumes")
	if consumes == nil {
		consumes = r.root.Texts("consumes")
	}
	properties, required, encoding := newObject(), []string{}, newObject()
	var fields *document
	file := false
	for _, p := range found {
		one := p.object()
		switch one.Text("in") {
		case "body":
			o.body = &body{mime: "application/json", kind: jsonBody, required: one.Flag("required"), schema: p.in("schema"), description: one.Text("description")}
			if mime := preferred(consumes); mime != "" && kindOf(mime) != formBody && kindOf(mime) != multipartBody {
				o.body.mime, o.body.kind = sendable(mime), kindOf(mime)
			}
		case "formData":
			name := one.Text("name")
			fields = p.doc
			properties.Set(name, schemaOfParameter(one))
			if one.Flag("required") {
				required = append(required, name)
			}
			file = file || one.Text("type") == "file"
			encoding.Set(name, newObject("style", "form", "explode", one.Text("collectionFormat") == "multi"))
		default:
			others = append(others, p)
		}
	}
	if len(properties.Keys()) == 0 {
		return others
	}
	schema := newObject("type", "object", "properties", properties)
	if len(required) > 0 {
		schema.Set("required", webapi.List(required))
	}
	o.body = &body{mime: "application/x-www-form-urlencoded", kind: formBody, required: len(required) > 0, schema: place{fields, schema}, encoding: encoding}
	if file || !slices.Contains(consumes, o.body.mime) && slices.Contains(consumes, "multipart/form-data") {
		o.body.mime, o.body.kind = "multipart/form-data", multipartBody
	}
	return others
}
