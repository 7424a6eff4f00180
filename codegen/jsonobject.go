package codegen

import (
	"errors"

	"sallyport/internal/jsonobject"
)

const (
	// maxSchemaBytes is the maximum length of a schema; the longest of a real server has 90 KB.
	maxSchemaBytes = 2 << 20
	// maxNesting is the maximum nesting of JSON.
	maxNesting = 200
)

var errNesting = errors.New("nested too deeply")

// object is a part of a schema. All methods that read it accept nil as an empty object.
type object = jsonobject.Object

// decode parses one JSON value within the limits of a schema.
func decode(data []byte) (any, error) {
	if len(data) > maxSchemaBytes {
		return nil, errors.New("too long")
	}
	return jsonobject.Decode(data, func(depth int, container bool) error {
		if container && depth >= maxNesting {
			return errNesting
		}
		return nil
	})
}
