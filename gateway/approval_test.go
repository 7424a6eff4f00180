package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// person is a client with somebody in front of it.
type person struct {
	decide func(message string) string // "" cancels

	mu      sync.Mutex
	asked   []string
	forms   []json.RawMessage
	at      int // questions at once
	highest int
}

func (*person) Notify(string, json.RawMessage) {}

func (p *person) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != "elicitation/create" {
		return nil, tool.ErrCannotAsk
	}
	var form struct{ Message string }
	_ = json.Unmarshal(params, &form)
	p.mu.Lock()
	p.asked, p.forms = append(p.asked, form.Message), append(p.forms, params)
	p.at++
	p.highest = max(p.highest, p.at)
	p.mu.Unlock()
	said := p.decide(form.Message)
	p.mu.Lock()
	p.at--
	p.mu.Unlock()
	switch said {
	case "":
		return json.RawMessage(`{"action":"cancel"}`), nil
	case "nothing":
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	return json.RawMessage(`{"action":"accept","content":{"decision":"` + said + `"}}`), nil
}

func (p *person) questions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func always(said string) func(string) string { return func(string) string { return said } }

// guardedOffice is one whose policy asks about all that does not say that it only reads.
func guardedOffice(t *testing.T, wait time.Duration) (*gateway.Gateway, map[string]*site) {
	t.Helper()
	sites := map[string]*site{"notes": newSite(t, notes), "calc": newSite(t, calc)}
	cfg := withRunsc(t, settings(sites))
	cfg.Policy = policy.Settings{On: true, Default: policy.Ask, Rules: []policy.Rule{{Name: "sums", Tools: []string{"calc.add"}, Then: policy.Allow}}}
	cfg.Approval.Wait = wait
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	g.Catalog.WaitConnected(t.Context())
	return g, sites
}

// TestApproval has one gateway whose people take their time, and one where they have none.
func TestApproval(t *testing.T) {
	t.Run("patient", func(t *testing.T) {
		g, sites := guardedOffice(t, 20*time.Second)
		t.Run("without waiting", func(t *testing.T) { withoutWaiting(t, g) })
		t.Run("programs ask", func(t *testing.T) { programsAsk(t, g, sites) })
		t.Run("question", func(t *testing.T) { question(t, g) })
		t.Run("slow", func(t *testing.T) { slow(t, g) })
		t.Run("answered elsewhere", func(t *testing.T) { answeredElsewhere(t, g, sites) })
	})
	t.Run("hasty", func(t *testing.T) {
		g, sites := guardedOffice(t, 100*time.Millisecond)
		t.Run("held", func(t *testing.T) { heldProgram(t, g, sites) })
		t.Run("direct", func(t *testing.T) { direct(t, g, sites) })
		t.Run("many", func(t *testing.T) { many(t, g) })
	})
}

