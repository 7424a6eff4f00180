package shapes

import (
	"sallyport/internal/shape"
	"sallyport/internal/tool"
)

// maxParts is how many blocks of one result are looked at.
const maxParts = 128

// shapeOf is the shape of what a program gets.
func shapeOf(v tool.Value) (shape.Shape, error) {
	switch {
	case v.Blob != nil:
		return shape.Shape{Kinds: shape.Blob}, nil
	case v.Parts == nil:
		return shape.Of(v.JSON)
	}
	var all shape.Shape
	for _, part := range v.Parts[:min(len(v.Parts), maxParts)] {
		s, err := shapeOf(part)
		if err != nil {
			return shape.Shape{}, err
		}
		all = shape.Merge(all, s)
	}
	return shape.ListOf(all), nil
}

// weight is about how many bytes a result holds on to.
func weight(r tool.Result) int {
	n := len(r.Structured) + len(r.Raw)
	for _, c := range r.Content {
		n += len(c.Text) + len(c.Data) + len(c.Raw)
	}
	return n
}
