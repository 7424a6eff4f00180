package bridge

import (
	"encoding/json"

	"sallyport/internal/tool"
)

// Program is what a guest is asked to run.
type Program struct {
	Code string `json:"code"`
	// ValueLimit is how many characters of the program's value the guest sends at most.
	ValueLimit int `json:"value_limit"`
}

// Done is what a guest says of its program's end. It was written by untrusted code.
type Done struct {
	// Value is nil where the program has none.
	Value *Value `json:"value,omitempty"`
	// Fault is set where the program ended by an exception.
	Fault *Fault `json:"fault,omitempty"`
	// Exit is the status that the program asked for by itself.
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

// Line is one place in the program.
type Line struct {
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
}

// incoming is any frame of a guest: "call" or "done".
type incoming struct {
	Type string          `json:"type"`
	ID   int64           `json:"id"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	Done
}

// run, answer and failure are the frames of the host.
type run struct {
	Type string `json:"type"`
	Program
}

type answer struct {
	Type  string     `json:"type"`
	ID    int64      `json:"id"`
	Value tool.Value `json:"value"`
}

type failure struct {
	Type  string `json:"type"`
	ID    int64  `json:"id"`
	Error reason `json:"error"`
}

type reason struct {
	Kind    tool.Kind `json:"kind"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
}