func programsAsk(t *testing.T, g *gateway.Gateway, sites map[string]*site) {
	t.Helper()
	const note = "from servers.notes import create_note\nfrom sallyport import ToolError, parallel\n"
	for name, c := range map[string]struct {
		code, want string
		decide     func(string) string
		asked      int
		hits       int32
	}{
		"once":      {note + "create_note(title='a'), create_note(title='b')", `["ok","ok"]`, always("once"), 2, 2},
		"execution": {note + "create_note(title='a'), create_note(title='b')", `["ok","ok"]`, always("execution"), 1, 2},
		"denied, and not asked again": {note + `said = []
for title in 'a', 'a', 'b':
    try: create_note(title=title)
    except ToolError as e: said.append([e.kind, str(e)])
said`, `[["denied","notes.create_note was not approved by the user"],["denied","notes.create_note was not approved by the user"],["denied","notes.create_note was not approved by the user"]]`, always("deny"), 2, 0},
		"an answer without a decision": {note + "try: create_note(title='a')\nexcept ToolError as e: said = e.kind\nsaid", `"denied"`, always("nothing"), 1, 0},
		"one that is no scope":         {note + "try: create_note(title='a')\nexcept ToolError as e: said = e.kind\nsaid", `"denied"`, always("forever"), 1, 0},
		"canceled":                     {note + "try: create_note(title='a')\nexcept ToolError as e: said = e.kind\nsaid", `"denied"`, always(""), 1, 0},
		"at once, asked one by one": {note + "parallel(*[lambda i=i: create_note(title=str(i)) for i in range(4)])", `["ok","ok","ok","ok"]`,
			func(string) string { time.Sleep(20 * time.Millisecond); return "once" }, 4, 4},
		"at once, one answer for all": {note + "parallel(*[lambda i=i: create_note(title=str(i)) for i in range(4)])", `["ok","ok","ok","ok"]`, always("execution"), 1, 4},
		"the same at once":            {note + "parallel(*[lambda: create_note(title='x') for i in range(3)])", `["ok","ok","ok"]`, always("once"), 3, 3},
		"a flood":                     {note + "n = 0\nfor i in range(60):\n    try: create_note(title=str(i))\n    except ToolError as e: n += 'requested too many' in str(e)\nn", `28`, always("deny"), 32, 0},
		"what needs no approval":      {"from servers.calc import add\nadd(a=1, b=2)", `"3"`, always("deny"), 0, 0},
	} {
		before := sites["notes"].hits.Load()
		p := &person{decide: c.decide}
		e, err := g.Executor.Execute(tool.WithSession(t.Context(), name), execution.Program{Code: c.code, Peer: p})
		if err != nil || e.Value == nil || e.Value.Text != c.want {
			t.Errorf("%s: %v, %s, want %s", name, err, e.Text(), c.want)
		}
		if hits := sites["notes"].hits.Load() - before; p.questions() != c.asked || hits != c.hits || p.highest > 1 {
			t.Errorf("%s: asked %d times, %d at once, %d calls; want %d and %d", name, p.questions(), p.highest, hits, c.asked, c.hits)
		}
	}
}

// question is what a person reads and can answer.
func question(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	p := &person{decide: always("session")}
	ctx := tool.WithSession(t.Context(), "s1")
	code := "from servers.notes import create_note\ncreate_note(title='a\\x1b[31m\\u202eb', text='x' * 5000)"
	first, err := g.Executor.Execute(ctx, execution.Program{Code: code, Peer: p})
	if err != nil || first.Failed() {
		t.Fatalf("%v, %s", err, first.Text())
	}
	want := "Sallyport: allow this call of notes.create_note?\n{\"text\":\"" + strings.Repeat("x", 399) + "…… (5000 characters)\",\"title\":\"ab\"}\nAsked by: default"
	if !strings.HasPrefix(p.asked[0], want) || !strings.HasSuffix(p.asked[0], "\nRequested by program "+first.ID+".") {
		t.Errorf("asked %q\nwant  %q", p.asked[0], want)
	}
	if !strings.Contains(string(p.forms[0]), `"enum":["once","execution","session","deny"]`) {
		t.Errorf("%s", p.forms[0])
	}
	for session, asked := range map[string]int{"s1": 1, "s2": 2} { // the answer was for its session
		e, err := g.Executor.Execute(tool.WithSession(t.Context(), session), execution.Program{Code: code, Peer: p})
		if err != nil || e.Failed() {
			t.Errorf("%v, %s", err, e.Text())
		}
		if session == "s1" && p.questions() > 2 {
			t.Errorf("asked %d times, want %d", p.questions(), asked)
		}
	}
	if p.questions() != 2 {
		t.Errorf("asked %d times", p.questions())
	}
	other, err := g.Executor.Execute(tool.WithPrincipal(ctx, "eve"), execution.Program{Code: code, Peer: p})
	if err != nil || other.Failed() || p.questions() != 3 {
		t.Errorf("another principal: %v, asked %d times", err, p.questions())
	}
}

// slow: a person may take longer than a program has. A program that is too slow on a busy machine is run again with more time.
func slow(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	for timeout := time.Second; ; timeout *= 2 {
		p := &person{decide: func(string) string { time.Sleep(timeout * 3 / 2); return "once" }}
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "from servers.notes import create_note\ncreate_note(title='a')", Peer: p, Timeout: timeout})
		if err == nil && !e.Failed() {
			return
		}
		if err != nil || e.Status != sandbox.TimedOut || timeout > 10*time.Second {
			t.Fatalf("%v, %s", err, e.Text())
		}
	}
}

