package approval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/approval"
	"sallyport/internal/store"
)

// testStore is a book of a test, with what it puts on record.
type testStore struct {
	*approval.Store
	t      *testing.T
	kept   *store.Bucket
	record []approval.State
	refuse error
}

func open(t *testing.T) *testStore {
	t.Helper()
	kept, err := store.Memory().Bucket("approvals", approval.Limits())
	if err != nil {
		t.Fatal(err)
	}
	d := &testStore{t: t, kept: kept}
	d.restart()
	return d
}

// restart is what a new process finds.
func (d *testStore) restart() {
	d.Store = approval.NewStore(d.kept, &approval.Options{Record: func(_ context.Context, a approval.Approval) error {
		d.record = append(d.record, a.State)
		return d.refuse
	}})
}

func (d *testStore) ask(r approval.Request) approval.Approval {
	d.t.Helper()
	a, err := d.Ask(d.t.Context(), r)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

func (d *testStore) answer(id string, answer approval.Answer, want error) {
	d.t.Helper()
	if _, err := d.Answer(d.t.Context(), id, answer); !errors.Is(err, want) {
		d.t.Errorf("answer %s: %v, want %v", id, err, want)
	}
}

// finds says what is decided about a call: "" for nothing.
func (d *testStore) finds(what string, r approval.Request, own string, want approval.State) {
	d.t.Helper()
	a, found, err := d.Find(d.t.Context(), r, own)
	if err != nil || found != (want != "") || found && a.State != want {
		d.t.Errorf("%s: %s, %t, %v; want %q", what, a.State, found, err, want)
	}
}

func write() approval.Request {
	return approval.Request{Principal: "ann", Session: "s", Execution: "e-1", Root: "e-1", Upstream: "fs", Tool: "fs.write", Digest: "d1", Rule: "writes"}
}

func with(change func(*approval.Request)) approval.Request {
	r := write()
	change(&r)
	return r
}

// others are calls that what was allowed for write does not cover, whatever its scope.
func others() map[string]approval.Request {
	return map[string]approval.Request{
		"another principal": with(func(r *approval.Request) { r.Principal = "bob" }),
		"another tool":      with(func(r *approval.Request) { r.Tool, r.Digest = "fs.remove", "d2" }),
	}
}

func TestScopes(t *testing.T) {
	arguments := with(func(r *approval.Request) { r.Digest = "d2" })
	resumed := with(func(r *approval.Request) { r.Execution = "e-2" })
	another := with(func(r *approval.Request) { r.Execution, r.Root, r.Digest = "e-3", "e-3", "d3" })
	elsewhere := with(func(r *approval.Request) { r.Execution, r.Root, r.Session = "e-4", "e-4", "s2" })
	rule := with(func(r *approval.Request) { r.Rule, r.Digest = "other", "d2" })
	for _, c := range []struct {
		scope                                 approval.Scope
		arguments, resumed, another, another2 approval.State
	}{
		{approval.Once, "", approval.Allowed, "", ""},
		{approval.Execution, approval.Allowed, approval.Allowed, "", ""},
		{approval.Session, approval.Allowed, approval.Allowed, approval.Allowed, ""},
	} {
		d := open(t)
		a := d.ask(write())
		if !strings.HasPrefix(a.ID, "a-") || len(a.ID) < 28 {
			t.Errorf("id %q", a.ID)
		}
		d.finds("before an answer", write(), a.ID, "")
		d.answer(a.ID, approval.Answer{Allow: true, Scope: c.scope, By: "cli"}, nil)
		d.StopWaiting(a.ID)
		for what, r := range others() {
			d.finds(what, r, "", "")
		}
		d.finds("other arguments", arguments, "", c.arguments)
		d.finds("under another rule", rule, "", "")
		d.finds("another execution", another, "", c.another)
		d.finds("another session", elsewhere, "", c.another2)
		d.finds("resumed", resumed, "", c.resumed)
		if c.scope == approval.Once {
			d.finds("a second time", resumed, "", "")
		}
	}
}

func TestDenied(t *testing.T) {
	d := open(t)
	a := d.ask(write())
	d.answer(a.ID, approval.Answer{Allow: false, Scope: approval.Session, By: "ann", Note: "no\x1b[31m\u202e way"}, nil)
	d.finds("it", write(), a.ID, approval.Denied)
	d.finds("again", write(), "", approval.Denied)
	d.finds("resumed", with(func(r *approval.Request) { r.Execution = "e-2" }), "", approval.Denied)
	d.finds("other arguments", with(func(r *approval.Request) { r.Digest = "d2" }), "", "")
	d.finds("another execution", with(func(r *approval.Request) { r.Execution, r.Root = "e-3", "e-3" }), "", "")
	if got, _ := d.Get(t.Context(), a.ID); got.Note != "no way" || got.By != "ann" {
		t.Errorf("%+v", got)
	}
}

// TestAnsweredOnce: of many answers at once one counts, and an unknown id has none.
func TestAnsweredOnce(t *testing.T) {
	d := open(t)
	a := d.ask(write())
	var work sync.WaitGroup
	var counted atomic.Int32
	for i := range 8 {
		work.Go(func() {
			if _, err := d.Answer(t.Context(), a.ID, approval.Answer{Allow: i%2 == 0}); err == nil {
				counted.Add(1)
			} else if !errors.Is(err, approval.ErrAnswered) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if counted.Load() != 1 {
		t.Errorf("%d answers counted", counted.Load())
	}
	for _, id := range []string{"", "a-", "a-" + strings.Repeat("a", 26), "../" + a.ID, a.ID + " "} {
		d.answer(id, approval.Answer{Allow: true}, approval.ErrNotFound)
	}
	b := d.ask(write())
	d.answer(b.ID, approval.Answer{Allow: true, Scope: "forever"}, approval.ErrInvalid)
	c := d.ask(approval.Request{Principal: "ann", Tool: "fs.write", Digest: "d"})
	d.answer(c.ID, approval.Answer{Allow: true, Scope: approval.Execution}, approval.ErrInvalid)
}

// TestUsedOnce: of many calls at once one gets what was allowed once, and of those that wait the one that it was said to.
func TestUsedOnce(t *testing.T) {
	d := open(t)
	first, second := d.ask(write()), d.ask(write())
	d.answer(first.ID, approval.Answer{Allow: true}, nil)
	d.finds("the other one that waits", write(), second.ID, "")
	d.finds("one that does not wait", write(), "", "")
	d.StopWaiting(first.ID)
	var work sync.WaitGroup
	var allowed atomic.Int32
	for range 8 {
		work.Go(func() {
			if _, found, err := d.Find(t.Context(), write(), second.ID); err != nil {
				t.Error(err)
			} else if found {
				allowed.Add(1)
			}
		})
	}
	work.Wait()
	if allowed.Load() != 1 {
		t.Errorf("%d calls went through", allowed.Load())
	}
	if err := d.Restore(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	if err := d.Restore(t.Context(), second.ID); err != nil { // which waits
		t.Error(err)
	}
	d.finds("what was not made", write(), "", approval.Allowed)
	d.finds("nothing else", write(), second.ID, "")
}

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		late, soon, session := d.ask(write()), d.ask(with(func(r *approval.Request) { r.Digest = "d2" })), d.ask(with(func(r *approval.Request) { r.Tool = "fs.move" }))
		for _, a := range []approval.Approval{late, soon, session} {
			d.StopWaiting(a.ID)
		}
		d.answer(session.ID, approval.Answer{Allow: true, Scope: approval.Session}, nil)
		time.Sleep(59 * time.Minute)
		d.answer(soon.ID, approval.Answer{Allow: true}, nil)
		d.finds("a session that was idle", with(func(r *approval.Request) { r.Tool = "fs.move" }), "", "")
		time.Sleep(time.Minute)
		d.answer(late.ID, approval.Answer{Allow: true}, approval.ErrExpired)
		if a, _ := d.Get(t.Context(), late.ID); a.State != approval.Expired {
			t.Errorf("%+v", a)
		}
		time.Sleep(59 * time.Minute)
		d.finds("an approval that is over", with(func(r *approval.Request) { r.Digest = "d2" }), "", "")

		used := d.ask(with(func(r *approval.Request) { r.Tool = "fs.move" }))
		d.answer(used.ID, approval.Answer{Allow: true, Scope: approval.Session}, nil)
		for range 5 {
			time.Sleep(29 * time.Minute)
			d.finds("a session that goes on", with(func(r *approval.Request) { r.Tool = "fs.move" }), "", approval.Allowed)
		}
	})
}

// TestRestart: what waits and what was allowed is there afterwards, but for sessions, which are not.
func TestRestart(t *testing.T) {
	d := open(t)
	waits, once, session := d.ask(write()), d.ask(with(func(r *approval.Request) { r.Digest = "d2" })), d.ask(with(func(r *approval.Request) { r.Tool = "fs.move" }))
	d.answer(once.ID, approval.Answer{Allow: true}, nil)
	d.answer(session.ID, approval.Answer{Allow: true, Scope: approval.Session}, nil)
	d.restart()
	d.finds("of the session", with(func(r *approval.Request) { r.Tool = "fs.move" }), "", "")
	d.finds("allowed before", with(func(r *approval.Request) { r.Digest = "d2" }), "", approval.Allowed)
	d.answer(waits.ID, approval.Answer{Allow: true}, nil)
	d.finds("allowed after", write(), "", approval.Allowed)
	d.restart()
	d.finds("used before", write(), "", "")
	list, err := d.List(t.Context())
	if err != nil || len(list) != 3 || list[0].ID != session.ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTakenUp: an execution that resumes another, or a call that is made again, does not ask twice what nobody has answered.
func TestTakenUp(t *testing.T) {
	d := open(t)
	a := d.ask(write())
	if b := d.ask(write()); b.ID == a.ID { // for one that waits, too
		t.Error("two that wait share a question")
	}
	d.StopWaiting(a.ID)
	resumed := d.ask(with(func(r *approval.Request) { r.Execution = "e-2" }))
	if resumed.ID != a.ID || resumed.Execution != "e-2" || !resumed.Expires.Equal(a.Expires) {
		t.Errorf("%+v, then %+v", a, resumed)
	}
	d.StopWaiting(a.ID)
	for what, r := range others() {
		if d.ask(r).ID == a.ID {
			t.Errorf("%s takes it up", what)
		}
	}
}

// TestFlood: one principal cannot fill the book for another.
func TestFlood(t *testing.T) {
	d := open(t)
	for i := range 64 {
		d.ask(with(func(r *approval.Request) { r.Digest = fmt.Sprint(i) }))
	}
	if _, err := d.Ask(t.Context(), write()); !errors.Is(err, approval.ErrMany) {
		t.Errorf("the 65th: %v", err)
	}
	bob := d.ask(with(func(r *approval.Request) { r.Principal = "bob" }))
	for range 4200 {
		a := d.ask(with(func(r *approval.Request) { r.Principal = "eve" }))
		if err := d.Withdraw(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
	}
	d.answer(bob.ID, approval.Answer{Allow: true}, nil)
	if list, err := d.List(t.Context()); err != nil || len(list) > 4096 {
		t.Errorf("%d are kept, %v", len(list), err)
	}
}

// TestNoRecordNoAnswer: what cannot be put on record does not count.
func TestNoRecordNoAnswer(t *testing.T) {
	d := open(t)
	a := d.ask(write())
	d.refuse = errors.New("disk full")
	d.answer(a.ID, approval.Answer{Allow: true}, d.refuse)
	if _, err := d.Ask(t.Context(), write()); !errors.Is(err, d.refuse) {
		t.Error(err)
	}
	d.refuse = nil
	d.finds("not answered", write(), a.ID, "")
	d.answer(a.ID, approval.Answer{Allow: true}, nil)
	d.refuse = errors.New("disk full")
	if _, found, err := d.Find(t.Context(), write(), a.ID); found || !errors.Is(err, d.refuse) {
		t.Errorf("%t, %v", found, err)
	}
}

// TestSharedRecords: two processes share a bucket. A change by one of them that is no answer does not stop the other.
func TestSharedRecords(t *testing.T) {
	kept, err := store.Memory().Bucket("approvals", approval.Limits())
	if err != nil {
		t.Fatal(err)
	}
	process := func(name string) *testStore {
		alive := func(context.Context, string) bool { return true }
		return &testStore{t: t, kept: kept, Store: approval.NewStore(kept, &approval.Options{Self: name, Alive: alive})}
	}
	one, two := process("one"), process("two")
	answered, withdrawn := one.ask(write()), one.ask(with(func(r *approval.Request) { r.Rule = "another" }))
	if _, err := two.Get(t.Context(), answered.ID); err != nil { // it reads all records
		t.Fatal(err)
	}
	one.StopWaiting(answered.ID)
	one.StopWaiting(withdrawn.ID)
	two.answer(answered.ID, approval.Answer{Allow: true, By: "ann"}, nil)
	one.answer(answered.ID, approval.Answer{By: "bob"}, approval.ErrAnswered)
	if err := two.Withdraw(t.Context(), withdrawn.ID); err != nil {
		t.Error(err)
	}
	one.finds("the answer at the other process", write(), "", approval.Allowed)
	if _, decided, err := two.Find(t.Context(), write(), ""); decided || err != nil {
		t.Errorf("an approval for once was used twice: %v, %v", decided, err)
	}
}
