package grpc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
)

type object = jsonobject.Object

// work counts down what all schemas may cost: a message can be part of many. It keeps those that were made.
type work struct {
	left int
	made map[string]json.RawMessage
}

// schemas builds one schema.
type schemas struct {
	output   bool
	maxDepth int // levels of messages; deeper ones are of any type
	steps    int // fields and values that are left
	work     *work
	defs     *object
}

// build returns the schema of a key, which it makes the first time.
func (w *work) build(key string, output bool, f func(*schemas) *object) json.RawMessage {
	if w.made[key] == nil {
		w.made[key] = w.fit(output, f)
	}
	return w.made[key]
}

// fit returns a schema with as many levels of messages as fit. If none does, it says nothing of the fields.
func (w *work) fit(output bool, f func(*schemas) *object) json.RawMessage {
	for _, depth := range []int{8, 5, 3, 2, 1, 0} {
		s := &schemas{output: output, maxDepth: depth, steps: maxSchemaSteps, work: w, defs: jsonobject.Of()}
		schema := f(s)
		if s.steps < 0 || w.left < 0 {
			continue
		}
		if len(s.defs.Keys()) > 0 {
			schema.Set("$defs", s.defs)
		}
		if text := webapi.AppendJSON(nil, schema); len(text) <= maxSchema {
			return text
		}
	}
	return webapi.AppendJSON(nil, anyObject())
}

// step accounts for one field or value, and reports whether it may be made.
func (s *schemas) step() bool {
	s.steps--
	s.work.left--
	return s.steps >= 0 && s.work.left >= 0
}

// inputSchema returns the schema of the arguments.
func (m *method) inputSchema(w *work) json.RawMessage {
	return w.build(fmt.Sprint("input ", m.of.Input().FullName(), " ", m.count), false, func(s *schemas) *object {
		if m.whole != "" {
			value := special[m.of.Input().FullName()]()
			return m.withCount(jsonobject.Of("type", "object", "properties", jsonobject.Of(m.whole, value), "required", []any{m.whole}, "additionalProperties", false))
		}
		return m.withCount(s.fields(m.of.Input(), 0))
	})
}

// withCount adds the argument with the number of messages to return.
func (m *method) withCount(schema *object) *object {
	if m.count != "" {
		schema.Object("properties").Set(m.count, jsonobject.Of("type", "integer", "description", "How many messages of the stream to return at most",
			"minimum", json.Number("1"), "maximum", json.Number("10000"), "default", json.Number("100")))
	}
	return schema
}

// outputSchema returns the schema of the results.
func (m *method) outputSchema(w *work) json.RawMessage {
	return w.build(fmt.Sprint("output ", m.of.Output().FullName(), " ", m.result), true, func(s *schemas) *object {
		switch m.result {
		case wrapped:
			return jsonobject.Of("type", "object", "properties", jsonobject.Of("result", s.message(m.of.Output(), 0)), "required", []any{"result"}, "x-fastmcp-wrap-result", true)
		case asList:
			list := jsonobject.Of("type", "array", "items", s.message(m.of.Output(), 0))
			more := jsonobject.Of("type", "boolean", "description", "the stream has more messages")
			return jsonobject.Of("type", "object", "properties", jsonobject.Of("messages", list, "truncated", more), "required", []any{"messages", "truncated"}, "additionalProperties", false)
		}
		if isSpecial(m.of.Output()) {
			return special[m.of.Output().FullName()]()
		}
		return s.fields(m.of.Output(), 0)
	})
}

// message returns the schema of a message as part of another.
func (s *schemas) message(of protoreflect.MessageDescriptor, depth int) *object {
	if make := special[of.FullName()]; make != nil {
		return s.numbers(make())
	}
	if depth >= s.maxDepth {
		return jsonobject.Of("type", "object", "description", string(of.FullName()))
	}
	name := string(of.FullName())
	if !s.defs.Has(name) {
		s.defs.Set(name, jsonobject.Of()) // it may contain itself
		s.defs.Set(name, s.fields(of, depth+1))
	}
	return jsonobject.Of("$ref", "#/$defs/"+name)
}

