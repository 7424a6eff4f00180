package openapi

import (
	"bytes"
	"encoding/json"

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

// appendJSON appends a value in JSON.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, key := range v.Keys() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, key), ':')
			b = appendJSON(b, v.Get(key))
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, one)
		}
		return append(b, ']')
	case json.RawMessage:
		return append(b, v...)
	case string:
		return appendText(b, v)
	}
	data, err := json.Marshal(v)
	if err != nil { // a number out of range of JSON, which YAML has
		return append(b, "null"...)
	}
	return append(b, data...)
}

// appendText appends a string in JSON, without escaping HTML.
func appendText(b []byte, s string) []byte {
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string is always valid
	return bytes.TrimRight(w.Bytes(), "\n")
}

// texts returns a list of strings as a JSON list.
func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = t
	}
	return all
}
