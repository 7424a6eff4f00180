package workflow_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/internal/approval"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// programs are executed by hand, one function after the other. Each has the name of its place in the order.
type programs struct {
	do []func(ctx context.Context, p execution.Program) (execution.Result, error)

	mu    sync.Mutex
	names map[string]string
	began []string
}

func (s *programs) execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	s.mu.Lock()
	n := len(s.began)
	line := "new"
	if p.Resume != "" {
		line = "resume " + s.names[p.Resume]
	} else if len(p.After) > 0 {
		line = fmt.Sprintf("after %s, retry %t", s.name(p.After), p.Retry)
	}
	if s.names == nil {
		s.names = map[string]string{}
	}
	if s.names[p.ID] == "" {
		s.names[p.ID] = fmt.Sprint("e", n+1)
	}
	s.began = append(s.began, line)
	s.mu.Unlock()
	if n >= len(s.do) {
		return value(p.ID, "7"), nil
	}
	return s.do[n](ctx, p)
}

func (s *programs) name(ids []string) string {
	var names []string
	for _, id := range ids {
		names = append(names, s.names[id])
	}
	return strings.Join(names, " ")
}

func (s *programs) want(t *testing.T, lines ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, want := strings.Join(s.began, "\n"), strings.Join(lines, "\n"); got != want {
		t.Errorf("programs:\n%s\nwant:\n%s", got, want)
	}
}

func hangProgram(ctx context.Context, _ execution.Program) (execution.Result, error) {
	<-ctx.Done()
	return execution.Result{}, context.Cause(ctx)
}

func refuseProgram(context.Context, execution.Program) (execution.Result, error) {
	return execution.Result{}, toolcall.Unavailable(fmt.Errorf("write: %w", store.ErrUnreachable))
}

func failProgram(_ context.Context, p execution.Program) (execution.Result, error) {
	return execution.Result{ID: p.ID}, &tool.Error{Kind: tool.Internal, Message: "the code ended: interrupted"}
}

// noJournal is how an execution is resumed that was killed before it made a call.
func noJournal(context.Context, execution.Program) (execution.Result, error) {
	return execution.Result{}, &tool.Error{Kind: tool.NotFound, Message: "there is no execution", Err: history.ErrNoExecution}
}

