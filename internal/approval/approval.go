// Package approval stores requests for the approval of tool calls, and their answers. Its main type is [Store]. Callers
// decide how people are asked, and who may answer.
//
// A question is answered once, by one person, before it expires. An approval covers exactly what was asked:
// this call (its digest has tool and arguments) of this execution or of one that resumes it, once; or any call of the
// same tool under the same rule, until the execution or the session ends.
package approval

import (
	"encoding/json"
	"errors"
	"time"
)

// State is the state of a question.
type State string

// The states. Waiting is the only one that can be answered, Allowed the only one that lets a call through.
const (
	Waiting   State = "waiting"
	Allowed   State = "allowed"
	Denied    State = "denied"
	Done      State = "done"      // a person says that the call was done already
	Used      State = "used"      // allowed once, and the call was made
	Expired   State = "expired"   // nobody answered in time
	Withdrawn State = "withdrawn" // the caller no longer needs the call
	Lost      State = "lost"      // its record was damaged: the same call made again asks again
)

// Scope is how long an answer is valid.
type Scope string

// The scopes. Execution and Session cover any arguments.
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
	// Execution is the id of the execution that makes the call. Root is that of the first execution in its chain of resumes,
	// or its own. Both are "" for a call outside of a program. For a workflow run both are the run's id, which is also the
	// Root of its programs.
	Execution string `json:"execution,omitempty"`
	Root      string `json:"root,omitempty"`
	Upstream  string `json:"upstream"`
	// Tool is the full id of the tool.
	Tool string `json:"tool"`
	// Arguments are the arguments for display, truncated. They have tokens in place of personal data.
	Arguments string `json:"arguments,omitempty"`
	// Digest is a digest of the tool, its definition and all arguments.
	Digest string `json:"digest"`
	// Rule is the rule that requires the approval, and Reason why.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Single restricts an answer to the scope Once.
	Single bool `json:"single,omitempty"`
	// Doubt reports that the call may have been done already: Done is a possible answer, and an approval is for this call only.
	Doubt bool `json:"doubt,omitempty"`
	// Standing reports that the caller does not wait and fetches the answer later. A denial, too, is returned only once.
	Standing bool `json:"standing,omitempty"`
	// Expire is how long it can be answered, and then how long an approval for once can be used; 0 is the book's default, [MaxExpire] the maximum.
	Expire time.Duration `json:"-"`
}

// MaxExpire is the maximum of Request.Expire.
const MaxExpire = 7 * 24 * time.Hour

// Approval is a question, and its answer once there is one.
type Approval struct {
	// ID is "a-" followed by 130 random bits.
	ID string `json:"id"`
	Request
	State State     `json:"state"`
	Asked time.Time `json:"asked"`
	// Expires is the deadline for an answer, and then for its use. An answer for a session ends with the session.
	Expires time.Time `json:"expires"`
	// Answered is the time of the answer, Scope its scope, By the person, and Note their message.
	Answered time.Time `json:"answered,omitzero"`
	Scope    Scope     `json:"scope,omitempty"`
	By       string    `json:"by,omitempty"`
	Note     string    `json:"note,omitempty"`
	// Result is the result of a call that was done already, from the person's answer; nil if it is not known.
	Result json.RawMessage `json:"result,omitempty"`
	// Told reports that a denial of a standing request was returned to its caller.
	Told bool `json:"told,omitempty"`
}

// Answer is the answer of a person.
type Answer struct {
	// Allow allows the call; otherwise it is denied.
	Allow bool
	// Scope is the scope of an approval; "" is Once. A denial is for this call, as long as its execution continues.
	Scope Scope
	// Done answers a question with Doubt: the call was done already, with Result (JSON) if it is known. Allow must be false.
	Done   bool
	Result json.RawMessage
	// By is the person who answers, for records; Note is a message for the caller, "" for none.
	By, Note string
}

// Errors of a [Store].
var (
	ErrNotFound = errors.New("no such approval")
	ErrAnswered = errors.New("already answered")
	ErrExpired  = errors.New("the approval has expired")
	ErrInvalid  = errors.New("invalid answer")
	ErrMany     = errors.New("too many pending approvals")
)

// Covers reports whether an approval allows a call. It does not check whether the scope has ended.
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

// isSame reports whether the approval is for exactly this call: in the same execution or one that resumes it, or in
// the same session if no program makes the call.
func (a *Approval) isSame(r Request) bool {
	return a.Principal == r.Principal && a.Digest == r.Digest && a.Root == r.Root && (a.Root != "" || a.Session == r.Session)
}

// asOf returns the approval with its state at a time.
func (a Approval) asOf(now time.Time) Approval {
	if a.State == Waiting && !now.Before(a.Expires) {
		a.State = Expired
	}
	return a
}