// heldProgram: nobody can be asked, so the program ends without doing anything else, and says how to go on.
func heldProgram(t *testing.T, g *gateway.Gateway, sites map[string]*site) {
	t.Helper()
	code := `from servers.notes import create_note
from servers.calc import add
from sallyport import parallel
print(add(a=1, b=2))
try: parallel(lambda: create_note(title='a'), lambda: create_note(title='b'))
finally: add(a=3, b=4)`
	e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), "ann"), execution.Program{Code: code})
	if err != nil || e.Status != execution.Held || len(e.Approvals) != 2 || sites["notes"].hits.Load() != 0 || sites["calc"].hits.Load() != 1 {
		t.Fatalf("%v, %s, %+v: %s", err, e.Status, e.Approvals, e.Text())
	}
	for _, want := range []string{"held: it needs approval", "notes.create_note", "sallyport approvals approve " + e.Approvals[0].ID, `execute_code(code="", resume="` + e.ID + `")`} {
		if !strings.Contains(e.Text(), want) {
			t.Errorf("%q is not in %q", want, e.Text())
		}
	}
	r, err := g.History.Record(tool.WithPrincipal(t.Context(), "ann"), e.ID)
	if err != nil || r.Status != execution.Held || len(r.Calls) != 3 || r.Calls[1].Outcome != toolcall.Held || r.Calls[2].Outcome != toolcall.Held {
		t.Errorf("%v, %+v", err, r)
	}
	seen := func(ctx context.Context) int { all, _ := g.Approver.Approvals(ctx); return len(all) }
	ann, operator := tool.WithPrincipal(t.Context(), "ann"), tool.WithOperator(t.Context(), "cli")
	if seen(ann) != 2 || seen(operator) != 2 || seen(tool.WithPrincipal(t.Context(), "eve")) != 0 {
		t.Error("somebody sees too much, or too little")
	}
	id := e.Approvals[0].ID
	_, err = g.Approver.Answer(ann, id, approvals.Answer{Allow: true})
	wantError(t, err, tool.NotFound, "there is no approval")
	if a, err := g.Approver.Answer(operator, id, approvals.Answer{Allow: true}); err != nil || a.State != approval.Allowed || a.By != "cli" {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = g.Approver.Answer(operator, id, approvals.Answer{})
	wantError(t, err, tool.Invalid, "is no longer pending: it is allowed")

	// The one that resumes it makes the call that was approved, and waits for the other one.
	again, err := g.Executor.Execute(ann, execution.Program{Resume: e.ID})
	if err != nil || again.Status != execution.Held || len(again.Approvals) != 1 || again.Approvals[0].ID != e.Approvals[1].ID || sites["notes"].hits.Load() != 1 || sites["calc"].hits.Load() != 1 {
		t.Fatalf("%v, %s, %+v: %s", err, again.Status, again.Approvals, again.Text())
	}
	if _, err := g.Approver.Answer(operator, again.Approvals[0].ID, approvals.Answer{Allow: true, Scope: approval.Execution}); err != nil {
		t.Error(err)
	}
	last, err := g.Executor.Execute(ann, execution.Program{Resume: again.ID})
	if err != nil || last.Status != sandbox.OK || sites["notes"].hits.Load() != 2 || sites["calc"].hits.Load() != 2 {
		t.Errorf("%v, %s; %d notes, %d sums", err, last.Text(), sites["notes"].hits.Load(), sites["calc"].hits.Load())
	}
}

