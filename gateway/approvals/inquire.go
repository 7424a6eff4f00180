package approvals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf8"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// inquireRule is the rule of a question that is not about a call.
const inquireRule = "workflow"

// maxMessage is the maximum length of a message, in characters.
const maxMessage = 4000

// Question is a question of a workflow run to people.
type Question struct {
	Run, Workflow string
	// Step is the path of the step, Attempt its attempt number: each attempt asks a question once.
	Step    string
	Attempt int
	Message string
	// Doubt says that the question is about something that may already have been done; "done" is a possible answer.
	Doubt bool
	// Expires is the time until it expires, at most 7 days; 0 is 24 hours.
	Expires time.Duration
	// Peer is asked first; nil for none.
	Peer tool.Peer
}

// Inquire asks people a question on behalf of the caller in ctx and returns immediately. The question is listed among the
// approvals, with the message in place of arguments, and is answered once. For a question that was asked before, even before
// a restart, it returns the current state with the answer. Errors are *tool.Error.
func (p *Approver) Inquire(ctx context.Context, q Question) (Approval, error) {
	if !utf8.ValidString(q.Message) || q.Message == "" {
		return Approval{}, &tool.Error{Kind: tool.Invalid, Message: "a question needs a text"}
	}
	if q.Expires < 0 || q.Expires > approval.MaxExpire {
		return Approval{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the time to answer must be 0s to %s, not %s", approval.MaxExpire, q.Expires)}
	}
	a, err := p.Book.AskDetached(ctx, q.request(ctx))
	if err != nil {
		return Approval{}, p.approvalError(ctx, "", a, err)
	}
	p.watchers.Notify()
	if a.State == approval.Waiting {
		p.askClient(ctx, a, q.Peer)
	}
	return a, nil
}

func (q Question) request(ctx context.Context) approval.Request {
	sum := sha256.New()
	for _, part := range []string{"question", q.Run, q.Step, fmt.Sprint(q.Attempt)} {
		fmt.Fprintf(sum, "%d %s ", len(part), part)
	}
	return approval.Request{
		Principal: tool.Principal(ctx), Session: shortSession(tool.Session(ctx)), Execution: q.Run, Root: q.Run,
		Upstream: toolcall.WorkflowsID, Tool: toolcall.WorkflowsID + "." + sanitize.Line(q.Workflow, 100), Arguments: sanitize.Text(q.Message, maxMessage), Digest: hex.EncodeToString(sum.Sum(nil)),
		Rule: inquireRule, Reason: "step " + sanitize.Line(q.Step, 200), Single: true, Doubt: q.Doubt, Standing: true, Expire: cmp.Or(q.Expires, minUnattendedExpiry),
	}
}

// Approval returns the current state of an approval of the caller, or of any principal for an operator. Errors are *tool.Error.
func (p *Approver) Approval(ctx context.Context, id string) (Approval, error) {
	a, err := p.Book.Get(ctx, id)
	if err == nil && a.Principal != tool.Principal(ctx) && tool.Operator(ctx) == "" {
		err = approval.ErrNotFound
	}
	if err != nil {
		return Approval{}, p.approvalError(ctx, id, a, err)
	}
	return a, nil
}

// Withdraw withdraws a pending approval that is no longer needed. An answered one stays. Errors are *tool.Error.
func (p *Approver) Withdraw(ctx context.Context, id string) error {
	if _, err := p.Approval(ctx, id); err != nil {
		return err
	}
	if err := p.Book.Withdraw(ctx, id); err != nil {
		return p.approvalError(ctx, id, Approval{}, err)
	}
	p.watchers.Notify()
	return nil
}
