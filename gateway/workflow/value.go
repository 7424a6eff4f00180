package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

const (
	// maxOutput limits the output of a step as JSON, in bytes; maxList that of a loop.
	maxOutput = 8 << 20
	maxList   = 32 << 20
	// maxInput limits a step's input in its event.
	maxInput = 64 << 10
)

// encode returns a value as compact JSON of at most so many bytes.
func encode(v any, most int) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the value is not JSON", Err: err}
	}
	data := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(data) > most {
		return nil, tooLarge(len(data), most)
	}
	return data, nil
}

func tooLarge(size, most int) error {
	return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("the output has %d bytes of JSON, the limit is %d", size, most), Hint: "return less, or write it to a workspace file"}
}

// decode decodes JSON to a value for expressions; empty data is nil. The result for the same bytes is always
// the same, so a continued run sees the same values.
func decode(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	return expr.Decode(data)
}
