package graphql

import (
	"encoding/json"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
)

type object = jsonobject.Object

// scalars are the types of the specification, and names that most servers use for texts.
var scalars = map[string]string{
	"Int": "integer", "Float": "number", "String": "string", "ID": "string", "Boolean": "boolean",
	"DateTime": "string", "Date": "string", "Time": "string", "URI": "string", "URL": "string", "UUID": "string", "EmailAddress": "string", "HTML": "string",
}

// inputs builds the schema of the arguments of one operation.
type inputs struct {
	api      *API
	maxDepth int  // levels of input objects; deeper ones are of any type
	nulls    bool // a member may be null, which in a mutation is not the same as leaving it out
	defs     *object
}

// inputSchema returns the schema of the arguments, with as many levels of input objects as fit.
func (a *API) inputSchema(o *operation) json.RawMessage {
	for depth := 8; ; depth-- {
		in := &inputs{api: a, maxDepth: depth, nulls: o.kind == ast.Mutation, defs: jsonobject.Of()}
		schema := webapi.AppendJSON(nil, in.arguments(o))
		if len(schema) <= maxArguments || depth == 0 {
			return schema
		}
	}
}

func (in *inputs) arguments(o *operation) *object {
	properties, required := jsonobject.Of(), []string{}
	for _, arg := range o.field.Arguments {
		schema := in.typed(arg.Type, 0, false)
		setDescription(schema, arg.Description, arg.DefaultValue)
		properties.Set(arg.Name, schema)
		if arg.Type.NonNull && arg.DefaultValue == nil {
			required = append(required, arg.Name)
		}
	}
	if o.selectArg != "" {
		properties.Set(o.selectArg, jsonobject.Of("type", "string", "description", in.api.describeSelect(o)))
	}
	schema := jsonobject.Of("type", "object", "properties", properties)
	if len(required) > 0 {
		schema.Set("required", webapi.List(required))
	}
	schema.Set("additionalProperties", false)
	if len(in.defs.Keys()) > 0 {
		schema.Set("$defs", in.defs)
	}
	return schema
}

// setDescription adds a description and a default to a schema.
func setDescription(schema *object, text string, value *ast.Value) {
	if text = prose(text, maxNested); text != "" {
		schema.Set("description", text)
	}
	if value == nil {
		return
	}
	if v, err := value.Value(nil); err == nil && v != nil {
		schema.Set("default", v)
	}
}

// typed returns the schema of a type. null says that a nullable one may be null.
func (in *inputs) typed(t *ast.Type, depth int, null bool) *object {
	schema := in.plain(t, depth)
	if !null || t.NonNull || len(schema.Keys()) == 0 {
		return schema
	}
	return nullable(schema)
}

// nullable returns a schema that also allows null.
func nullable(schema *object) *object {
	kind, isText := schema.Get("type").(string)
	if !isText || schema.Has("enum") {
		return jsonobject.Of("anyOf", []any{schema, jsonobject.Of("type", "null")})
	}
	schema.Set("type", webapi.List([]string{kind, "null"}))
	return schema
}

func (in *inputs) plain(t *ast.Type, depth int) *object {
	if t.Elem != nil {
		return jsonobject.Of("type", "array", "items", in.typed(t.Elem, depth, in.nulls))
	}
	def := in.api.schema.Types[t.NamedType]
	if def.Kind != ast.InputObject {
		return leaf(def)
	}
	if depth >= in.maxDepth {
		return jsonobject.Of("type", "object", "description", def.Name)
	}
	if !in.defs.Has(def.Name) {
		in.defs.Set(def.Name, jsonobject.Of()) // it may contain itself
		in.defs.Set(def.Name, in.inputObject(def, depth+1))
	}
	return jsonobject.Of("$ref", "#/$defs/"+def.Name)
}

func (in *inputs) inputObject(def *ast.Definition, depth int) *object {
	properties, required := jsonobject.Of(), []string{}
	oneOf := def.Directives.ForName("oneOf") != nil
	for _, f := range def.Fields {
		schema := in.typed(f.Type, depth, in.nulls && !oneOf)
		setDescription(schema, f.Description, f.DefaultValue)
		properties.Set(f.Name, schema)
		if f.Type.NonNull && f.DefaultValue == nil {
			required = append(required, f.Name)
		}
	}
	schema := jsonobject.Of("type", "object", "properties", properties)
	if len(required) > 0 {
		schema.Set("required", webapi.List(required))
	}
	schema.Set("additionalProperties", false)
	if oneOf {
		schema.Set("minProperties", json.Number("1"))
		schema.Set("maxProperties", json.Number("1"))
	}
	return schema
}

// leaf returns the schema of a scalar or an enumeration. What is known of another scalar is its name.
func leaf(def *ast.Definition) *object {
	if def.Kind == ast.Enum {
		var values []string
		for _, v := range def.EnumValues {
			values = append(values, v.Name)
		}
		return jsonobject.Of("type", "string", "enum", webapi.List(values))
	}
	if kind := scalars[def.Name]; kind != "" {
		return jsonobject.Of("type", kind)
	}
	return jsonobject.Of("description", def.Name)
}

// outputSchema returns the schema of the results. Another selection leaves members out or adds some, so none is required.
func (a *API) outputSchema(o *operation) *object {
	value := a.result(o.field.Type, o.selection)
	if !o.wrap {
		return value
	}
	return jsonobject.Of("type", "object", "properties", jsonobject.Of("result", value), "required", []any{"result"}, "x-fastmcp-wrap-result", true)
}

// result returns the schema of a value of a type with a selection.
func (a *API) result(t *ast.Type, selection ast.SelectionSet) *object {
	var schema *object
	switch def := a.schema.Types[t.Name()]; {
	case t.Elem != nil:
		schema = jsonobject.Of("type", "array", "items", a.result(t.Elem, selection))
	case def.IsCompositeType():
		schema = a.resultObject(def, selection)
	default:
		schema = leaf(def)
	}
	if t.NonNull || !schema.HasAny("type") {
		return schema
	}
	return nullable(schema)
}

func (a *API) resultObject(def *ast.Definition, selection ast.SelectionSet) *object {
	properties := jsonobject.Of()
	for _, s := range selection {
		f, ok := s.(*ast.Field)
		if !ok {
			continue
		}
		if f.Name == "__typename" {
			properties.Set(f.Name, jsonobject.Of("type", "string"))
			continue
		}
		of := def.Fields.ForName(f.Name)
		properties.Set(f.Name, a.result(of.Type, f.SelectionSet))
	}
	return jsonobject.Of("type", "object", "properties", properties, "additionalProperties", true)
}

// isDeprecated reports whether a field should not be used any more.
func isDeprecated(f *ast.FieldDefinition) bool { return f.Directives.ForName("deprecated") != nil }

// needsArgument reports whether a field cannot be selected by its name alone.
func needsArgument(f *ast.FieldDefinition) bool {
	return slices.ContainsFunc(f.Arguments, func(arg *ast.ArgumentDefinition) bool { return arg.Type.NonNull && arg.DefaultValue == nil })
}
