package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// till is an upstream that counts what was paid, and can hold a call while its gateway is killed.
type till struct {
	*site
	paid    atomic.Int64
	during  atomic.Pointer[func()] // called once after a payment, before its answer
	instead atomic.Pointer[func() *mcp.CallToolResult]
	refuses atomic.Bool
}

func newTill(t testing.TB) *till {
	t.Helper()
	c := &till{}
	c.site = newSite(t, func(s *site) {
		s.tool("pay", "Pay.", `"properties":{"key":{"type":"string"},"amount":{"type":"number"},"note":{"type":"string","default":"none"}}`, c.pay)
	})
	return c
}

func (c *till) pay(json.RawMessage) *mcp.CallToolResult {
	if f := c.instead.Swap(nil); f != nil {
		return (*f)()
	}
	if c.refuses.Load() {
		r := text("the till is closed")
		r.IsError = true
		return r
	}
	c.paid.Add(1)
	if f := c.during.Swap(nil); f != nil {
		(*f)()
	}
	return text("paid")
}

// A way is a way in which the first execution ended.
type way struct {
	name string
	// done: the call was done; certain: it is known whether; caught: the program caught the call's failure.
	done, certain, caught bool
}

var ways = []way{
	{name: "killed before the upstream had it"},
	{name: "killed after the upstream had done it", done: true},
	{name: "killed after the answer", done: true, certain: true},
	{name: "timed out", done: true},
	{name: "timed out, caught", done: true, caught: true},
	{name: "refused by the upstream", certain: true},
	{name: "refused by the upstream, caught", certain: true, caught: true},
}

// paths are the ways to go on with it: resume, a workflow that is resumed, and a workflow's own retry. The latter two make calls again
// that failed, and a retry those that succeeded too.
func (w way) paths() []string {
	switch {
	case w.certain && w.done:
		return []string{"resume", "after"}
	case w.certain:
		return []string{"resume"}
	case strings.HasPrefix(w.name, "timed out"):
		return []string{"resume", "after"}
	}
	return []string{"resume", "after", "retry"}
}

// Spellings of the call in the program that resumes.
var spellings = map[string]string{
	"same":           `{"key":"PAYMENT","amount":1}`,
	"exact":          `{"key":"PAYMENT","amount":1}`,
	"other order":    `{ "amount": 1.0, "note": "none", "key": "PAYMENT" }`,
	"other spelling": `{"key":"payment ","amount":1}`,
	"random":         "", // as the program of before, which has chance in its arguments
}

const (
	answerNone = "none"
	answerYes  = "approve"
	answerNo   = "deny"
	answerDone = "done"
)

// world is one course of events.
type world struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // of the test
	g      *gateway.Gateway
	till   *till
	name   string
	answer atomic.Value
	asked  atomic.Int64
	chance atomic.Int64
	hasty  atomic.Bool
	// entered has one when the upstream has a call that is to be given up.
	entered chan struct{}
}

// TestNoCallIsMadeTwice enumerates how an execution ends whose call may have been done, what people answer at each resume,
// what becomes of the program's code, and by which way it is resumed. The upstream does the call once, and once more for each time that
// a person says that it was not done.
func TestNoCallIsMadeTwice(t *testing.T) {
	t.Parallel()
	answers := []string{answerNone, answerYes, answerNo, answerDone}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			world := newWorld(t)
			for spelling := range spellings {
				if w.certain && spelling == "other spelling" {
					continue // another call, as the first has an end
				}
				for _, path := range w.paths() {
					for _, first := range answers {
						for _, second := range answers {
							if spelling == "random" && (path != "resume" || second != answerNone) {
								continue // each waits a second for the calls that the journal knows
							}
							world.name = fmt.Sprintf("%s/%s/%s/%s", spelling, path, first, second)
							if world.course(w, spelling, path, first, second) {
								break // it ended well before it could ask a second time
							}
						}
					}
				}
			}
		})
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "s"), till: newTill(t), entered: make(chan struct{})}
	cfg := settings(map[string]*site{"till": w.till.site})
	cfg.Approval.Wait = time.Millisecond
	w.g = open(t, cfg, (&gateway.Options{DataDir: t.TempDir(), NoPool: true}).InProcess(w.programs()))
	w.g.Catalog.WaitConnected(t.Context())
	return w
}

// args are the arguments of a call, with something by chance where the spelling wants that.
func (w *world) args(spelling string) string {
	if spelling == "random" {
		return fmt.Sprintf(`{"key":"PAYMENT","amount":1,"note":"%d"}`, w.chance.Add(1))
	}
	return spellings[spelling]
}

