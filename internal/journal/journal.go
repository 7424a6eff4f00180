// Package journal keeps what one execution did in a file of its own, so that it can be run again without doing it twice:
// its program, each call as it begins and its result, and its end. A record is with the kernel when its method
// returns, so it survives a kill of the process; [Writer.Kept] makes it survive a loss of power too. The main types are
// [Writer], of an execution that runs, and [File], of one that has run, which [Open] reads.
//
// While an execution runs, its file is locked. A file without a lock belongs to a process that has ended. Each record has its length
// and its sum; from the first that is damaged on, nothing of a file counts.
package journal

import (
	"encoding/json"
	"errors"
	"time"

	"sallyport/internal/tool"
)

// What can be wrong, to be asked for with errors.Is.
var (
	// ErrRunning: the execution runs, or its file is locked by another reader.
	ErrRunning = errors.New("it still runs")
	// ErrDamaged: this is no journal, or not even its beginning can be read.
	ErrDamaged = errors.New("the journal is damaged")
)

// Header is what a journal begins with.
type Header struct {
	// ID is the execution's.
	ID string `json:"id"`
	// Resumes is the execution that it continues with, Root the first of those; "" if there is none.
	Resumes string `json:"resumes,omitempty"`
	Root    string `json:"root,omitempty"`
	// Principal and Session are who ran it.
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"`
	Started   time.Time `json:"started"`
	// Program is what is needed to run it again, as its owner writes it.
	Program json.RawMessage `json:"program,omitempty"`
}

// State is how far a call came.
type State string

// The states of a call.
const (
	// Begun: it was on its way to the upstream, and nothing is known of its end: it may have been done.
	Begun State = "begun"
	// Ended: its result is known.
	Ended State = "ended"
	// Refused: it did not leave, or is known not to have been done.
	Refused State = "refused"
)

// Decision is what a person has said about a call that may have been done.
type Decision string

// The decisions. That a call was not done needs none: the call that is made in its place replaces it, see [Writer.Begin].
const (
	// Done: it was done, and Result is what it returned.
	Done Decision = "done"
	// Left: it is not made, whether it was done or not; Err says so to the program.
	Left Decision = "left"
)

// Call is one call of an execution.
type Call struct {
	// Number counts the calls of a journal from 1.
	Number int
	Tool   tool.ID
	// Definition is the digest of the tool's definition, Arguments that of the arguments.
	Definition string
	Arguments  string
	// Args are the arguments as the program gave them, in compact JSON; nil where they are not kept.
	Args  []byte
	State State
	// Result and Err are what an ended call came to; exactly one of them counts. Lost says that the result was too large to be kept.
	Result tool.Result
	Err    *tool.Error
	Lost   bool
	// Origin says which call of which execution it was first, of one that was carried over.
	Origin string
	// Decision is a person's, "" for none. A call that has one is Ended.
	Decision Decision
	// Asked: the program has asked for it. A call that was carried over from another journal may not have been asked for yet.
	Asked bool
	// Optional: the program may go on without asking for it, as it is another than the one that made it.
	Optional bool
	// Last: no other call began after this one had ended.
	Last bool
}
