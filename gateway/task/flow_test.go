package task_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/task"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// labeled makes up a source of private and untrusted data, and other a sink.
func labeled(flow policy.Flow) func(*config.Config) {
	return func(c *config.Config) {
		c.Policy.Flow, c.Policy.Default = flow, policy.Allow
		for i := range c.Upstreams {
			c.Upstreams[i].Labels = map[string][]string{"up": {policy.Private, policy.Untrusted}, "other": {policy.External}}[c.Upstreams[i].Name]
		}
	}
}

// leak is a direct call of the sink, by no program.
func (r *rig) leak(ctx context.Context) error {
	_, err := r.gateway.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "other", Name: "echo"}, Args: json.RawMessage(`{"text":"x"}`)})
	return err
}

const leakProgram = "from servers.other import echo\nprint(echo(text=\"x\")[\"text\"])"

// TestFlow: what a task has read counts at a sink: in its later turns, for the caller that got the answer, for a task of a
// caller that has read before, and after a restart; for another principal it does not.
func TestFlow(t *testing.T) {
	r := newRig(t, models.OpenAI, func(turn modeltest.Turn) string {
		switch first, n := turn.Messages[0].Text, len(turn.Messages); {
		case n == 1 && strings.Contains(first, "Read"):
			return block("python", echoProgram)
		case n == 1 || n == 3 && strings.Contains(first, "leak"):
			return block("python", leakProgram)
		}
		return block("answer", "ok")
	}, labeled(policy.FlowDeny))
	as := func(who string) context.Context { return tool.WithPrincipal(t.Context(), who) }
	run := func(ctx context.Context, words string) task.Task {
		t.Helper()
		done, err := r.Run(ctx, task.Request{Task: words}, nil)
		if err != nil || done.Status != task.Done {
			t.Fatalf("%+v, %v", done, err)
		}
		return done
	}
	denied := func(what string, done task.Task, turn int) {
		t.Helper()
		if got := done.Turns[turn]; got.Status != "failed" || len(got.Calls) != 1 || got.Calls[0] != "other.echo denied" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if done := run(as("bob"), "Send"); done.Turns[0].Status != "ok" || len(done.Read) != 0 {
		t.Errorf("a task that read nothing: %+v", done)
	}
	done := run(as("ann"), "Read and leak")
	denied("a later turn", done, 1)
	if len(done.Read) != 2 || done.Read[0].Label != policy.Private || done.Read[0].Tool != "up.echo" {
		t.Errorf("the record has read %+v", done.Read)
	}
	if err := r.leak(as("ann")); tool.AsError(err).Kind != tool.Denied {
		t.Errorf("who got the answer could send it: %v", err)
	}
	denied("the next task", run(as("ann"), "Send"), 0)
	if err := r.leak(as("bob")); err != nil {
		t.Errorf("another principal: %v", err)
	}
	session := tool.WithSession(as("eve"), "chat")
	run(session, "Read")
	if err := r.leak(session); tool.AsError(err).Kind != tool.Denied {
		t.Errorf("the session that got the answer could send it: %v", err)
	}
	if err := r.leak(tool.WithSession(as("eve"), "another")); err != nil {
		t.Errorf("another session: %v", err)
	}
}

// TestFlowAsks: where the policy asks, the task is held at the sink; after a restart and the answer it goes on, and what it
// had read still counts.
func TestFlowAsks(t *testing.T) {
	script := modeltest.Script(block("python", echoProgram), block("python", leakProgram), block("answer", "sent"))
	r := newRig(t, models.OpenAI, script, labeled(policy.FlowAsk), func(c *config.Config) { c.Approval.Wait = time.Millisecond })
	ann := tool.WithPrincipal(t.Context(), "ann")
	held, err := r.Run(ann, task.Request{Task: "Read and send"}, nil)
	if err != nil || held.Status != task.Held || len(held.Turns) != 2 || len(held.Approvals) != 1 {
		t.Fatalf("%+v, %v", held, err)
	}
	r.restart()
	pending, err := r.gateway.Approver.Approvals(tool.WithOperator(t.Context(), "test"))
	if err != nil || len(pending) != 1 || pending[0].Rule != "flow" {
		t.Fatalf("%+v, %v", pending, err)
	}
	if _, err := r.gateway.Approver.Answer(tool.WithOperator(t.Context(), "test"), pending[0].ID, approvals.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	done, err := r.Resume(ann, held.ID, nil, nil)
	if err != nil || done.Status != task.Done || done.Answer != "sent" || len(done.Read) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := r.leak(ann); tool.AsError(err).Kind != tool.Denied {
		t.Errorf("who got the answer could send it: %v", err)
	}
}