func (w *world) programs() map[string]gateway.GoProgram {
	all := map[string]gateway.GoProgram{}
	for spelling := range spellings {
		for _, caught := range []bool{false, true} {
			for _, changed := range []string{"", "changed "} {
				all[fmt.Sprintf("%s%s %v", changed, spelling, caught)] = func(ctx context.Context, call func(context.Context, string, string) (tool.Result, error)) error {
					limited, cancel := context.WithTimeout(ctx, 10*time.Second)
					if w.hasty.Load() { // a call that times out
						go func() { // the call is given up once the upstream has it
							<-w.entered
							cancel()
						}()
					}
					defer cancel()
					_, err := call(limited, "till.pay", w.args(spelling))
					if err != nil && caught {
						return errors.New("caught: " + err.Error())
					}
					return err
				}
			}
		}
	}
	return all
}

// course is one course of events: a first execution, and two that go on with it.
// early says that it ended well at once.
func (w *world) course(how way, spelling, path, first, second string) (early bool) {
	base := "same"
	if spelling == "random" {
		base = spelling
	}
	w.till.paid.Store(0)
	code := fmt.Sprintf("%s %v", base, how.caught)
	id := w.begin(how, code)
	if spelling != base || path != "resume" {
		code = fmt.Sprintf("changed %s %v", spelling, how.caught)
	}
	done, allowed, settled := how.done, int64(0), how.certain || how.caught && path == "resume" && base == spelling && base == "same"
	for i, answer := range []string{first, second} {
		w.answer.Store(answer)
		before, asked := w.till.paid.Load(), w.asked.Load()
		e := w.resume(path, id, code)
		made, questions := w.till.paid.Load()-before, w.asked.Load()-asked
		if questions > 0 && answer == answerYes {
			allowed++
		}
		w.check(i, how, settled, done, answer, made, questions, e)
		if questions > 0 && answer != answerNone {
			settled = true
		}
		done = done || made > 0
		if e.Status == sandbox.OK {
			early = i == 0
			break
		}
		id = e.ID
	}
	most := allowed
	if how.done {
		most++
	}
	if how.certain && !how.done {
		most++ // it is known not to have been done
	}
	if paid := w.till.paid.Load(); paid > most {
		w.t.Errorf("%s: paid %d times, want at most %d", w.name, paid, most)
	}
	return early
}

// check holds one execution against what was answered.
func (w *world) check(i int, how way, settled, done bool, answer string, made, questions int64, e execution.Result) {
	w.t.Helper()
	switch {
	case how.certain:
		if questions > 0 {
			w.t.Errorf("%s: resume %d of what is certain asks", w.name, i+1)
		}
	case settled && questions > 0:
		w.t.Logf("%s: resume %d asks again", w.name, i+1)
	case questions > 0 && answer == answerYes && (made != 1 || e.Status != sandbox.OK):
		w.t.Errorf("%s: resume %d was approved: made %d, %s", w.name, i+1, made, e.Text())
	case questions > 0 && answer == answerDone && (made != 0 || e.Status != sandbox.OK):
		w.t.Errorf("%s: resume %d is done already: made %d, %s", w.name, i+1, made, e.Text())
	case questions > 0 && answer == answerNo && (made != 0 || e.Status != sandbox.Failed):
		w.t.Errorf("%s: resume %d was denied: made %d, %s", w.name, i+1, made, e.Text())
	case questions > 0 && answer == answerNone && (made != 0 || e.Status != execution.Held):
		w.t.Errorf("%s: resume %d has no answer: made %d, %s", w.name, i+1, made, e.Text())
	}
	if questions == 0 && made > 0 && done && !how.certain {
		w.t.Errorf("%s: resume %d makes the call again and asks nobody: %s", w.name, i+1, e.Text())
	}
}

