package bridge

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Program is the program that the host sends to a guest.
type Program struct {
	Code string `json:"code"`
	// File is the program's path below /workspace, "" if it has none.
	File string `json:"file,omitempty"`
	// ValueLimit is how many characters of the program's value the guest sends at most.
	ValueLimit int `json:"value_limit"`
	// Keep asks the guest to stay after the program's end, with the program's state in memory.
	Keep bool `json:"keep,omitempty"`
	// Frame is the maximum size of a guest's frame in bytes, 0 for 16 MiB; Run sets it.
	Frame int64 `json:"frame,omitempty"`
	// Variables are predefined in the program by name, each with a JSON value.
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	// Prelude is a module in Python; its public names are predefined in the program, "" for none.
	Prelude string `json:"prelude,omitempty"`
	// Workspace asks for the program's changes in /workspace, up to that quota; Run sets it.
	Workspace *Quota `json:"workspace,omitempty"`
}

// ProgramResult is the guest's report of its program's end. It comes from untrusted code,
// but every field is bounded: see docs/reference/bridge.md.
type ProgramResult struct {
	// Value is nil if the program has no value.
	Value *Value `json:"value,omitempty"`
	// Fault is set if the program ended with an exception.
	Fault *Fault `json:"fault,omitempty"`
	// Exit is the program's exit status, 0 to 255.
	Exit int `json:"exit,omitempty"`
	// Refused has the calls that the guest itself refused, nil if there are none.
	Refused *Refused `json:"refused,omitempty"`
}

// Refused has calls whose arguments did not fit, so that the guest did not make them.
type Refused struct {
	Count int `json:"count"`
	// Tool is the id of the first one's tool, Message is its error.
	Tool    string `json:"tool"`
	Message string `json:"message"`
}

// Value is the program's value: its last expression, or its default export.
type Value struct {
	// Kind is "json" if Text is the complete value as JSON, otherwise "text".
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Size is the length in bytes of the complete text, before it was cut.
	Size int64 `json:"size"`
}

// Fault is an exception that the program did not catch.
type Fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// Lines are the stack frames in the program itself, outermost first.
	Lines []Line `json:"lines,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// Line is one stack frame in the program, or in a file that it imports.
type Line struct {
	// File is the other file, "" for the program itself.
	File     string `json:"file,omitempty"`
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
}

// guestFrame is any frame of a guest; Type says which fields are used.
type guestFrame struct {
	Type string          `json:"type"`
	ID   int64           `json:"id"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Progress requests progress frames for the call.
	Progress bool `json:"progress"`
	// Content is the content of an "emit" frame, decoded only there.
	Content json.RawMessage `json:"content"`

	Value *Value       `json:"value"`
	Fault *cappedFault `json:"fault"`
	Exit  int          `json:"exit"`
	// Leaving means in a "done" frame that the guest will not stay, although Keep was set.
	Leaving bool     `json:"leaving"`
	Refused *Refused `json:"refused"`

	// Entries belong to "files", decoded only there. Clock belongs to "copied".
	Entries json.RawMessage `json:"entries"`
	Clock   string          `json:"clock"`

	size int // of the frame, in bytes
}

// cappedFault is a Fault that is decoded only up to maxFault bytes: decoded lines take
// up to fifteen times the memory of their text.
type cappedFault struct{ Fault }

// maxFault is the maximum length in bytes of a fault that is decoded.
const maxFault = 1 << 20

// UnmarshalJSON decodes a fault, or replaces it with a note that it is too long.
func (f *cappedFault) UnmarshalJSON(data []byte) error {
	if len(data) > maxFault {
		f.Fault = Fault{Type: "Error", Message: "(the description of the fault is too long)"}
		return nil
	}
	return json.Unmarshal(data, &f.Fault)
}

var errNotUTF8 = errors.New("the frame is not UTF-8")

// parse decodes a frame. It must be UTF-8, because arguments are forwarded to an upstream unchanged.
func parse(data []byte) (guestFrame, error) {
	if !utf8.Valid(data) {
		return guestFrame{}, errNotUTF8
	}
	var frame guestFrame
	err := json.Unmarshal(data, &frame)
	frame.size = len(data)
	return frame, err
}

// The bounds of a fault, in bytes (maxLines: in lines): more than our guest sends.
const (
	maxName    = 256
	maxMessage = 16 << 10
	maxHint    = 2 << 10
	maxSource  = 1 << 10
	maxLines   = 20
)

// programResult returns the program's result, with all fields bounded. The guest keeps to these
// limits, but a program can send frames in its place.
func (f guestFrame) programResult(valueLimit int) ProgramResult {
	done := ProgramResult{Exit: f.Exit & 0xff}
	if f.Value != nil {
		done.Value = f.Value.truncate(valueLimit)
	}
	if f.Fault != nil {
		done.Fault = f.Fault.truncate()
	}
	if r := f.Refused; r != nil && r.Count > 0 {
		done.Refused = &Refused{r.Count, cutRunes(r.Tool, maxName), cutRunes(r.Message, maxHint)}
	}
	return done
}

func (v *Value) truncate(limit int) *Value {
	text := cutRunes(v.Text, limit)
	kind := "text"
	if v.Kind == "json" && len(text) == len(v.Text) && json.Valid([]byte(text)) {
		kind = "json"
	}
	return &Value{Kind: kind, Text: text, Size: max(v.Size, int64(len(v.Text)))}
}

func (f Fault) truncate() *Fault {
	f.Type, f.Message, f.Hint = cutBytes(f.Type, maxName), cutBytes(f.Message, maxMessage), cutBytes(f.Hint, maxHint)
	f.Lines = f.Lines[:min(len(f.Lines), maxLines)]
	for i := range f.Lines {
		line := &f.Lines[i]
		line.Function, line.Source, line.File = cutBytes(line.Function, maxName), cutBytes(line.Source, maxSource), cutBytes(line.File, maxName)
	}
	return &f
}

// cutRunes returns the first limit characters of s.
func cutRunes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n == limit {
			return s[:i]
		}
		n++
	}
	return s
}

// cutBytes returns the longest prefix of s with at most limit bytes and whole characters.
func cutBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
