package grpc

import (
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"

	"sallyport/internal/jsonobject"
)

// special are the schemas of standard messages that protojson does not write as an object of their fields.
var special = map[protoreflect.FullName]func() *object{
	"google.protobuf.Timestamp":   func() *object { return jsonobject.Of("type", "string", "format", "date-time") },
	"google.protobuf.Duration":    func() *object { return jsonobject.Of("type", "string", "description", "seconds, as 1.5s") },
	"google.protobuf.FieldMask":   func() *object { return jsonobject.Of("type", "string", "description", "paths of fields, as a,b.c") },
	"google.protobuf.Empty":       emptyObject,
	"google.protobuf.Struct":      anyObject,
	"google.protobuf.Value":       func() *object { return jsonobject.Of() },
	"google.protobuf.ListValue":   func() *object { return jsonobject.Of("type", "array", "items", jsonobject.Of()) },
	"google.protobuf.Any":         anyMessage,
	"google.protobuf.DoubleValue": func() *object { return jsonobject.Of("type", "number") },
	"google.protobuf.FloatValue":  func() *object { return jsonobject.Of("type", "number") },
	"google.protobuf.BoolValue":   func() *object { return jsonobject.Of("type", "boolean") },
	"google.protobuf.StringValue": func() *object { return jsonobject.Of("type", "string") },
	"google.protobuf.BytesValue":  base64,
	"google.protobuf.Int32Value":  func() *object { return jsonobject.Of("type", "integer") },
	"google.protobuf.UInt32Value": func() *object { return jsonobject.Of("type", "integer", "minimum", json.Number("0")) },
	"google.protobuf.Int64Value":  func() *object { return jsonobject.Of("type", "string", "format", "int64") },
	"google.protobuf.UInt64Value": func() *object { return jsonobject.Of("type", "string", "format", "uint64") },
}

func emptyObject() *object {
	return jsonobject.Of("type", "object", "properties", jsonobject.Of(), "additionalProperties", false)
}

func anyObject() *object { return jsonobject.Of("type", "object", "additionalProperties", true) }

func base64() *object { return jsonobject.Of("type", "string", "contentEncoding", "base64") }

func anyMessage() *object {
	url := jsonobject.Of("type", "string", "description", "as type.googleapis.com/NAME of the message whose fields follow")
	return jsonobject.Of("type", "object", "properties", jsonobject.Of("@type", url), "required", []any{"@type"}, "additionalProperties", true)
}

// isSpecial reports whether a message has a special JSON form.
func isSpecial(of protoreflect.MessageDescriptor) bool { return special[of.FullName()] != nil }

// isObject reports whether a standard message is an object in JSON.
func isObject(of protoreflect.MessageDescriptor) bool {
	return special[of.FullName()]().Text("type") == "object"
}