// begin runs the first execution and leaves the journal as it was at the kill.
func (w *world) begin(how way, code string) string {
	w.t.Helper()
	id := execution.NewID()
	path := gateway.JournalPath(w.g, "ada", id)
	var snapshot []byte
	take := func() {
		data, err := os.ReadFile(path)
		if err != nil {
			w.t.Error(err)
		}
		snapshot = data
	}
	switch {
	case strings.HasPrefix(how.name, "timed out"):
		timedOut := func() *mcp.CallToolResult {
			w.till.paid.Add(1)
			w.entered <- struct{}{}
			time.Sleep(50 * time.Millisecond)
			return text("paid")
		}
		w.till.instead.Store(&timedOut)
		w.hasty.Store(true)
		defer w.hasty.Store(false)
	case strings.HasPrefix(how.name, "refused"):
		w.till.refuses.Store(true)
		defer w.till.refuses.Store(false)
	case how.name == "killed after the answer": // below
	default:
		w.till.during.Store(&take)
	}
	e, err := w.g.Executor.Execute(w.ctx, execution.Program{ID: id, Code: code})
	if err != nil {
		w.t.Fatal(err)
	}
	if !how.done && !how.certain {
		w.till.paid.Store(0) // it was not done
	}
	if how.name == "killed after the answer" {
		take()
	}
	if snapshot != nil {
		w.kill(path, snapshot)
	}
	return e.ID
}

// kill leaves a journal as it was at some time.
func (w *world) kill(path string, snapshot []byte) {
	w.t.Helper()
	if at := strings.Index(string(snapshot), "O{"); at > 0 && strings.Contains(string(snapshot[at:]), `"record"`) {
		snapshot = snapshot[:at-8] // before the frame of the end
	}
	gateway.FlushRecords(w.ctx, w.g)
	if err := os.WriteFile(path, snapshot, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// resume goes on with an execution, while somebody answers what is asked.
func (w *world) resume(path, id, code string) execution.Result {
	w.t.Helper()
	wait := 10 * time.Second
	if w.answer.Load() == answerNone {
		wait = time.Millisecond
	}
	gateway.SetApprovalWait(w.g, wait)
	p := execution.Program{Code: code, Resume: id}
	if path != "resume" {
		// one that was killed before its journal existed came after it
		p.Resume, p.After, p.Retry = "", []string{id, execution.NewID()}, path == "retry"
	}
	ctx, stop := context.WithCancel(w.ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	var mu sync.Mutex
	seen := map[string]bool{}
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		list, err := w.g.Approver.Approvals(w.ctx)
		if err != nil {
			w.t.Error(err)
		}
		for _, a := range list {
			if a.State == "waiting" && !seen[a.ID] && ctx.Err() == nil {
				seen[a.ID] = true
				w.asked.Add(1)
				w.give(a.ID)
			}
		}
	}
	unwatch := w.g.Approver.WatchApprovals(func() { work.Go(look) })
	defer unwatch()
	e, err := w.g.Executor.Execute(w.ctx, p)
	if err != nil {
		w.t.Fatalf("%s: %v", w.name, err)
	}
	return e
}

func (w *world) give(id string) {
	answer := approvals.Answer{By: "bo"}
	switch w.answer.Load() {
	case answerNone:
		return
	case answerYes:
		answer.Allow = true
	case answerDone:
		answer.Done, answer.Result = true, json.RawMessage(`{"paid":true}`)
	}
	if _, err := w.g.Approver.Answer(tool.WithOperator(w.ctx, "bo"), id, answer); err != nil {
		w.t.Errorf("%s: %v", w.name, err)
	}
}

// TestUnrecordedCall: a call that the journal does not get is not made, unless its tool may be called twice.
func TestUnrecordedCall(t *testing.T) {
	t.Parallel()
	yes := true
	g := open(t, settings(map[string]*site{"bank": newSite(t, func(s *site) {
		s.tool("pay", "Pay.", "", func(json.RawMessage) *mcp.CallToolResult { return text("paid") })
		s.add(&mcp.Tool{Name: "look", Description: "Look.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: yes}}, "", func(json.RawMessage) *mcp.CallToolResult { return text("seen") })
	})}), nil)
	g.Catalog.AwaitNamed(t.Context(), "from servers.bank import pay")
	w, err := journal.Create(t.TempDir(), journal.Header{ID: "e-1"}, nil, nil)
	if err == nil {
		err = w.Close() // no write works any more
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"pay": false, "look": true} {
		made := false
		c := tool.Call{Tool: tool.ID{Upstream: "bank", Name: name}}
		ctx := toolcall.Scope{Execution: &toolcall.Execution{ID: "e-1", Journal: w}, Attempt: g.Replay.Attempt(c)}.In(t.Context())
		_, err := g.Replay.Journal(func(context.Context, tool.Call) (tool.Result, error) {
			made = true
			return tool.Result{}, nil
		})(ctx, c)
		if made != want || (err == nil) != want {
			t.Errorf("%s: made %v, %v", name, made, err)
		}
	}
}
