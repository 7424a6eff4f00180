package dashboard

import (
	"context"

	"sallyport/gateway/approvals"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// ApprovalsPage is what waits for a person, and what was answered lately.
type ApprovalsPage struct {
	Waiting  []approvals.Approval
	Answered []approvals.Approval
	// Operator says that the user may answer.
	Operator bool
}

const (
	approvalsPath = "/ui/approvals"
	// waitingPath is where the navigation's count comes from, every so many seconds.
	waitingPath  = "/ui/waiting"
	waitingEvery = 4
)

// maxAnswered is how many earlier answers are listed, maxReason how much of a reason is shown, in bytes.
const maxAnswered, maxReason = 50, 300

func (d *Dashboard) approvals(r *request) (any, error) {
	all, err := d.verbs.Approvals(r.Context())
	p := ApprovalsPage{Operator: r.isOperator()}
	for _, a := range all {
		if a.State == approval.Waiting {
			p.Waiting = append(p.Waiting, a)
		} else if len(p.Answered) < maxAnswered {
			p.Answered = append(p.Answered, a)
		}
	}
	return p, err
}

// waiting is how many of the calls that the caller may see wait for a person.
func (d *Dashboard) waiting(ctx context.Context) (n int) {
	all, err := d.verbs.Approvals(ctx)
	if err != nil { // the page of approvals tells what is wrong
		return 0
	}
	for _, a := range all {
		if a.State == approval.Waiting {
			n++
		}
	}
	return n
}

func (d *Dashboard) waitingCount(r *request) (any, error) { return d.waiting(r.Context()), nil }

// answers are the buttons of the form.
var answers = map[string]approvals.Answer{
	"once": {Allow: true, Scope: approval.Once}, "execution": {Allow: true, Scope: approval.Execution}, "session": {Allow: true, Scope: approval.Session}, "deny": {}, "done": {Done: true},
}

// answer answers one question. That it has been answered already, or has expired, is said on the page of all.
func (d *Dashboard) answer(r *request) (string, error) {
	answer, ok := answers[r.PostFormValue("answer")]
	if !ok {
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form says neither allow nor deny"}
	}
	answer.By, answer.Note = tool.Operator(r.Context()), sanitize.Line(r.PostFormValue("reason"), maxReason)
	a, err := d.verbs.Answer(r.Context(), r.PathValue("id"), answer)
	switch e := tool.AsError(err); {
	case err == nil && answer.Done:
		r.say("Noted as done: " + a.Tool + ".")
	case err == nil && answer.Allow:
		r.say("Allowed: " + a.Tool + ", " + scopeWords(answer.Scope) + ".")
	case err == nil:
		r.say("Denied: " + a.Tool + ".")
	case e.Kind == tool.Invalid || e.Kind == tool.NotFound:
		r.warn("Nothing was done: " + e.Message + ".")
	default:
		return "", err
	}
	return approvalsPath, nil
}

// scopeWords say for how long something is allowed.
func scopeWords(s approval.Scope) string {
	switch s {
	case approval.Execution:
		return "for this execution"
	case approval.Session:
		return "for the session"
	default:
		return "once"
	}
}
