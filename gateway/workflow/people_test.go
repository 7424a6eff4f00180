package workflow_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/workflow"
	"sallyport/internal/approval"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// people are asked by hand: the same question is one question, and stands until it is answered or over.
type people struct {
	mu       sync.Mutex
	asked    map[string]*approvals.Approval
	watchers []func()
}

func (p *people) Inquire(_ context.Context, q approvals.Question) (approvals.Approval, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := q.Step + " " + string(rune('0'+q.Attempt%10)) + ": " + q.Message
	if p.asked == nil {
		p.asked = map[string]*approvals.Approval{}
	}
	if p.asked[key] == nil {
		expires := q.Expires
		if expires == 0 {
			expires = 24 * time.Hour
		}
		p.asked[key] = &approvals.Approval{ID: key, State: approval.Waiting, Expires: time.Now().Add(expires)}
	}
	return *p.asked[key], nil
}

func (p *people) Approval(_ context.Context, id string) (approvals.Approval, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.asked[id]
	if a == nil {
		return approvals.Approval{}, &tool.Error{Kind: tool.NotFound, Message: "there is no approval " + id}
	}
	if a.State == approval.Waiting && time.Now().After(a.Expires) {
		a.State = approval.Expired
	}
	return *a, nil
}

func (p *people) Withdraw(_ context.Context, id string) error {
	p.say(id, approval.Withdrawn)
	return nil
}

func (p *people) WatchApprovals(f func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(p.watchers, f)
	return func() {}
}

// say answers a question, and tells all who watch.
func (p *people) say(id string, state approval.State) {
	p.mu.Lock()
	p.asked[id].State, p.asked[id].By = state, "ann"
	watchers := slices.Clone(p.watchers)
	p.mu.Unlock()
	for _, tell := range watchers {
		tell()
	}
}

// questions are what is asked, with the state of each.
func (p *people) questions() map[string]approval.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]approval.State{}
	for id, a := range p.asked {
		all[id] = a.State
	}
	return all
}

// begin starts a run, and lets it go as far as it goes by itself.
func begin(t *testing.T, e *workflow.Engine, s workflow.Start) workflow.Run {
	t.Helper()
	r, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return now(t, e, r.ID)
}

func now(t *testing.T, e *workflow.Engine, id string) workflow.Run {
	t.Helper()
	synctest.Wait()
	r, err := e.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A person is asked whether to go on; the run waits, over a restart too, until there is an answer or no time any more.
func TestApproval(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer approval.State
		want   string
	}{
		{approval.Allowed, `ok {"by":"ann"} `}, {approval.Denied, "failed  denied: it was not approved by ann"}, {approval.Waiting, "failed  timeout: nobody has answered in time"},
		{approval.Withdrawn, "failed  canceled: the question was withdrawn"},
	} {
		t.Run(string(row.answer), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, records := &people{}, store.Memory()
				texts := map[string]string{"flow": "timeout: 1m\nsteps: [{id: yes, wait: {approval: {message: \"send ${{ 1 + 1 }}?\", timeout: 2h}}}]\noutputs: {by: {value: \"${{ steps.yes.output.by }}\"}}"}
				first := engine(t, standard(), workflow.Options{Approvals: p, Records: records}, texts)
				r := begin(t, first, workflow.Start{Workflow: "flow"})
				if len(r.Waiting) != 1 || r.Status != workflow.Waiting || r.Waiting[0].Approval != "yes 1: send 2?" {
					t.Fatalf("it is %s, and waits for %+v", r.Status, r.Waiting)
				}
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
				second := engine(t, standard(), workflow.Options{Approvals: p, Records: records}, texts)
				time.Sleep(time.Hour)
				if row.answer != approval.Waiting {
					p.say("yes 1: send 2?", row.answer)
				}
				r, err := second.Wait(t.Context(), r.ID)
				if err != nil {
					t.Fatal(err)
				}
				got := string(r.Status) + " " + string(r.Outputs) + " "
				if r.Error != nil {
					got += string(r.Error.Kind) + ": " + r.Error.Message
				}
				if got != row.want || len(p.questions()) != 1 {
					t.Errorf("it is %q, not %q, after %v", got, row.want, p.questions())
				}
				if err := second.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What may have been done when the engine was killed is made again only where a person says so.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule   string
		answer approval.State
		want   string
	}{
		{"ask", approval.Allowed, "ok after 2 calls"}, {"ask", approval.Denied, "canceled after 1 calls"}, {"fail", "", "canceled after 1 calls"}, {"retry", "", "ok after 2 calls"},
	} {
		t.Run(row.rule+" "+string(row.answer), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, records, d := &people{}, store.Memory(), standard()
				d.tools["send"] = hang
				texts := map[string]string{"flow": "steps: [{id: s, tool: t.send, interrupted: " + row.rule + "}]"}
				first := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
				r := begin(t, first, workflow.Start{Workflow: "flow"})
				if err := first.Close(); err != nil { // which leaves no more than a kill does
					t.Fatal(err)
				}
				delete(d.tools, "send")
				second := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
				synctest.Wait()
				for question := range p.questions() {
					if !strings.Contains(question, "Repeat it?") {
						t.Errorf("it asks %q", question)
					}
					p.say(question, row.answer)
				}
				r, err := second.Wait(t.Context(), r.ID)
				if err != nil {
					t.Fatal(err)
				}
				status := string(r.Status)
				if r.Error != nil {
					status = string(r.Error.Kind)
				}
				if got := status + " after " + string(rune('0'+len(d.recordedCalls()))) + " calls"; got != row.want {
					t.Errorf("it is %s, not %s: %+v", got, row.want, r.Error)
				}
				if err := second.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An answer is about one call: the next one that is interrupted is asked about anew.
func TestInterruptedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, records, d := &people{}, store.Memory(), standard()
		d.tools["send"] = hang
		texts := map[string]string{"flow": "steps: [{id: s, tool: t.send}]"}
		e := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
		r := begin(t, e, workflow.Start{Workflow: "flow"})
		for killed := 1; killed <= 3; killed++ {
			if err := e.Close(); err != nil { // which leaves no more than a kill does
				t.Fatal(err)
			}
			e = engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
			synctest.Wait()
			open, made := 0, len(d.recordedCalls()) // before an answer, which makes the next call
			for question, state := range p.questions() {
				if state == approval.Waiting {
					open++
					p.say(question, approval.Allowed)
				}
			}
			if open != 1 || made != killed {
				t.Errorf("after %d kills and %d answers there are %d calls, and %d questions", killed, killed-1, made, open)
			}
			synctest.Wait()
		}
		if err := e.Cancel(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A canceled run takes its questions back.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &people{}
		e := engine(t, standard(), workflow.Options{Approvals: p}, map[string]string{"flow": "steps: [{id: yes, wait: {approval: {message: go}}}]"})
		r := begin(t, e, workflow.Start{Workflow: "flow"})
		if err := e.Cancel(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		if r, err := e.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.Canceled {
			t.Errorf("it is %s: %v", r.Status, err)
		}
		if got := slices.Collect(maps.Values(p.questions())); len(got) != 1 || got[0] != approval.Withdrawn {
			t.Errorf("the questions are %v", p.questions())
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