// testPrograms runs a workflow with one code step, whose programs are executed by hand. resumes says that the run fails at first, and is
// resumed. Its engine is killed while a program hangs, and another one ends the run.
func testPrograms(t *testing.T, s *programs, resumes bool, want ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, records := standard(), store.Memory()
		d.code = s.execute
		texts := map[string]string{"flow": "steps: [{id: c, code: 'result = 1'}]"}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		r := begin(t, first, workflow.Start{Workflow: "flow"})
		if resumes {
			if r.Status != workflow.Failed {
				t.Fatalf("it is %s", r.Status)
			}
			if _, err := first.Resume(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := first.Close(); err != nil { // which leaves no more than a kill does
			t.Fatal(err)
		}
		second := engine(t, d, workflow.Options{Records: records}, texts)
		if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK {
			t.Errorf("it is %s: %+v, %v", r.Status, r.Error, err)
		}
		s.want(t, want...)
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A program that was killed before it had a journal does not hide the execution before it, whose calls may have been made.
func TestResumedProgramKilled(t *testing.T) {
	t.Parallel()
	s := &programs{}
	s.do = append(s.do, failProgram, hangProgram, noJournal)
	testPrograms(t, s, true, "new", "after e1, retry false", "resume e2", "after e1, retry false")
}

// An interrupted program that is refused, because the store of records does not answer, is resumed when the store does.
func TestRefusedProgram(t *testing.T) {
	t.Parallel()
	s := &programs{}
	s.do = append(s.do, hangProgram, refuseProgram, refuseProgram)
	testPrograms(t, s, false, "new", "resume e1", "resume e1", "resume e1")
}

// A program that no worker can run is tried again for five minutes, as workers come back.
func TestProgramWithoutWorker(t *testing.T) {
	t.Parallel()
	noWorker := func(context.Context, execution.Program) (execution.Result, error) {
		return execution.Result{}, &tool.Error{Kind: tool.Busy, Message: "no worker takes programs", Err: fmt.Errorf("%w: those that have joined are draining", execution.ErrNoWorker)}
	}
	s := &programs{}
	s.do = append(s.do, hangProgram, noWorker, noWorker)
	testPrograms(t, s, false, "new", "resume e1", "resume e1", "resume e1")
	synctest.Test(t, func(t *testing.T) {
		d := standard()
		d.code = noWorker
		e := engine(t, d, workflow.Options{Records: store.Memory()}, map[string]string{"flow": "steps: [{id: c, code: 'result = 1'}]"})
		r := begin(t, e, workflow.Start{Workflow: "flow"})
		began := time.Now()
		r, err := e.Wait(t.Context(), r.ID)
		if took := time.Since(began); err != nil || r.Status != workflow.Failed || r.Error.Kind != tool.Busy || took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("after %v it is %s: %+v, %v", took, r.Status, r.Error, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// stillRuns is how an execution is resumed whose end this gateway does not know yet, as the gateway that ran it could not write it.
func stillRuns(context.Context, execution.Program) (execution.Result, error) {
	return execution.Result{}, &tool.Error{Kind: tool.Invalid, Message: "it still runs", Err: history.ErrRunning}
}

// An interrupted program that still runs for this gateway is resumed when it has ended. So is one that a person resumes.
func TestProgramStillRuns(t *testing.T) {
	t.Parallel()
	s := &programs{}
	s.do = append(s.do, hangProgram, stillRuns, stillRuns)
	testPrograms(t, s, false, "new", "resume e1", "resume e1", "resume e1")
	s = &programs{}
	s.do = append(s.do, failProgram, stillRuns, stillRuns, noJournal)
	testPrograms(t, s, true, "new", "after e1, retry false", "resume e2", "resume e2", "after e1 e2 e3, retry false")
}

// A retry that was due when the engine ended knows the executions before it, whose calls may have been made.
func TestRetriedProgramKilled(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"step":  "{id: c, code: 'result = 1', retry: {count: 1, wait: 1h}}",
		"block": "{id: b, retry: {count: 1, wait: 1h}, parallel: {one: [{id: all, for_each: [1], steps: [{id: c, code: 'result = 1'}]}]}}",
	} {
		t.Run(name, func(t *testing.T) { killBeforeRetry(t, steps) })
	}
}

func killBeforeRetry(t *testing.T, steps string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, d, records := &programs{}, standard(), store.Memory()
		s.do, d.code = append(s.do, func(context.Context, execution.Program) (execution.Result, error) {
			return execution.Result{}, &tool.Error{Kind: tool.Upstream, Message: "the code ended: the connection is lost"}
		}), s.execute
		texts := map[string]string{"flow": "steps: [" + steps + "]"}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		r := begin(t, first, workflow.Start{Workflow: "flow"})
		time.Sleep(time.Minute)
		if err := first.Close(); err != nil { // which leaves no more than a kill does
			t.Fatal(err)
		}
		second := engine(t, d, workflow.Options{Records: records}, texts)
		if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK {
			t.Errorf("it is %s: %+v, %v", r.Status, r.Error, err)
		}
		s.want(t, "new", "after e1, retry true")
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A program that is held for approval is resumed after it, also if the store of records does not answer at first.
func TestRefusedDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s, d := &unreachable{reads: 2}, &programs{}, standard()
		s.do, d.code = append(s.do, func(ctx context.Context, of execution.Program) (execution.Result, error) {
			a, err := p.people.Inquire(ctx, approvals.Question{Step: "c"})
			e := execution.Result{ID: of.ID, Approvals: []approvals.Approval{a}}
			e.Status = execution.Held
			return e, err
		}), s.execute
		e := engine(t, d, workflow.Options{Approvals: p}, map[string]string{"flow": "steps: [{id: c, code: 'result = 1'}]"})
		r := begin(t, e, workflow.Start{Workflow: "flow"})
		time.Sleep(time.Minute)
		for question := range p.questions() {
			p.say(question, approval.Allowed)
		}
		if r, err := e.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK {
			t.Errorf("it is %s: %+v, %v", r.Status, r.Error, err)
		}
		s.want(t, "new", "resume e1")
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// unreachable people cannot be asked at first, and their first answers cannot be read.
type unreachable struct {
	people
	refusals, reads int
}

func (p *unreachable) Approval(ctx context.Context, id string) (approvals.Approval, error) {
	if p.reads--; p.reads >= 0 {
		return approvals.Approval{}, toolcall.Unavailable(fmt.Errorf("read: %w", store.ErrUnreachable))
	}
	return p.people.Approval(ctx, id)
}

func (p *unreachable) Inquire(ctx context.Context, q approvals.Question) (approvals.Approval, error) {
	if p.refusals--; p.refusals >= 0 {
		return approvals.Approval{}, toolcall.Unavailable(fmt.Errorf("write: %w", store.ErrUnreachable))
	}
	return p.people.Inquire(ctx, q)
}

// An interrupted step is not repeated without an answer, however often the question is refused by the store.
func TestRefusedQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, d, records := &unreachable{refusals: 3}, standard(), store.Memory()
		d.tools["pay"] = hang
		texts := map[string]string{"flow": "steps: [{id: p, tool: t.pay}]"}
		first := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
		r := begin(t, first, workflow.Start{Workflow: "flow"})
		if err := first.Close(); err != nil { // which leaves no more than a kill does
			t.Fatal(err)
		}
		delete(d.tools, "pay")
		second := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(p.questions()) != 1 {
			t.Errorf("it asks %v", p.questions())
		}
		if n := len(d.recordedCalls()); n != 1 {
			t.Errorf("%d calls before an answer", n)
		}
		for question := range p.questions() {
			p.say(question, approval.Done)
		}
		if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK || len(d.recordedCalls()) != 1 {
			t.Errorf("it is %s after %d calls: %v", r.Status, len(d.recordedCalls()), err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}
