package resultschema

import (
	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

// maxParts is how many blocks of one result are used.
const maxParts = 128

// ShapeOf returns the shape of the value that a program gets.
func ShapeOf(v tool.Value) (jsontype.Shape, error) {
	switch {
	case v.Blob != nil:
		return jsontype.Shape{Kinds: jsontype.Blob}, nil
	case v.Parts == nil:
		return jsontype.Of(v.JSON)
	}
	var all jsontype.Shape
	for _, part := range v.Parts[:min(len(v.Parts), maxParts)] {
		s, err := ShapeOf(part)
		if err != nil {
			return jsontype.Shape{}, err
		}
		all = jsontype.Merge(all, s)
	}
	return jsontype.ListOf(all), nil
}

// resultSize returns about how many bytes of memory a result retains.
func resultSize(r tool.Result) int {
	n := len(r.Structured) + len(r.Raw)
	for _, c := range r.Content {
		n += len(c.Text) + len(c.Data) + len(c.Raw)
	}
	return n
}
