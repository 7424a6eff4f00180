package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

const (
	// maxOutput is how large the output of a step may be, as JSON; maxList that of a loop.
	maxOutput = 8 << 20
	maxList   = 32 << 20
	// maxInput is how much of a step's input its event has.
	maxInput = 64 << 10
)

// encode writes a value as compact JSON of at most so many bytes.
func encode(v any, most int) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the value is no JSON", Err: err}
	}
	data := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(data) > most {
		return nil, tooLarge(len(data), most)
	}
	return data, nil
}

func tooLarge(size, most int) error {
	return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("the output has %d bytes of JSON, of at most %d", size, most), Hint: "take less at once, or keep it in a file of a workspace"}
}

// decode reads JSON into what expressions work with; what is not there is null. What it returns for the same bytes is always
// the same, so a run that is entered again sees what it saw before.
func decode(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	return expr.Decode(data)
}
