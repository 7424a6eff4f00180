// Package journal records one execution in a file of its own, so that it can be resumed without repeating its calls:
// its program, each call as it begins, its result, and the end. When a method returns, the record is in the kernel
// and survives a kill of the process; [Writer.Settle] makes it survive a loss of power too. The main types are
// [Writer], for a running execution, and [File], for one that has ended, which [Open] reads.
//
// While an execution runs, its file is locked. A file without a lock belongs to a process that has ended. Each record
// has a length and a checksum; the file is ignored from the first damaged record on.
package journal

import (
	"encoding/json"
	"errors"
	"time"

	"sallyport/internal/tool"
)

// Errors, for use with errors.Is.
var (
	// ErrRunning: the execution runs, or its file is locked by another reader.
	ErrRunning = errors.New("the execution is still running")
	// ErrTaken: another gateway has written to the copy of the journal, so this one must not continue the execution.
	ErrTaken = errors.New("another gateway has taken the execution over")
	// ErrDamaged: the file is not a journal, or its header cannot be read.
	ErrDamaged = errors.New("the journal is damaged")
)

// Header is the first record of a journal.
type Header struct {
	// ID is the execution's ID.
	ID string `json:"id"`
	// Resumes is the execution that this one resumes, Root the first of that chain; "" if there is none.
	Resumes string `json:"resumes,omitempty"`
	Root    string `json:"root,omitempty"`
	// Principal and Session own the execution.
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"`
	Started   time.Time `json:"started"`
	// Gateway is the process that ran it, of those that share a store; "" if none do.
	Gateway string `json:"gateway,omitempty"`
	// Program is the data needed to run it again, in the caller's format.
	Program json.RawMessage `json:"program,omitempty"`
	// Void: the execution had no journal, and must not begin one, see [Void].
	Void bool `json:"void,omitempty"`
}

// Void returns the journal of an execution that had none. In the place of a copy, it keeps a gateway that was paused before the first
// call from making calls.
func Void(h Header) ([]byte, error) {
	h.Void = true
	head, err := json.Marshal(h)
	return appendFrame(appendFrame([]byte(magic), isHeader, head), isSettled, nil), err
}

// State is the state of a call.
type State string

// The states of a call.
const (
	// Begun: it was sent to the upstream, and its outcome is unknown: it may have been executed.
	Begun State = "begun"
	// Ended: its result is known.
	Ended State = "ended"
	// Refused: it was not sent, or is known not to have been executed.
	Refused State = "refused"
)

// Decision is a person's decision about a call that may have been executed.
type Decision string

// The decisions. A call that was not executed needs none: the call that is made in its place replaces it, see
// [Writer.Begin].
const (
	// Done: it was executed, and Result is what it returned.
	Done Decision = "done"
	// Skipped: it is not made again, whether it was executed or not; Err tells the program so.
	Skipped Decision = "left"
)

// Call is one call of an execution.
type Call struct {
	// Number counts the calls of a journal from 1.
	Number int
	Tool   tool.ID
	// Definition is the digest of the tool's definition, Arguments the digest of the arguments.
	Definition string
	Arguments  string
	// Args are the arguments as the program gave them, in compact JSON; nil if they were not recorded.
	Args  []byte
	State State
	// Result and Err are the outcome of an ended call; exactly one is set. Lost means that the result was too large to
	// be recorded.
	Result tool.Result
	Err    *tool.Error
	Lost   bool
	// Task is the id of the task that it became at its upstream, "" for none.
	Task string
	// Origin identifies the original call and execution of a carried over call.
	Origin string
	// Decision is a person's decision, "" for none. A call with a decision is Ended.
	Decision Decision
	// Asked: the program has requested the call. A call that was carried over may not have been requested yet.
	Asked bool
	// Optional: the program need not request it, as the program differs from the one that made the call.
	Optional bool
	// Last: no other call began after this one had ended.
	Last bool
}
