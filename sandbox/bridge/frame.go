package bridge

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Program is what a guest is asked to run.
type Program struct {
	Code string `json:"code"`
	// File is where the program is below /workspace, "" if it is nowhere.
	File string `json:"file,omitempty"`
	// ValueLimit is how many characters of the program's value the guest sends at most.
	ValueLimit int `json:"value_limit"`
	// Keep asks the guest to stay after the program's end, with what the program left in memory.
	Keep bool `json:"keep,omitempty"`
	// Frame is how many bytes a frame of the guest may have, 0 for 16 MiB; Run fills it in.
	Frame int64 `json:"frame,omitempty"`
	// Variables are what the program finds under their names, each a JSON value.
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	// Workspace asks for what the program changes in /workspace, up to there; Run fills it in.
	Workspace *Room `json:"workspace,omitempty"`
}

// Done is what a guest says of its program's end. It was written by untrusted
// code, but every field of it has a bound: see docs/bridge.md.
type Done struct {
	// Value is nil where the program has none.
	Value *Value `json:"value,omitempty"`
	// Fault is set where the program ended by an exception.
	Fault *Fault `json:"fault,omitempty"`
	// Exit is the status that the program asked for by itself, 0 to 255.
	Exit int `json:"exit,omitempty"`
}

// Value is the program's value: its last expression, or its default export.
type Value struct {
	// Kind is "json" where Text is all of the value as JSON, else "text".
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Size is the length in bytes of the whole text, before it was cut.
	Size int64 `json:"size"`
}

// Fault is an exception that the program did not catch.
type Fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// Lines are the places in the program itself, outermost first.
	Lines []Line `json:"lines,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// Line is one place in the program, or in a file that it imports.
type Line struct {
	// File is the other file, "" for the program itself.
	File     string `json:"file,omitempty"`
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
}

// incoming is any frame of a guest: "call", "emit", "done" or "pong".
type incoming struct {
	Type string          `json:"type"`
	ID   int64           `json:"id"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Progress asks for frames about the call's progress.
	Progress bool `json:"progress"`
	// Content is what an "emit" brings; read only there.
	Content json.RawMessage `json:"content"`

	Value *Value `json:"value"`
	Fault *fault `json:"fault"`
	Exit  int    `json:"exit"`
	// Leaving says in a "done" that the guest will not stay, although it was asked to.
	Leaving bool `json:"leaving"`

	// Entries are those of "files"; read only there. Clock is of "copied".
	Entries json.RawMessage `json:"entries"`
	Clock   string          `json:"clock"`

	size int // of the frame, in bytes
}

// fault is a Fault that is read only where its text is short: the lines of a
// long one would take up fifteen times the memory of their text.
type fault struct{ Fault }

// maxFault is the length in bytes of the longest fault that is read.
const maxFault = 1 << 20

// UnmarshalJSON reads a fault, or says in its place that it is too long.
func (f *fault) UnmarshalJSON(data []byte) error {
	if len(data) > maxFault {
		f.Fault = Fault{Type: "Error", Message: "(the description of the fault is too long)"}
		return nil
	}
	return json.Unmarshal(data, &f.Fault)
}

var errNotUTF8 = errors.New("the frame is not UTF-8")

// parse reads a frame. Arguments go on to an upstream as they are, so they have to be UTF-8.
func parse(data []byte) (incoming, error) {
	if !utf8.Valid(data) {
		return incoming{}, errNotUTF8
	}
	var frame incoming
	err := json.Unmarshal(data, &frame)
	frame.size = len(data)
	return frame, err
}

// The bounds of a fault, in bytes: more than our guest sends.
const (
	maxName    = 256
	maxMessage = 16 << 10
	maxHint    = 2 << 10
	maxSource  = 1 << 10
	maxLines   = 20
)

// done returns how the program ended. The guest was asked to keep to limits,
// but a program can speak in its place.
func (f incoming) done(valueLimit int) Done {
	done := Done{Exit: f.Exit & 0xff}
	if f.Value != nil {
		done.Value = f.Value.bounded(valueLimit)
	}
	if f.Fault != nil {
		done.Fault = f.Fault.bounded()
	}
	return done
}

func (v *Value) bounded(limit int) *Value {
	text := cutRunes(v.Text, limit)
	kind := "text"
	if v.Kind == "json" && len(text) == len(v.Text) && json.Valid([]byte(text)) {
		kind = "json"
	}
	return &Value{Kind: kind, Text: text, Size: max(v.Size, int64(len(v.Text)))}
}

func (f Fault) bounded() *Fault {
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

// cutBytes returns what fits of s into limit bytes, in whole characters.
func cutBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
