// Package approval keeps what people are asked about calls of tools, and what they have answered. Its main type is
// [Book]. How people are asked, and who may answer, is decided above it.
//
// A question is answered once, by one person, before it expires. What was allowed covers what was asked and no more:
// this call (its digest has tool and arguments) of this execution or of one that resumes it, once; or any call of the
// same tool under the same rule, until the execution or the session ends.
package approval

import (
	"encoding/json"
	"errors"
	"time"
)

// State is how a question stands.
type State string

// The states. Waiting is the only one that can be answered, Allowed the only one that lets a call through.
const (
	Waiting   State = "waiting"
	Allowed   State = "allowed"
	Denied    State = "denied"
	Done      State = "done"      // a person says that the call was done already
	Used      State = "used"      // allowed once, and that was made use of
	Expired   State = "expired"   // nobody answered in time
	Withdrawn State = "withdrawn" // whoever wanted the call has gone
	Lost      State = "lost"      // its record was damaged: the same call made again asks again
)

// Scope says for how long an answer holds.
type Scope string

// The scopes. The wider two are for any arguments.
const (
	Once      Scope = "once"
	Execution Scope = "execution"
	Session   Scope = "session"
)

// Request is a call, or a question, that needs approval. All texts are sanitized and bounded, for display.
type Request struct {
	Principal string `json:"principal,omitempty"`
	// Session identifies the client's session, see [tool.Session]. It cannot be used to join that session.
	Session string `json:"session,omitempty"`
	// Execution is the id of the one that asks, Root of the first of those that it resumes, itself where there is none;
	// both "" for a call that is of no program. Of a run of a workflow both are the run's id, Root also that of its programs.
	Execution string `json:"execution,omitempty"`
	Root      string `json:"root,omitempty"`
	Upstream  string `json:"upstream"`
	// Tool is the tool's whole id.
	Tool string `json:"tool"`
	// Arguments are as a person may read them, cut where they are long. They have tokens, never personal data.
	Arguments string `json:"arguments,omitempty"`
	// Digest is that of the tool, its definition and all of the arguments.
	Digest string `json:"digest"`
	// Rule is what wants the call approved, and Reason why.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Single says that it is answered for once only.
	Single bool `json:"single,omitempty"`
	// Doubt says that the call may have been done already: it can be answered with Done, and is allowed for this call only.
	Doubt bool `json:"doubt,omitempty"`
	// Standing says that the caller does not wait and fetches the answer later. A denial is returned once, too.
	Standing bool `json:"standing,omitempty"`
	// Expire is how long it can be answered, and what was allowed once be used after that; 0 is what the book says, [MaxExpire] the most.
	Expire time.Duration `json:"-"`
}

// MaxExpire is the longest that a question can be answered.
const MaxExpire = 7 * 24 * time.Hour

// Approval is a question, and its answer once there is one.
type Approval struct {
	// ID is "a-" and 130 random bits.
	ID string `json:"id"`
	Request
	State State     `json:"state"`
	Asked time.Time `json:"asked"`
	// Expires is the deadline for an answer, and then for its use. An answer for a session ends with the session.
	Expires time.Time `json:"expires"`
	// Answered is when, Scope for how long, By by whom, and Note what they said.
	Answered time.Time `json:"answered,omitzero"`
	Scope    Scope     `json:"scope,omitempty"`
	By       string    `json:"by,omitempty"`
	Note     string    `json:"note,omitempty"`
	// Result is what a call returned that was done already, as the person who answered says; nil where it is not known.
	Result json.RawMessage `json:"result,omitempty"`
	// Told says that a denial of a standing request was returned to its caller.
	Told bool `json:"told,omitempty"`
}

// Answer is what a person says.
type Answer struct {
	// Allow lets the call through; else it is denied.
	Allow bool
	// Scope is for how long it is allowed; "" is once. A denial is of this call, for as long as its execution continues.
	Scope Scope
	// Done says that the call was done already, with Result (JSON) if that is known; in place of Allow, of a question of doubt.
	Done   bool
	Result json.RawMessage
	// By says who answers, for the record; Note is for the caller, "" for none.
	By, Note string
}

// Errors of a [Book].
var (
	ErrNotFound = errors.New("there is no such approval")
	ErrAnswered = errors.New("it has been answered already")
	ErrExpired  = errors.New("it has expired")
	ErrInvalid  = errors.New("that is no answer")
	ErrMany     = errors.New("too many calls wait for approval already")
)

// Covers reports whether a question that was allowed lets a call through, but for its scope's end.
func (a *Approval) Covers(r Request) bool {
	if a.State != Allowed || a.Principal != r.Principal || a.Doubt != r.Doubt {
		return false
	}
	same := a.Tool == r.Tool && a.Rule == r.Rule
	switch a.Scope {
	case Session:
		return same && a.Session == r.Session
	case Execution:
		return same && a.Root != "" && a.Root == r.Root
	default:
		return a.isSame(r)
	}
}

// isSame reports whether it is about this very call: of the same execution, or of one that resumes it, or the
// same client's where no program calls.
func (a *Approval) isSame(r Request) bool {
	return a.Principal == r.Principal && a.Digest == r.Digest && a.Root == r.Root && (a.Root != "" || a.Session == r.Session)
}

// at returns the approval as it stands at a time.
func (a Approval) at(now time.Time) Approval {
	if a.State == Waiting && !now.Before(a.Expires) {
		a.State = Expired
	}
	return a
}
