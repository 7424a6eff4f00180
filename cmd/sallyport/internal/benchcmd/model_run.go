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

// modelRun is one run of a task in one mode: a line of bench --model --json.
type modelRun struct {
	Endpoint string       `json:"endpoint"`
	API      endpoint.API `json:"api"`
	// Model is the requested model, Served the one that the endpoint reports.
	Model  string     `json:"model"`
	Served string     `json:"served,omitempty"`
	Task   string     `json:"task"`
	Kind   suite.Kind `json:"kind"`
	Mode   suite.Mode `json:"mode"`
	// Upstreams are the servers that the task ran with.
	Upstreams []string `json:"upstreams"`
	// Run counts from 1.
	Run   int  `json:"run"`
	Right bool `json:"right"`
	// Why is the reason of a failure.
	Why    string `json:"why,omitempty"`
	Answer string `json:"answer"`
	// Turns counts the billed turns, including a truncated one.
	Turns int `json:"turns"`
	Calls int `json:"calls"`
	// Tokens is the usage that the endpoint reports; all are 0 if it reports none.
	Tokens agent.Usage `json:"tokens"`
	// Price is their price by --price.
	Price float64 `json:"price,omitempty"`
	// Seconds excludes the start of servers and Waited, the time spent on rate limits and retries.
	Seconds  float64       `json:"seconds"`
	Waited   float64       `json:"waited_seconds,omitempty"`
	Versions modelVersions `json:"versions"`
}

// modelVersions are the versions of the programs in a run.
type modelVersions struct {
	Sallyport string `json:"sallyport"`
	// Runsc is empty where no program runs.
	Runsc   string            `json:"runsc,omitempty"`
	Servers map[string]string `json:"servers"`
}

// runOnce runs a task in a new world. It returns a fault of the endpoint, and as err what ends the whole benchmark.
func (b *modelBench) runOnce(ctx context.Context, task *suite.Task, mode suite.Mode) (r modelRun, fault *tool.Error, err error) {
	if mode == suite.Words {
		return b.runInWords(ctx, task)
	}
	tools, err := b.openTools(ctx, task, mode)
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
	failed = b.timeoutFault(talk, failed)
	r = b.newRun(task, t, talk)
	r.Seconds, r.Waited = seconds(took), seconds(talk.Waited)
	fault, _ = errors.AsType[*tool.Error](failed)
	if fault != nil && fault.Kind == tool.Failed {
		fault = nil // the model's fault: its answer is too long
	}
	r.Why = b.failureReason(task, t.Answer, failed)
	r.Right = r.Why == ""
	return r, fault, nil
}

// timeoutFault turns a limit that was reached before the first answer into a timeout of the endpoint. It returns other errors unchanged.
func (b *modelBench) timeoutFault(talk *endpoint.Conversation, failed error) error {
	if !errors.Is(failed, agent.ErrLimit) || talk.Turns > 0 {
		return failed
	}
	fault := &tool.Error{Kind: tool.Timeout, Message: fmt.Sprintf("no answer from %s within %s", b.endpoint.Host(), b.Time), Hint: "--time gives a task longer"}
	if last := talk.Fault; last != nil {
		fault.Message, fault.Hint = fault.Message+": "+last.Message, cmp.Or(last.Hint, fault.Hint)
	}
	return fault
}

// openTools resets the world and starts the servers of a task.
func (b *modelBench) openTools(ctx context.Context, task *suite.Task, mode suite.Mode) (agent.Open, error) {
	if err := b.world.Reset(); err != nil {
		return nil, err
	}
	setup, err := b.setup(task)
	if err != nil {
		return nil, err
	}
	return agent.OpenTools(ctx, mode, setup)
}

// stopped reports whether the user interrupts this process. It waits briefly, as Ctrl-C may stop the servers first.
func stopped(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(200 * time.Millisecond):
		return false
	}
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

func (b *modelBench) newRun(task *suite.Task, t *tokencount.Transcript, talk *endpoint.Conversation) modelRun {
	r := modelRun{
		Endpoint: b.endpoint.Host(), API: b.endpoint.API(), Model: b.endpoint.Model(), Served: talk.Served,
		Task: task.Name, Kind: task.Kind, Mode: suite.Mode(t.Mode), Upstreams: b.upstreams(task),
		Answer: b.endpoint.Hide(t.Answer), Turns: talk.Turns, Tokens: talk.Used, Price: b.priceOf(talk.Used), Versions: b.versions,
	}
	for _, turn := range t.Turns {
		r.Calls += len(turn.Calls)
	}
	return r
}

// failureReason returns why a run failed, "" if it succeeded.
func (b *modelBench) failureReason(task *suite.Task, answer string, failed error) string {
	want := task.Want(b.world)
	fault, known := errors.AsType[*tool.Error](failed)
	switch {
	case known:
		return sanitize.Line(fault.Message, 200)
	case failed != nil:
		return sanitize.Line(strings.TrimPrefix(failed.Error(), "run "+task.Name+": "), 200)
	case !endpoint.Same(answer, want):
		return fmt.Sprintf("answered %q, not %q", sanitize.Line(b.endpoint.Hide(answer), 100), sanitize.Line(want, 100))
	case task.Done == nil:
		return ""
	}
	if err := task.Done(b.world); err != nil {
		return sanitize.Line("the answer is right, the required changes are not: "+err.Error(), 200)
	}
	return ""
}
