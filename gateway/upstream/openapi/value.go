package openapi

import (
	"sallyport/internal/jsonobject"
)

// object is a part of a document. The other values are []any, string, json.Number, bool and nil.
type object = jsonobject.Object

// newObject returns an object with the members of pairs, each a key and a value.
func newObject(pairs ...any) *object { return jsonobject.Of(pairs...) }

// parseJSON parses one JSON value within the limits of m; nil has none but the depth.
func parseJSON(data []byte, m *meter) (any, error) {
	return jsonobject.Decode(data, func(depth int, _ bool) error {
		switch {
		case depth > maxDepth:
			return beyond("is nested more than %d levels deep", maxDepth)
		case m != nil:
			return m.node()
		}
		return nil
	})
}
