package dashboard

import (
	"context"

	"sallyport/gateway/approvals"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// ApprovalsPage lists pending and recently answered approvals.
type ApprovalsPage struct {
	Waiting  []ApprovalView
	Answered []ApprovalView
	// Operator says that the user may answer.
	Operator bool
}

const (
	approvalsPath = "/ui/approvals"
	// waitingPath serves the navigation's count of pending approvals, waitingEvery is its interval in seconds.
	waitingPath  = "/ui/waiting"
	waitingEvery = 4
)

// maxAnswered is the maximum number of listed answers, maxReason the maximum length of a reason, in bytes.
const maxAnswered, maxReason = 50, 300

func (d *Dashboard) approvals(r *request) (any, error) {
	all, err := d.service.Approvals(r.Context())
	p := ApprovalsPage{Operator: r.isOperator()}
	for _, a := range all {
		switch waits := a.State == approval.Waiting; {
		case waits && len(p.Waiting) < maxAskers:
			p.Waiting = append(p.Waiting, askers{d}.pendingView(r, a))
		case waits:
			p.Waiting = append(p.Waiting, ApprovalView{Approval: a})
		case len(p.Answered) < maxAskers:
			p.Answered = append(p.Answered, askers{d}.answeredView(r, a))
		case len(p.Answered) < maxAnswered:
			p.Answered = append(p.Answered, ApprovalView{Approval: a})
		}
	}
	return p, err
}

// waiting returns the number of pending approvals that the caller may see.
func (d *Dashboard) waiting(ctx context.Context) (n int) {
	all, err := d.service.Approvals(ctx)
	if err != nil { // the approvals page shows the error
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

// answers are the answers by the form's button.
var answers = map[string]approvals.Answer{
	"once": {Allow: true, Scope: approval.Once}, "execution": {Allow: true, Scope: approval.Execution}, "session": {Allow: true, Scope: approval.Session}, "deny": {}, "done": {Done: true},
}

// answer answers one approval. If it was already answered or has expired, the approvals page says so.
func (d *Dashboard) answer(r *request) (string, error) {
	answer, ok := answers[r.PostFormValue("answer")]
	if !ok {
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form says neither allow nor deny"}
	}
	answer.By, answer.Note = tool.Operator(r.Context()), sanitize.Line(r.PostFormValue("reason"), maxReason)
	a, err := d.service.Answer(r.Context(), r.PathValue("id"), answer)
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

// scopeWords returns the text for a scope.
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
