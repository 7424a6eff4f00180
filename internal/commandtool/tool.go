// Package commandtool turns the declaration of a tool that is a program into the command line of a call. [Compile]
// checks a [Tool]; [Command.Expand] fills in the arguments of a call, which are hostile: each placeholder fills one
// argument of the program or a part of one, no shell reads it, and no value becomes an option of the program.
package commandtool

import (
	"encoding/json"
	"time"
)

// Tool declares a tool that runs a program.
type Tool struct {
	// Name is the key in the file.
	Name string
	// Description says what it does, for models; default the command line.
	Description string
	// Run is the program and its arguments, each an item, without a shell. {name} in one is the value of a parameter, and {{name}} stands
	// for itself. An item that is the {name} of a list becomes one argument for each member; without a value it is left out.
	Run []string
	// Parameters are the arguments of a call, by name: JSON Schema with a type (string, integer, number, boolean, or array of these), and
	// "flag", "required" and "allow_dash". One with "default" or with "required: false" is optional; default none.
	Parameters json.RawMessage
	// Stdin is the input of the program, with placeholders as in run; default empty.
	Stdin string
	// Output is what the program prints: text, one JSON value (json), or one in each line (lines); default text.
	Output string
	// Result is the JSON Schema of that value, or of a line; default any.
	Result json.RawMessage
	// OKExit are the exit statuses of success; default 0.
	OKExit []int
	// ReadOnly is whether it changes nothing; default false.
	ReadOnly bool
	// Timeout bounds a call; default that of the upstream.
	Timeout time.Duration
}

// The outputs of programs.
const (
	Text  = "text"
	JSON  = "json"
	Lines = "lines"
)

// Fault is an invalid declaration: the keys that lead to the value, and what is wrong with it.
type Fault struct {
	At      []string
	Message string
}

func (f *Fault) Error() string { return f.Message }
