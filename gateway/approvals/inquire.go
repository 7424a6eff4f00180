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

// inquireRule is the rule of a question that no call asks.
const inquireRule = "workflow"

// maxMessage is how much of a message people read, in characters.
const maxMessage = 4000

// Question is what a run of a workflow asks people by itself.
type Question struct {
	Run, Workflow string
	// Step is the path of the step, Attempt which time it asks: the same question of the same attempt is asked once.
	Step    string
	Attempt int
	Message string
	// Doubt says that it is about something that may have been done already, which can be the answer.
	Doubt bool
	// Expires is how long it can be answered, at most 7 days; 0 is 24 hours.
	Expires time.Duration
	// Peer is asked first; nil for none.
	Peer tool.Peer
}

// Inquire asks people something on behalf of the caller in ctx, and returns at once. It shows among the approvals, with the
// message in place of arguments, and is answered once. Asked again, also after the gateway was restarted, it returns the
// question as it stands, with its answer. Errors are *tool.Error.
func (p *Approver) Inquire(ctx context.Context, q Question) (Approval, error) {
	if !utf8.ValidString(q.Message) || q.Message == "" {
		return Approval{}, &tool.Error{Kind: tool.Invalid, Message: "a question needs a text"}
	}
	if q.Expires < 0 || q.Expires > approval.MaxExpire {
		return Approval{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("people can be given 0s to %s to answer, not %s", approval.MaxExpire, q.Expires)}
	}
	a, err := p.Book.Stand(ctx, q.request(ctx))
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
		Rule: inquireRule, Reason: "step " + sanitize.Line(q.Step, 200), Single: true, Doubt: q.Doubt, Standing: true, Expire: cmp.Or(q.Expires, standTime),
	}
}

// Approval returns a question of the caller as it stands, or any for an operator. Errors are *tool.Error.
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