// fields returns the schema of a message by its fields.
func (s *schemas) fields(of protoreflect.MessageDescriptor, depth int) *object {
	properties, required := jsonobject.Of(), []string{}
	for i := range of.Fields().Len() {
		fd := of.Fields().Get(i)
		behavior := behaviorOf(fd)
		ignored := !s.output && slices.Contains(behavior, outputOnly)
		if ignored && depth == 0 { // a message in an argument may be that of a result
			continue
		}
		if !s.step() {
			break
		}
		schema := s.described(fd, s.field(fd, depth))
		if ignored {
			schema.Set("readOnly", true)
		}
		properties.Set(fd.JSONName(), schema)
		if fd.Cardinality() == protoreflect.Required || s.output && !fd.HasPresence() || !s.output && slices.Contains(behavior, isRequired) {
			required = append(required, fd.JSONName())
		}
	}
	schema := jsonobject.Of("type", "object")
	if text := s.describeMessage(of, depth); text != "" {
		schema.Set("description", text)
	}
	schema.Set("properties", properties)
	if len(required) > 0 {
		schema.Set("required", webapi.List(required))
	}
	schema.Set("additionalProperties", s.output && of.ExtensionRanges().Len() > 0)
	return schema
}

// describeMessage describes a message that is part of another.
func (s *schemas) describeMessage(of protoreflect.MessageDescriptor, depth int) string {
	if depth == 0 {
		return "" // the description of the tool
	}
	lines := []string{comment(of, maxNested)}
	if !s.output {
		lines = append(lines, exclusive(of)...)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// exclusive tells which fields of an argument exclude each other.
func exclusive(of protoreflect.MessageDescriptor) (lines []string) {
	for i := range min(of.Oneofs().Len(), 20) {
		one := of.Oneofs().Get(i)
		if one.IsSynthetic() || one.Fields().Len() < 2 || isSpecial(of) {
			continue
		}
		var names []string
		for j := range min(one.Fields().Len(), 20) {
			names = append(names, one.Fields().Get(j).JSONName())
		}
		lines = append(lines, "At most one of "+strings.Join(names, ", ")+".")
	}
	return lines
}

// described adds the comment of a field, also to a reference.
func (s *schemas) described(fd protoreflect.FieldDescriptor, schema *object) *object {
	if text := comment(fd, maxNested); text != "" {
		schema.Set("description", text)
	}
	return schema
}

func (s *schemas) field(fd protoreflect.FieldDescriptor, depth int) *object {
	switch {
	case fd.IsMap():
		return jsonobject.Of("type", "object", "additionalProperties", s.value(fd.MapValue(), depth))
	case fd.IsList():
		return jsonobject.Of("type", "array", "items", s.value(fd, depth))
	}
	return s.value(fd, depth)
}

// value returns the schema of one value of a field.
func (s *schemas) value(fd protoreflect.FieldDescriptor, depth int) *object {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.message(fd.Message(), depth)
	case protoreflect.EnumKind:
		return s.enum(fd.Enum())
	case protoreflect.BoolKind:
		return jsonobject.Of("type", "boolean")
	case protoreflect.StringKind:
		return jsonobject.Of("type", "string")
	case protoreflect.BytesKind:
		return base64()
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return jsonobject.Of("type", "number")
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return s.numbers(jsonobject.Of("type", "string", "format", "int64"))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return s.numbers(jsonobject.Of("type", "string", "format", "uint64"))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return jsonobject.Of("type", "integer", "minimum", json.Number("0"))
	}
	return jsonobject.Of("type", "integer")
}

// numbers lets an argument of 64 bits also be a number. In a result it is a text, as JSON numbers are not exact in every language.
func (s *schemas) numbers(schema *object) *object {
	if format := schema.Text("format"); !s.output && (format == "int64" || format == "uint64") {
		schema.Set("type", []any{"string", "integer"})
	}
	return schema
}

// enum returns the schema of an enumeration: the names of its values.
func (s *schemas) enum(of protoreflect.EnumDescriptor) *object {
	if of.FullName() == "google.protobuf.NullValue" {
		return jsonobject.Of("type", "null")
	}
	var names []string
	for i := range of.Values().Len() {
		if !s.step() {
			break
		}
		names = append(names, string(of.Values().Get(i).Name()))
	}
	return jsonobject.Of("type", "string", "enum", webapi.List(names))
}

// The extension google.api.field_behavior of the options of a field, and the values of it that matter here.
const (
	fieldBehavior = 1052
	isRequired    = 2
	outputOnly    = 3
)

// behaviorOf returns the values of google.api.field_behavior. The option is read from its encoding, as no type of it is needed otherwise.
func behaviorOf(fd protoreflect.FieldDescriptor) (values []uint64) {
	options, err := proto.Marshal(fd.Options())
	if err != nil || len(options) == 0 {
		return nil
	}
	_ = fields(options, func(number protowire.Number, kind protowire.Type, value []byte) error { // valid, as it was just encoded
		if number != fieldBehavior {
			return nil
		}
		if kind != protowire.BytesType && kind != protowire.VarintType {
			return nil
		}
		for len(value) > 0 && len(values) < 20 {
			v, n := protowire.ConsumeVarint(value)
			if n < 0 {
				return nil
			}
			values, value = append(values, v), value[n:]
		}
		return nil
	})
	return values
}