// answeredElsewhere: while a program waits whose client cannot be asked, an operator answers.
func answeredElsewhere(t *testing.T, g *gateway.Gateway, sites map[string]*site) {
	t.Helper()
	before := sites["notes"].hits.Load()
	operator := tool.WithOperator(t.Context(), "cli")
	changed := make(chan struct{}, 100)
	defer g.Approver.WatchApprovals(func() { changed <- struct{}{} })()
	var work sync.WaitGroup
	work.Go(func() {
		for said := map[string]bool{}; len(said) < 2; <-changed {
			all, err := g.Approver.Approvals(operator)
			if err != nil {
				t.Error(err)
				return
			}
			for _, a := range all {
				if a.State == approval.Waiting && !said[a.ID] {
					said[a.ID] = true
					if _, err := g.Approver.Answer(operator, a.ID, approvals.Answer{Allow: strings.Contains(a.Arguments, "good"), Note: "too bold"}); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
	e, err := g.Executor.Execute(t.Context(), execution.Program{Code: `from servers.notes import create_note
from sallyport import ToolError
print(create_note(title='good'))
try: create_note(title='bad')
except ToolError as e: print(e)`})
	work.Wait()
	if want := "ok\nnotes.create_note was not approved by cli: too bold\n"; err != nil || e.Stdout.Text != want || sites["notes"].hits.Load() != before+1 {
		t.Errorf("%v, %s", err, e.Text())
	}
}

// direct: without a program a call waits, then says what to approve, and goes through once after that.
// withoutWaiting makes a call for a person who does not wait, and again after the answer.
func withoutWaiting(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(toolcall.WithoutWaiting(tool.WithPrincipal(t.Context(), "eager")), 15*time.Second) // less than the wait
	defer cancel()
	call := tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"a"}`)}
	_, err := g.Call(ctx, call)
	held, ok := errors.AsType[*approvals.PendingError](err)
	if !ok {
		t.Fatalf("the call ends with %v", err)
	}
	if _, err := g.Approver.Answer(tool.WithOperator(t.Context(), "cli"), held.Approval, approvals.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Call(ctx, call); err != nil {
		t.Error(err)
	}
}

func direct(t *testing.T, g *gateway.Gateway, sites map[string]*site) {
	t.Helper()
	before := sites["notes"].hits.Load()
	ctx := tool.WithSession(t.Context(), "s")
	create := func(ctx context.Context, title string, peer tool.Peer) error {
		_, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"` + title + `"}`), Peer: peer})
		return err
	}
	wantError(t, create(ctx, "a", nil), tool.Denied, "notes.create_note waits for approval a-")
	wantError(t, create(ctx, "a", nil), tool.Denied, "notes.create_note waits for approval a-") // the same question
	all, err := g.Approver.Approvals(ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := g.Approver.Answer(tool.WithOperator(ctx, "cli"), all[0].ID, approvals.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	wantError(t, create(ctx, "b", nil), tool.Denied, "waits for approval")
	wantError(t, create(tool.WithSession(ctx, "other"), "a", nil), tool.Denied, "waits for approval")
	wantError(t, create(tool.WithPrincipal(ctx, "eve"), "a", nil), tool.Denied, "waits for approval")
	if err := create(ctx, "a", nil); err != nil {
		t.Error(err)
	}
	wantError(t, create(ctx, "a", nil), tool.Denied, "waits for approval")
	if err := create(ctx, "c", &person{decide: always("once")}); err != nil {
		t.Error(err)
	}
	wantError(t, create(ctx, "d", &person{decide: always("deny")}), tool.Denied, "was not approved by the user")
	if hits := sites["notes"].hits.Load() - before; hits != 2 {
		t.Errorf("%d calls", hits)
	}
	_, err = g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"a","title":"b"}`)})
	wantError(t, err, tool.Invalid, `"title" is in them twice`)
}

// many: a principal cannot have any number of programs wait in their sandboxes; those beyond are held at once.
func many(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx, stop := context.WithCancel(tool.WithPrincipal(t.Context(), "mallory"))
	defer stop()
	var work sync.WaitGroup
	defer work.Wait()
	slow := &person{decide: func(string) string { <-ctx.Done(); return "" }}
	for i := range 16 {
		work.Go(func() {
			_, _ = g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: fmt.Appendf(nil, `{"title":"%d"}`, i), Peer: slow})
		})
	}
	testutil.Eventually(t, "16 calls wait", 10*time.Second, func() bool { all, _ := g.Approver.Approvals(ctx); return len(all) == 16 })
	code := "from servers.notes import create_note\ncreate_note(title='a')"
	e, err := g.Executor.Execute(ctx, execution.Program{Code: code, Peer: slow})
	if err != nil || e.Status != execution.Held {
		t.Errorf("%v, %s", err, e.Text())
	}
	p := &person{decide: always("once")}
	if e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), "bob"), execution.Program{Code: code, Peer: p}); err != nil || e.Status != sandbox.OK {
		t.Errorf("another principal: %v, %s", err, e.Text())
	}
	stop()
}
