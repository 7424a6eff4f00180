package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"sallyport/bench/agent"
	"sallyport/bench/endpoint"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// modelRun is a task that a model worked on in one mode: a line of bench --model --json.
type modelRun struct {
	Endpoint string       `json:"endpoint"`
	API      endpoint.API `json:"api"`
	// Model is what was asked for, Served what the endpoint says that it answered with.
	Model  string     `json:"model"`
	Served string     `json:"served,omitempty"`
	Task   string     `json:"task"`
	Kind   suite.Kind `json:"kind"`
	Mode   suite.Mode `json:"mode"`
	// Upstreams are the servers that were behind the tools.
	Upstreams []string `json:"upstreams"`
	// Run counts from 1.
	Run   int  `json:"run"`
	Right bool `json:"right"`
	// Why is what went wrong.
	Why    string `json:"why,omitempty"`
	Answer string `json:"answer"`
	// Turns are those that were billed, one that was cut among them.
	Turns int `json:"turns"`
	Calls int `json:"calls"`
	// Tokens are as the endpoint bills them; all are 0 if it says nothing of that.
	Tokens agent.Usage `json:"tokens"`
	// Seconds has no start of servers, and not the time that the endpoint wanted to be left alone, which is Waited.
	Seconds  float64       `json:"seconds"`
	Waited   float64       `json:"waited_seconds,omitempty"`
	Versions modelVersions `json:"versions"`
}

// modelVersions are those of what took part.
type modelVersions struct {
	Sallyport string `json:"sallyport"`
	// Runsc is empty where no program runs.
	Runsc   string            `json:"runsc,omitempty"`
	Servers map[string]string `json:"servers"`
}

// once has a task done in a new world. fault is the endpoint's, err what ends everything.
func (b *modelBench) once(ctx context.Context, task *suite.Task, mode suite.Mode) (r modelRun, fault *tool.Error, err error) {
	tools, err := b.open(ctx, task, mode)
	if err != nil && stopped(ctx) {
		err = ctx.Err()
	}
	if err != nil {
		return r, nil, err
	}
	talk := b.endpoint.Begin()
	t := &tokencount.Transcript{Task: task.Name, Mode: string(mode), Prompt: b.world.Expand(task.Prompt)}
	start := time.Now()
	_, failed := agent.Run(ctx, talk, tools, t, agent.Limits{Turns: b.Turns, Time: b.Time})
	took := time.Since(start) - talk.Waited
	closed := tools.Close()
	if (closed != nil || failed != nil) && stopped(ctx) {
		return r, nil, ctx.Err()
	}
	if closed != nil {
		b.app.Say(fmt.Sprintf("%s, %s: end servers: %v", task.Name, mode, closed))
	}
	failed = b.silent(talk, failed)
	r = b.record(task, t, talk)
	r.Seconds, r.Waited = seconds(took), seconds(talk.Waited)
	fault, _ = errors.AsType[*tool.Error](failed)
	if fault != nil && fault.Kind == tool.Failed {
		fault = nil // the model's, which said too much
	}
	r.Why = b.why(task, t, failed)
	r.Right = r.Why == ""
	return r, fault, nil
}

// silent makes a fault of the endpoint of a limit that was reached before its first answer; other errors stay.
func (b *modelBench) silent(talk *endpoint.Conversation, failed error) error {
	if !errors.Is(failed, agent.ErrLimit) || talk.Turns > 0 {
		return failed
	}
	fault := &tool.Error{Kind: tool.Timeout, Message: fmt.Sprintf("no answer from %s within %s", b.endpoint.Host(), b.Time), Hint: "--time gives a task longer"}
	if last := talk.Fault; last != nil {
		fault.Message, fault.Hint = fault.Message+": "+last.Message, cmp.Or(last.Hint, fault.Hint)
	}
	return fault
}

// open makes the world again, and what is behind the tools.
func (b *modelBench) open(ctx context.Context, task *suite.Task, mode suite.Mode) (agent.Open, error) {
	if err := b.world.Reset(); err != nil {
		return nil, err
	}
	setup, err := b.setup(task)
	if err != nil {
		return nil, err
	}
	return agent.OpenTools(ctx, mode, setup)
}

// stopped reports whether the user stopped us. Ctrl-C stops the servers as well, and those may be quicker than we are.
func stopped(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(200 * time.Millisecond):
		return false
	}
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

func (b *modelBench) record(task *suite.Task, t *tokencount.Transcript, talk *endpoint.Conversation) modelRun {
	r := modelRun{
		Endpoint: b.endpoint.Host(), API: b.endpoint.API(), Model: b.endpoint.Model(), Served: talk.Served,
		Task: task.Name, Kind: task.Kind, Mode: suite.Mode(t.Mode), Upstreams: b.upstreams(task),
		Answer: b.endpoint.Hide(t.Answer), Turns: talk.Turns, Tokens: talk.Used, Versions: b.versions,
	}
	for _, turn := range t.Turns {
		r.Calls += len(turn.Calls)
	}
	return r
}

// why says in a line what is wrong, "" if nothing is.
func (b *modelBench) why(task *suite.Task, t *tokencount.Transcript, failed error) string {
	want := task.Want(b.world)
	fault, known := errors.AsType[*tool.Error](failed)
	switch {
	case known:
		return sanitize.Line(fault.Message, 200)
	case failed != nil:
		return sanitize.Line(strings.TrimPrefix(failed.Error(), "run "+task.Name+": "), 200)
	case !endpoint.Same(t.Answer, want):
		return fmt.Sprintf("answered %q, not %q", sanitize.Line(b.endpoint.Hide(t.Answer), 100), sanitize.Line(want, 100))
	case task.Done == nil:
		return ""
	}
	if err := task.Done(b.world); err != nil {
		return sanitize.Line("the answer is right, what was to be done is not: "+err.Error(), 200)
	}
	return ""
}
