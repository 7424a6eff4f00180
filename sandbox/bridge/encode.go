package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"sallyport/internal/tool"
)

// The host's frames are encoded by hand: encoding/json would validate, copy and
// escape each level of a result again, and results can be large.

// runFrame is the frame with the program.
type runFrame struct {
	Type string `json:"type"`
	Program
}

// errorFrame is the frame that answers a call with an error.
type errorFrame struct {
	Type  string    `json:"type"`
	ID    int64     `json:"id"`
	Error errorBody `json:"error"`
}

type errorBody struct {
	Kind    tool.Kind `json:"kind"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
	// Retryable is [tool.Error]'s.
	Retryable bool `json:"retryable,omitempty"`
}

// progressFrame is the frame with a call's progress.
type progressFrame struct {
	Type string `json:"type"`
	ID   int64  `json:"id"`
	progress
}

func appendRun(b []byte, program Program) ([]byte, error) {
	return appendJSON(b, runFrame{Type: "run", Program: program})
}

func appendError(b []byte, id int64, e *tool.Error) []byte {
	frame, err := appendJSON(b, errorFrame{Type: "error", ID: id, Error: errorBody{Kind: e.Kind, Message: e.Message, Hint: e.Hint, Retryable: e.Retryable}})
	if err != nil {
		panic(err) // strings and a number can always be encoded
	}
	return frame
}

func appendProgress(b []byte, id int64, p progress) []byte {
	frame, err := appendJSON(b, progressFrame{Type: "progress", ID: id, progress: p})
	if err != nil {
		panic(err) // strings and finite numbers can always be encoded
	}
	return frame
}

// appendResult appends the result frame of a call. Guests may rely on type and id
// coming first: these identify the call if the rest cannot be decoded.
func appendResult(b []byte, id int64, value tool.Value) ([]byte, error) {
	b, err := appendValue(appendResultHead(b, id), value)
	return append(b, '}'), err
}

// appendRawResult is appendResult for an already encoded value.
func appendRawResult(b []byte, id int64, value json.RawMessage) ([]byte, error) {
	b, err := appendRaw(appendResultHead(b, id), value)
	return append(b, '}'), err
}

const resultHead, resultValue = `{"type":"result","id":`, `,"value":`

func appendResultHead(b []byte, id int64) []byte {
	b = strconv.AppendInt(append(b, resultHead...), id, 10)
	return append(b, resultValue...)
}

func appendValue(b []byte, value tool.Value) ([]byte, error) {
	switch {
	case value.Parts != nil:
		return appendParts(b, value.Parts)
	case value.Blob != nil:
		return appendBlob(b, value.Blob)
	case len(value.JSON) == 0:
		return append(b, `{"json":null}`...), nil
	}
	b = append(b, `{"json":`...)
	b, err := appendRaw(b, value.JSON)
	return append(b, '}'), err
}

func appendParts(b []byte, parts []tool.Value) ([]byte, error) {
	b = append(b, `{"parts":[`...)
	for i, part := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, part); err != nil {
			return b, err
		}
	}
	return append(b, "]}"...), nil
}

func appendBlob(b []byte, blob *tool.Blob) ([]byte, error) {
	b = append(b, `{"blob":{"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, blob.Data)
	b = append(b, `","mime":`...)
	for _, field := range []struct{ key, text string }{{"", blob.MIME}, {`,"uri":`, blob.URI}, {`,"name":`, blob.Name}} {
		if field.key != "" && field.text == "" {
			continue
		}
		var err error
		if b, err = appendJSON(append(b, field.key...), field.text); err != nil {
			return b, err
		}
	}
	return append(b, "}}"...), nil
}

var errNotJSON = errors.New("a result is not JSON")

// appendRaw appends JSON of an upstream unchanged. It validates the JSON, which could
// otherwise end the frame and begin another, and replaces invalid UTF-8.
func appendRaw(b []byte, raw json.RawMessage) ([]byte, error) {
	if !valid(raw) {
		return b, errNotJSON
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if room := len(raw) + 16; cap(b)-len(b) < room { // with what closes the frame
		b = append(make([]byte, 0, len(b)+room), b...) // slices.Grow allocates twice under the race detector
	}
	return append(b, raw...), nil
}

// appendJSON appends v as JSON without HTML escapes.
func appendJSON(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
