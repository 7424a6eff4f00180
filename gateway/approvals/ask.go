package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// request returns the approval request for a call.
func (p *Approver) request(ctx context.Context, c tool.Call, v toolcall.Verdict) (approval.Request, error) {
	canonical, shown, err := approval.FormatArguments(c.Args)
	if err != nil {
		return approval.Request{}, &tool.Error{Kind: tool.Invalid, Message: "the call needs approval, and its arguments cannot be shown: " + err.Error()}
	}
	definition := p.opts.Definition(c.Tool)
	sum := sha256.New()
	for _, part := range append([]string{c.Tool.String(), definition, string(canonical)}, doubtOrigins(ctx)...) {
		fmt.Fprintf(sum, "%d %s ", len(part), part)
	}
	request := approval.Request{
		Principal: tool.Principal(ctx), Session: shortSession(tool.Session(ctx)), Upstream: c.Tool.Upstream, Tool: c.Tool.String(),
		Arguments: shown, Digest: hex.EncodeToString(sum.Sum(nil)), Rule: sanitize.Line(v.Rule, 100), Reason: sanitize.Line(v.Reason, 300),
		Single: v.Doubt, Doubt: v.Doubt,
	}
	if r := toolcall.ExecutionOf(ctx); r != nil {
		request.Execution, request.Root = r.ID, r.Root
	} else if by := toolcall.ScopeOf(ctx).Run; by != "" {
		request.Execution, request.Root, request.Standing, request.Expire = by, by, true, p.unattendedExpiry()
	}
	return request, nil
}

// shortSession returns a digest of a session id for people: the id itself would give access to the session.
func shortSession(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// ask asks the program's client, or the caller, when it is this request's turn, and stores the answer. It returns
// when there is an answer, or when there will be none.
func (w *waiter) ask(ctx context.Context, a Approval, turn chan<- struct{}) {
	if w.running != nil {
		select {
		case w.running.Suspension.Turn <- struct{}{}:
			defer func() { <-w.running.Suspension.Turn }()
		case <-ctx.Done():
			return
		}
	}
	close(turn)
	if now, err := w.approver.Book.Get(ctx, w.id); err != nil || now.State != approval.Waiting || w.covered(ctx) {
		return
	}
	reply, err := w.peer.Ask(w.askContext(ctx), "elicitation/create", w.question(a))
	if err != nil {
		return // no answer
	}
	answer, ok := answerOf(reply, a.Doubt)
	if !ok {
		return // the call stays in doubt
	}
	answer.By = "the user"
	if _, err := w.approver.Book.Answer(ctx, w.id, answer); err != nil && !errors.Is(err, approval.ErrAnswered) {
		w.approver.opts.Logger.WarnContext(ctx, "answer is not taken", "approval", w.id, "error", err)
	}
	w.approver.watchers.Notify()
}

// covered reports whether an earlier answer with a wider scope covers the request. It does not wait: the waiting call
// is about to see that answer too.
func (w *waiter) covered(ctx context.Context) bool {
	all, err := w.approver.Book.List(ctx)
	if err != nil {
		return false
	}
	for _, a := range all {
		if a.Covers(w.request) && a.Scope != approval.Once {
			return true
		}
	}
	return false
}

// question returns the elicitation. Its text begins with the gateway's name, as those of upstreams begin with theirs.
func (w *waiter) question(a Approval) json.RawMessage {
	values, names := choicesOf(a)
	properties := map[string]any{"decision": map[string]any{"type": "string", "title": "Decision", "enum": values, "enumNames": names}}
	if a.Doubt {
		properties["result"] = map[string]any{"type": "string", "title": "Result", "description": "what the call returned, in JSON, if it was done and you know it"}
	}
	data, err := sanitize.JSON(map[string]any{"mode": "form", "message": questionText(a), "requestedSchema": map[string]any{
		"type": "object", "properties": properties, "required": []string{"decision"},
	}})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return data
}

// questionText returns the text of a request.
func questionText(a Approval) string {
	var b strings.Builder
	if a.Upstream == toolcall.WorkflowsID {
		fmt.Fprintf(&b, "Sallyport: %s asks:\n%s", a.Tool, a.Arguments)
	} else {
		fmt.Fprintf(&b, "Sallyport: allow this call of %s?\n%s", a.Tool, a.Arguments)
		if a.Rule != "" {
			b.WriteString("\nAsked by: " + a.Rule)
		}
		if a.Reason != "" {
			b.WriteString("\nReason: " + a.Reason)
		}
	}
	if a.Root != "" {
		b.WriteString("\nRequested by " + requesterName(a) + ".")
	}
	return b.String()
}

// choicesOf returns the possible answers and their labels. A run has its own session.
func choicesOf(a Approval) (values, names []string) {
	any := "Allow any call of " + a.Tool
	switch {
	case a.Doubt:
		return []string{"once", "done", "deny"}, []string{"It was not done: make it", "It was done: do not make it again", "Leave it: do not make it"}
	case a.Root == "":
		return []string{"once", "session", "deny"}, []string{"Allow this call", any + " in this session", "Deny"}
	case a.Single:
		return []string{"once", "deny"}, []string{"Yes, go on", "No"}
	case a.Standing:
		return []string{"once", "execution", "deny"}, []string{"Allow this call", any + " by this run", "Deny"}
	}
	return []string{"once", "execution", "session", "deny"}, []string{"Allow this call", any + " by this program", any + " in this session", "Deny"}
}

// requesterName names the program or run that makes the call.
func requesterName(a Approval) string {
	if a.Standing {
		return "run " + a.Execution + " of a workflow"
	}
	return "program " + a.Execution
}

// answerOf parses the reply of a client. A reply that does not clearly allow the call denies it. For a call in doubt, an
// unclear reply is not an answer.
func answerOf(reply json.RawMessage, doubt bool) (answer Answer, ok bool) {
	var said struct {
		Action  string `json:"action"`
		Content struct {
			Decision string `json:"decision"`
			Result   string `json:"result"`
		} `json:"content"`
	}
	if json.Unmarshal(reply, &said) != nil {
		return Answer{}, !doubt
	}
	switch scope := approval.Scope(said.Content.Decision); {
	case said.Action == "decline":
		return Answer{}, true
	case said.Action != "accept":
		return Answer{}, !doubt
	case doubt && said.Content.Decision == "done":
		return Answer{Done: true, Result: resultOf(said.Content.Result)}, true
	case scope == approval.Once, !doubt && (scope == approval.Execution || scope == approval.Session):
		return Answer{Allow: true, Scope: scope}, true
	}
	return Answer{}, !doubt || said.Content.Decision == "deny"
}

// resultOf returns the result of a call that a person entered: JSON, or a text as a JSON string.
func resultOf(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	data, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return data
}

// askContext returns the context for the request to the client.
func (w *waiter) askContext(ctx context.Context) context.Context {
	s := toolcall.ScopeOf(ctx)
	s.Approval = w.id
	return s.In(ctx)
}
