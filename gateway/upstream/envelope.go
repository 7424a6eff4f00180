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

// envelope is a JSON-RPC message of any kind. What scan fills in are parts of the
// message itself, not copies.
type envelope struct {
	Version json.RawMessage `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  json.RawMessage `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// longestKey is the length in bytes of the longest name of a member that is looked at.
const longestKey = 64

// scan reads the members of the object that data begins with, even where that is
// no JSON, and returns the length of the object, len(data) if it has no end.
func (e *envelope) scan(data []byte) int { return scan(data, e.note) }

// scan tells note the members of the object, or the elements of the list, that data begins
// with, even where that is no JSON. They are parts of data, not copies; an element has no
// key. It returns the length of the object or list, len(data) if it has no end.
func scan(data []byte, note func(key string, value json.RawMessage)) int {
	depth, m := 0, field{note: note, data: data, from: -1}
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			begin := i
			if i = jsontext.EndOfString(data, i); depth == 1 {
				m.name(begin, i)
			}
		case ':', ',':
			if depth == 1 {
				m.mark(c, i)
			}
		case '{', '[':
			if depth++; depth == 1 && c == '[' {
				m.list, m.from = true, i+1
			}
		case '}', ']':
			if depth == 1 {
				m.mark(c, i)
			}
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return len(data)
}

// field is the member of the outermost object, or the element of the outermost list, that a scan is at.
type field struct {
	note func(key string, value json.RawMessage)
	data []byte
	list bool
	key  string
	from int // where its value begins, -1 before that
}

// name takes a string that begins and ends there for the key, unless it is in the value.
func (m *field) name(begin, end int) {
	if m.from < 0 && end < len(m.data) && end-begin < longestKey {
		m.key = text(m.data[begin : end+1])
	}
}

// mark is at what stands between keys and values.
func (m *field) mark(c byte, at int) {
	if c == ':' {
		if m.from < 0 {
			m.from = at + 1
		}
		return
	}
	if m.from >= 0 {
		if value := bytes.TrimSpace(m.data[m.from:at]); len(value) > 0 || !m.list {
			m.note(m.key, value)
		}
	}
	if m.key, m.from = "", -1; m.list {
		m.from = at + 1
	}
}

func (e *envelope) note(key string, value json.RawMessage) {
	to := map[string]*json.RawMessage{
		"jsonrpc": &e.Version, "id": &e.ID, "method": &e.Method, "params": &e.Params, "result": &e.Result, "error": &e.Error,
	}[key]
	if to != nil {
		*to = value // of two of a name the last counts, as nearly everywhere
	}
}

// failure returns the error of an answer, nil if it has none. One that is not as
// it should be is an error all the same.
func (e *envelope) failure() *jsonrpc.Error {
	if len(e.Error) == 0 || string(e.Error) == "null" {
		return nil
	}
	fields := members(e.Error)
	failure := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text(fields["message"]), Data: fields["data"]}
	_ = json.Unmarshal(orNull(fields["code"]), &failure.Code) // what is no number is an internal error
	if failure.Message == "" {
		failure.Message = cmp.Or(text(e.Error), "an error without a message")
	}
	return failure
}

// garbled is why an answer fails its call that is there but cannot be read.
type garbled struct{ why string }

func (g *garbled) Error() string { return g.why }

func isGarbled(err error) bool {
	_, ok := errors.AsType[*garbled](err)
	return ok
}

// parseEnvelope returns nil for what is no JSON-RPC message. An answer that is
// malformed but has a readable id becomes a response with the error
// [garbled]; an error that says that it has no id, one whose ID is not valid. NaN and Infinity, which many servers write, are
// read as null. The message keeps parts of data.
func parseEnvelope(data []byte) jsonrpc.Message {
	if !mayBeMessage(data) {
		return nil
	}
	valid := json.Valid(data)
	if !valid {
		if mended, ok := finite(data); ok && json.Valid(mended) {
			data, valid = mended, true
		}
	}
	var env envelope
	env.scan(data)
	id, ok := parseID(env.ID)
	why := env.fault(ok)
	switch {
	case !valid && env.Method == nil:
		return env.garbled(id, syntaxFault(data))
	case !valid:
		return nil
	case env.Method != nil:
		return env.request(id, why)
	case why != "":
		return env.garbled(id, why)
	}
	if failure := env.failure(); failure != nil { // a nil *jsonrpc.Error would not be a nil error
		return &jsonrpc.Response{ID: id, Error: failure}
	}
	if !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Result: env.Result}
}

// fault says what is wrong with the members, "" for nothing.
func (e *envelope) fault(id bool) string {
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

// garbled returns nil where nothing says that this was to be an answer, and to
// what: servers write logs as JSON, too, and parts of messages between others.
func (e *envelope) garbled(id jsonrpc.ID, why string) jsonrpc.Message {
	if n, ok := id.Raw().(int64); !id.IsValid() || e.Version == nil && (!ok || n < firstID) {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: &garbled{why}}
}

func syntaxFault(data []byte) string {
	var nothing json.RawMessage
	err := json.Unmarshal(data, &nothing)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is no JSON: %s, at byte %d of %d", err, syntax.Offset, len(data))
	}
	return "it is no JSON"
}

// notFinite are the words outside of strings that Python and others write for
// numbers that JSON does not have.
var notFinite = [][]byte{[]byte("-Infinity"), []byte("Infinity"), []byte("NaN"), []byte("-inf"), []byte("inf"), []byte("nan")}

// finite replaces numbers that JSON does not have by null; ok is false if there are none.
func finite(data []byte) (out []byte, ok bool) {
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

// opening is how a message begins behind text that does not belong to it.
var opening = regexp.MustCompile(`\{\s*"(?:jsonrpc|id|result|error)"\s*:`)

// rescue finds the answers in a line that is no message as a whole: behind a
// progress bar, before other text, or one that cannot be read. Requests are not
// taken from there: who logs what was received would ask us our own questions.
func rescue(line []byte) (answers []jsonrpc.Message) {
	for len(line) > 0 {
		if line[0] != '{' {
			at := opening.FindIndex(line)
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
