package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/jsontext"
)

// envelope is a JSON-RPC message of any kind. The members that scan sets are parts of
// the message, not copies.
type envelope struct {
	Version json.RawMessage `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  json.RawMessage `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// scan reads the members of the object at the start of data, even if it is invalid JSON,
// and returns the length of the object, len(data) if it has no end.
func (e *envelope) scan(data []byte) int { return jsontext.Scan(data, e.set) }

func (e *envelope) set(key string, value json.RawMessage) {
	to := map[string]*json.RawMessage{
		"jsonrpc": &e.Version, "id": &e.ID, "method": &e.Method, "params": &e.Params, "result": &e.Result, "error": &e.Error,
	}[key]
	if to != nil {
		*to = value // the last of duplicate members counts, as in encoding/json
	}
}

// failure returns the error of a response, nil if it has none. A malformed error
// object is an error too.
func (e *envelope) failure() *jsonrpc.Error {
	if len(e.Error) == 0 || string(e.Error) == "null" {
		return nil
	}
	fields := members(e.Error)
	failure := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text(fields["message"]), Data: fields["data"]}
	_ = json.Unmarshal(orNull(fields["code"]), &failure.Code) // an invalid code leaves the internal error
	if failure.Message == "" {
		failure.Message = cmp.Or(text(e.Error), "an error without a message")
	}
	return failure
}

// malformedError is the error of a call with a malformed response.
type malformedError struct{ why string }

func (g *malformedError) Error() string { return g.why }

func isMalformed(err error) bool {
	_, ok := errors.AsType[*malformedError](err)
	return ok
}

// parseEnvelope parses a JSON-RPC message; it returns nil for anything else. A
// malformed response with a readable ID becomes a response with the error [malformedError];
// an error response without an ID has an invalid ID. NaN and Infinity, which many
// servers write, are read as null. The message keeps parts of data.
func parseEnvelope(data []byte) jsonrpc.Message {
	if !mayBeMessage(data) {
		return nil
	}
	valid := json.Valid(data)
	if !valid {
		if mended, ok := replaceNonFinite(data); ok && json.Valid(mended) {
			data, valid = mended, true
		}
	}
	var env envelope
	env.scan(data)
	id, ok := parseID(env.ID)
	why := env.problem(ok)
	switch {
	case !valid && env.Method == nil:
		return env.malformedResponse(id, syntaxProblem(data))
	case !valid:
		return nil
	case env.Method != nil:
		return env.request(id, why)
	case why != "":
		return env.malformedResponse(id, why)
	}
	if failure := env.failure(); failure != nil { // a nil *jsonrpc.Error would not be a nil error
		return &jsonrpc.Response{ID: id, Error: failure}
	}
	if !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Result: env.Result}
}

// problem returns what is wrong with the members, "" for nothing. id reports whether the ID is valid.
func (e *envelope) problem(id bool) string {
	switch {
	case text(e.Version) != "2.0":
		return `its "jsonrpc" is not "2.0"`
	case !id:
		return `its "id" is neither a number nor a string`
	case e.Method == nil && e.Result == nil && e.Error == nil:
		return `it has neither "result" nor "error"`
	}
	return ""
}

func (e *envelope) request(id jsonrpc.ID, why string) jsonrpc.Message {
	method := text(e.Method)
	if why != "" || method == "" {
		return nil
	}
	return &jsonrpc.Request{ID: id, Method: method, Params: e.Params}
}

// malformedResponse returns a response with an error, nil if data is not recognizable as a response to
// one of our requests: servers also write logs as JSON, and fragments of messages.
func (e *envelope) malformedResponse(id jsonrpc.ID, why string) jsonrpc.Message {
	if n, ok := id.Raw().(int64); !id.IsValid() || e.Version == nil && (!ok || n < firstID) {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: &malformedError{why}}
}

func syntaxProblem(data []byte) string {
	var nothing json.RawMessage
	err := json.Unmarshal(data, &nothing)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("invalid JSON: %s, at byte %d of %d", err, syntax.Offset, len(data))
	}
	return "invalid JSON"
}

// notFinite are the words that Python and others write for non-finite numbers,
// which JSON does not have.
var notFinite = [][]byte{[]byte("-Infinity"), []byte("Infinity"), []byte("NaN"), []byte("-inf"), []byte("inf"), []byte("nan")}

// replaceNonFinite replaces non-finite numbers by null; ok is false if there are none.
func replaceNonFinite(data []byte) (out []byte, ok bool) {
	from := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = jsontext.EndOfString(data, i)
		case '-', 'I', 'N', 'i', 'n':
			for _, word := range notFinite {
				if bytes.HasPrefix(data[i:], word) {
					out = append(append(out, data[from:i]...), "null"...)
					i += len(word) - 1
					from, ok = i+1, true
					break
				}
			}
		}
	}
	if !ok {
		return data, false
	}
	return append(out, data[from:]...), true
}

// messageStart matches the start of a message after other text.
var messageStart = regexp.MustCompile(`\{\s*"(?:jsonrpc|id|result|error)"\s*:`)

// recoverResponses finds the responses in a line that is not a message as a whole: after a
// progress bar, before other text, or next to a malformed message. It ignores
// requests: a server that logs what it receives would send back our own requests.
func recoverResponses(line []byte) (answers []jsonrpc.Message) {
	for len(line) > 0 {
		if line[0] != '{' {
			at := messageStart.FindIndex(line)
			if at == nil {
				return answers
			}
			line = line[at[0]:]
		}
		size := (&envelope{}).scan(line)
		if answer, ok := parseMessage(line[:size]).(*jsonrpc.Response); ok {
			answers = append(answers, answer)
		}
		line = bytes.TrimSpace(line[size:])
	}
	return answers
}
