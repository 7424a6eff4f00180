package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// runs is a gateway whose policy asks about every call of notes, and what a restart leaves of it.
type runs struct {
	*gateway.Gateway
	t    *testing.T
	kept *store.Store
	cfg  *config.Config
	site *site
}

func openRuns(t *testing.T) *runs {
	t.Helper()
	r := &runs{t: t, kept: store.Memory(), site: newSite(t, notes)}
	r.cfg = settings(map[string]*site{"notes": r.site})
	r.cfg.Policy = policy.Settings{On: true, Default: policy.Ask}
	r.open()
	return r
}

func (r *runs) open() {
	r.Gateway = open(r.t, r.cfg, &gateway.Options{Records: r.kept})
	r.Catalog.WaitConnected(r.t.Context())
}

// within is the context of a run.
func (r *runs) within(run string) context.Context {
	return toolcall.WithRun(tool.WithSession(tool.WithPrincipal(r.t.Context(), "ann"), "workflow:"+run), run)
}

// create makes a call, and returns the question that it waits for.
func (r *runs) create(ctx context.Context, title string, peer tool.Peer) (string, error) {
	_, err := r.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"` + title + `"}`), Peer: peer})
	if w, ok := errors.AsType[*approvals.PendingError](err); ok {
		return w.Approval, err
	}
	return "", err
}

func (r *runs) waits(ctx context.Context, title string) string {
	r.t.Helper()
	id, err := r.create(ctx, title, nil)
	wantError(r.t, err, tool.Denied, "notes.create_note waits for approval a-")
	return id
}

func (r *runs) answer(id string, answer approvals.Answer) {
	r.t.Helper()
	if _, err := r.Approver.Answer(tool.WithOperator(r.t.Context(), "cli"), id, answer); err != nil {
		r.t.Fatal(err)
	}
}

// goes makes a call that nothing stands in the way of.
func (r *runs) goes(ctx context.Context, title string) {
	r.t.Helper()
	before := r.site.hits.Load()
	if _, err := r.create(ctx, title, nil); err != nil || r.site.hits.Load() != before+1 {
		r.t.Errorf("%s: %v, %d calls", title, err, r.site.hits.Load()-before)
	}
}

// TestUnwaited: a run's call leaves a question, which survives the gateway, and the same call finds its answer once.
func TestUnwaited(t *testing.T) {
	t.Parallel()
	r := openRuns(t)
	ctx := r.within("r-1")
	id := r.waits(ctx, "a")
	if again := r.waits(ctx, "a"); again != id {
		t.Errorf("the same call asks %s, then %s", id, again)
	}
	a, err := r.Approver.Approval(ctx, id)
	if err != nil || a.Execution != "r-1" || a.Root != "r-1" || time.Until(a.Expires) < 23*time.Hour {
		t.Errorf("%+v, %v", a, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.answer(id, approvals.Answer{Allow: true})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.waits(r.within("r-2"), "a") // another run's
	r.goes(ctx, "a")
	second := r.waits(ctx, "a")
	if second == id {
		t.Error("an answer counts twice")
	}
	r.answer(second, approvals.Answer{Note: "not today"})
	_, err = r.create(ctx, "a", nil)
	wantError(t, err, tool.Denied, "notes.create_note was not approved by cli: not today")
	r.answer(r.waits(ctx, "a"), approvals.Answer{Allow: true, Scope: approval.Execution}) // the run was resumed, and asks anew
	r.goes(ctx, "a")
	r.goes(ctx, "b")
	r.waits(r.within("r-2"), "b")
}

// TestUnwaitedPeer: who started a run is asked while it waits, and not any more once they have gone.
func TestUnwaitedPeer(t *testing.T) {
	t.Parallel()
	r := openRuns(t)
	ctx := r.within("r-1")
	p := &person{decide: always("execution")}
	here, leave := context.WithCancel(t.Context())
	peer := approvals.SerialPeer(here, p)
	for _, title := range []string{"a", "b"} {
		id, err := r.create(ctx, title, peer)
		if id == "" {
			t.Fatal(err)
		}
		testutil.Eventually(t, "an answer", 5*time.Second, func() bool { a, _ := r.Approver.Approval(ctx, id); return a.State == approval.Allowed })
		r.goes(ctx, title)
		ctx = r.within("r-2")
	}
	if !strings.HasSuffix(p.asked[1], "\nRequested by run r-2 of a workflow.") || !strings.Contains(string(p.forms[0]), `"enum":["once","execution","deny"]`) || p.highest > 1 {
		t.Errorf("%q\n%s", p.asked, p.forms[0])
	}
	leave()
	id, _ := r.create(r.within("r-3"), "c", peer)
	time.Sleep(20 * time.Millisecond)
	if a, err := r.Approver.Approval(r.within("r-3"), id); err != nil || a.State != approval.Waiting || p.questions() != 2 {
		t.Errorf("%+v, %v, asked %d times", a, err, p.questions())
	}
	slow := &person{decide: func(string) string { time.Sleep(100 * time.Millisecond); return "once" }}
	if _, err := r.create(r.within("r-4"), "d", slow); tool.AsError(err).Kind != tool.Denied {
		t.Error(err)
	}
	if err := r.Close(); err != nil { // waits for whom it asks
		t.Error(err)
	}
}

// TestInquire: a question of a run stands among the others until somebody answers it, once.
func TestInquire(t *testing.T) {
	t.Parallel()
	r := openRuns(t)
	ctx, operator := r.within("r-1"), tool.WithOperator(t.Context(), "cli")
	q := approvals.Question{Run: "r-1", Workflow: "tidy", Step: "each[2].sure", Message: "Remove 12 files?\x1b[2J\u202e", Expires: 48 * time.Hour}
	inquire := func(state approval.State) approvals.Approval {
		t.Helper()
		a, err := r.Approver.Inquire(ctx, q)
		if err != nil || a.State != state {
			t.Fatalf("%v, %s, want %s", err, a.State, state)
		}
		return a
	}
	first := inquire(approval.Waiting)
	if again := inquire(approval.Waiting); again.ID != first.ID {
		t.Error("it is asked twice")
	}
	all, err := r.Approver.Approvals(operator)
	if err != nil || len(all) != 1 || all[0].Tool != "workflows.tidy" || all[0].Arguments != "Remove 12 files?" || all[0].Reason != "step each[2].sure" || time.Until(all[0].Expires) < 47*time.Hour {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = r.Approver.Answer(operator, first.ID, approvals.Answer{Allow: true, Scope: approval.Execution})
	wantError(t, err, tool.Invalid, "answered for once only")
	_, err = r.Approver.Approval(tool.WithPrincipal(t.Context(), "eve"), first.ID)
	wantError(t, err, tool.NotFound, "there is no approval")
	r.answer(first.ID, approvals.Answer{Allow: true, Note: "go"})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	if a := inquire(approval.Allowed); a.Note != "go" || a.By != "cli" {
		t.Errorf("%+v", a)
	}
	q.Attempt++
	second := inquire(approval.Waiting)
	if err := r.Approver.Withdraw(ctx, second.ID); err != nil {
		t.Error(err)
	}
	if a, err := r.Approver.Approval(operator, second.ID); err != nil || a.State != approval.Withdrawn {
		t.Errorf("%+v, %v", a, err)
	}
	p := &person{decide: always("once")}
	q.Attempt, q.Peer = 2, p
	third := inquire(approval.Waiting)
	testutil.Eventually(t, "an answer", 5*time.Second, func() bool { a, _ := r.Approver.Approval(ctx, third.ID); return a.State == approval.Allowed })
	if want := "Sallyport: workflows.tidy asks:\nRemove 12 files?\nRequested by run r-1 of a workflow."; p.asked[0] != want {
		t.Errorf("asked %q", p.asked[0])
	}
	for _, wrong := range []approvals.Question{{}, {Message: "x", Expires: 8 * 24 * time.Hour}, {Message: "x", Expires: -1}} {
		_, err := r.Approver.Inquire(ctx, wrong)
		wantError(t, err, tool.Invalid)
	}
}

// TestRecall: what was read is carried from one session into another, and tokens of personal data with it.
func TestRecall(t *testing.T) {
	t.Parallel()
	s := newSite(t, notes)
	cfg := settings(map[string]*site{"notes": s})
	cfg.Upstreams[0].Labels, cfg.Upstreams[0].Privacy = []string{"private"}, config.PrivacyTokenize
	g := open(t, cfg, nil)
	ctx, other := tool.WithSession(t.Context(), "a"), tool.WithSession(t.Context(), "workflow:r-1")
	if _, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "list_notes"}}); err != nil {
		t.Fatal(err)
	}
	if got := g.Guard.SessionOrigins(other); len(got) > 0 {
		t.Errorf("another session has read %+v", got)
	}
	if _, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"ada@example.org"}`)}); err != nil {
		t.Fatal(err)
	}
	g.Guard.ShareSession(ctx, other)
	for _, in := range []context.Context{ctx, other} {
		result, err := g.Call(in, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "list_notes"}})
		if err != nil || !strings.Contains(string(result.Structured), `"[EMAIL_1]"`) {
			t.Errorf("%s, %v", result.Structured, err)
		}
	}
	mail := func(in context.Context) error {
		_, err := g.Call(in, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"to [EMAIL_1]"}`)})
		return err
	}
	if err := mail(toolcall.WithRun(other, "r-1")); err != nil {
		t.Error(err)
	}
	lost := toolcall.WithRun(tool.WithSession(ctx, "workflow:r-2"), "r-2")
	wantError(t, mail(lost), tool.Invalid, "the value of [EMAIL_1] is lost", "start another run")
	g.Guard.ShareSession(other, tool.WithPrincipal(ctx, "eve"))
	if got := g.Guard.SessionOrigins(tool.WithPrincipal(ctx, "eve")); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got := g.Guard.SessionOrigins(other); len(got) != 1 || got[0].Label != "private" || got[0].Tool != "notes.list_notes" {
		t.Errorf("%+v", got)
	}
}

// TestHeldWithoutJournal: nobody is promised what cannot be.
func TestHeldWithoutJournal(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(map[string]*site{"ledger": newLedger(t).site}))
	cfg.Policy, cfg.Approval.Wait = policy.Settings{On: true, Default: policy.Ask}, 10*time.Millisecond
	g := open(t, cfg, &gateway.Options{NoPool: true})
	e := runWith(t.Context(), t, g, execution.Program{Code: "from servers.ledger import book\nbook(name='a')"}, execution.Held, "run it again when somebody can answer")
	if strings.Contains(e.Text(), "resume=") {
		t.Error(e.Text())
	}
}

// TestProgramOfRun: a program of a run has the id that the run gave it and is held at once; what it did can be gone on with
// also after it ended well, since the run may not know that.
func TestProgramOfRun(t *testing.T) {
	t.Parallel()
	g, l := resuming(t, func(cfg *config.Config) {
		cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "books", Tools: []string{"ledger.book"}, Then: policy.Ask}}}
		cfg.Approval.Wait = time.Minute
	})
	ctx := toolcall.WithRun(tool.WithSession(t.Context(), "workflow:r-1"), "r-1")
	id := execution.NewID()
	code := "from servers.ledger import book\nbook(name='a')\nbook(name='b')"
	started := time.Now()
	held := runWith(ctx, t, g, execution.Program{ID: id, Code: code}, execution.Held, "ledger.book (")
	if held.ID != id || len(held.Approvals) != 1 || held.Approvals[0].Root != "r-1" || held.Approvals[0].Execution != id || time.Since(started) > 30*time.Second {
		t.Errorf("%+v", held)
	}
	if _, err := g.Approver.Answer(tool.WithOperator(ctx, "cli"), held.Approvals[0].ID, approvals.Answer{Allow: true, Scope: approval.Execution}); err != nil {
		t.Fatal(err)
	}
	next := execution.NewID()
	if e := runWith(ctx, t, g, execution.Program{ID: next, Resume: id}, sandbox.OK); e.ID != next || e.Value.Text != `"booked b"` {
		t.Errorf("%+v", e)
	}
	l.want(t, "a b")
	last := runWith(ctx, t, g, execution.Program{Resume: next}, sandbox.OK, "2 calls answered")
	if last.Value.Text != `"booked b"` {
		t.Errorf("%+v", last)
	}
	l.want(t, "")
	_, err := g.Executor.Execute(ctx, execution.Program{ID: id, Code: code})
	wantError(t, err, tool.Invalid, "execution "+id+" already exists")
	_, err = g.Executor.Execute(ctx, execution.Program{ID: "../x", Code: code})
	wantError(t, err, tool.Invalid, "invalid execution id")
	if _, err = g.Executor.Execute(ctx, execution.Program{Resume: execution.NewID()}); !errors.Is(err, history.ErrNoExecution) {
		t.Error(err)
	}
	again := runWith(tool.WithSession(t.Context(), "s"), t, g, execution.Program{Resume: last.ID}, sandbox.OK, "2 calls answered") // its answer may be lost
	l.want(t, "")
	if again.Value.Text != last.Value.Text {
		t.Errorf("%+v", again)
	}
	if record, err := g.History.Record(ctx, last.ID); err != nil || !slices.ContainsFunc(record.Calls, func(c toolcall.RecordedCall) bool { return c.Replayed }) {
		t.Errorf("%+v, %v", record, err)
	}
}
