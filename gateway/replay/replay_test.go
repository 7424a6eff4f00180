package replay

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

func pastCall(name, arguments string, change func(*journal.Call)) journal.Call {
	c := journal.Call{Tool: tool.ID{Upstream: "up", Name: name}, Arguments: arguments, State: journal.Ended, Asked: true,
		Result: tool.Result{Content: []tool.Content{{Type: "text", Text: name + arguments}}}}
	if change != nil {
		change(&c)
	}
	return c
}

func failedWith(kind tool.Kind, message string) func(*journal.Call) {
	return func(c *journal.Call) { c.Result, c.Err = tool.Result{}, &tool.Error{Kind: kind, Message: message} }
}

func made(name, arguments string) *toolcall.Attempt {
	return &toolcall.Attempt{Tool: tool.ID{Upstream: "up", Name: name}, Arguments: arguments}
}

func never(journal.Call) bool { return false }

// TestFates: what ended is answered, and so is a failure that the program caught. What it ended with is made again where the
// upstream said that it failed. What may have been done is in doubt.
func TestFates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call journal.Call
		want action
	}{
		"ended":                   {pastCall("a", "1", nil), actionAnswer},
		"ended last":              {pastCall("a", "1", func(c *journal.Call) { c.Last = true }), actionAnswer},
		"no end is known":         {pastCall("a", "1", func(c *journal.Call) { c.State = journal.Begun }), actionConfirm},
		"refused":                 {pastCall("a", "1", func(c *journal.Call) { c.State = journal.Refused }), actionRepeat},
		"its result is lost":      {pastCall("a", "1", func(c *journal.Call) { c.Lost = true }), actionConfirm},
		"a failure it survived":   {pastCall("a", "1", failedWith(tool.Timeout, "timed out")), actionAnswer},
		"caught, then nothing":    {pastCall("a", "1", func(c *journal.Call) { c.Last = true; failedWith(tool.Upstream, "gone")(c) }), actionAnswer},
		"quoted by the fault":     {pastCall("a", "1", failedWith(tool.Failed, "disk")), actionAnswer},
		"left by a person":        {pastCall("a", "1", func(c *journal.Call) { c.Decision = journal.Skipped }), actionAnswer},
		"it may have been done":   {pastCall("a", "1", failedWith(tool.Upstream, "the disk is full")), actionConfirm},
		"the tool's no, uncaught": {pastCall("a", "1", failedWith(tool.Failed, "the disk is full")), actionRepeat},
		"the tool's no, survived": {pastCall("a", "1", func(c *journal.Call) { c.Result.IsError = true }), actionAnswer},
	} {
		if got := actionOf(test.call, history.End{FaultType: "ToolError", Fault: "the disk is full"}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	lost := history.End{Record: history.Record{Status: execution.Interrupted}}
	for last, want := range map[bool]action{false: actionAnswer, true: actionConfirm} {
		canceled := pastCall("a", "1", func(c *journal.Call) { c.Last = last; failedWith(tool.Canceled, "canceled")(c) })
		if got := actionOf(canceled, lost); got != want {
			t.Errorf("canceled with its machine, last %v: %v", last, got)
		}
	}
}

// TestReplayInOrder: equal calls get the answers in their order, those that failed for good come after those with an answer.
func TestReplayInOrder(t *testing.T) {
	t.Parallel()
	list := []journal.Call{
		pastCall("poll", "1", func(c *journal.Call) { c.State = journal.Refused }),
		pastCall("poll", "1", func(c *journal.Call) { c.Definition = "first" }),
		pastCall("poll", "1", func(c *journal.Call) { c.Definition = "second" }),
	}
	r, carried := newReplayer(&journal.Contents{Header: journal.Header{ID: "e-1"}, Calls: list}, history.End{}, true, nil)
	if len(carried) != 3 || carried[0].Optional != true || carried[1].Optional {
		t.Errorf("carried: %+v", carried)
	}
	for _, want := range []string{"first", "second", ""} {
		p, _, err := r.take(t.Context(), made("poll", "1"), never)
		if err != nil || p == nil || p.Definition != want {
			t.Errorf("%+v, %v, want %q", p, err, want)
		}
	}
	if p, _, err := r.take(t.Context(), made("poll", "1"), never); p != nil || err != nil {
		t.Errorf("a fourth one: %+v, %v", p, err)
	}
}

// TestDivergence: a new call waits while the program still asks for what it did before, however slowly, and fails a second
// after it has ceased to.
func TestDivergence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var list []journal.Call
		for i := range 3 {
			list = append(list, pastCall("a", strconv.Itoa(i), nil))
		}
		contents := &journal.Contents{Header: journal.Header{ID: "e-1"}, Calls: list}
		for missing := range 2 {
			r, _ := newReplayer(contents, history.End{}, true, nil)
			start := time.Now()
			var work sync.WaitGroup
			work.Go(func() {
				p, _, err := r.take(t.Context(), made("b", "9"), never)
				if missing == 0 && (p != nil || err != nil) {
					t.Errorf("a new call after all that were due: %v, %v", p, err)
				}
				if e := tool.AsError(err); missing == 1 && (err == nil || e.Kind != tool.Invalid || !strings.Contains(e.Message, "call 3 differs from the journal of e-1: was up.a(2), now up.b(9)")) {
					t.Errorf("diverged: %v", err)
				}
			})
			for i := range 3 - missing {
				time.Sleep(900 * time.Millisecond)
				if p, _, err := r.take(t.Context(), made("a", strconv.Itoa(i)), never); p == nil || err != nil {
					t.Errorf("call %d: %v, %v", i, p, err)
				}
			}
			work.Wait()
			if took := time.Since(start); took != 2700*time.Millisecond+time.Duration(missing)*100*time.Millisecond {
				t.Errorf("with %d missing it took %v", missing, took)
			}
			if _, _, err := r.take(t.Context(), made("c", "9"), never); (err != nil) != (missing == 1) {
				t.Errorf("the next one: %v", err)
			}
		}
		r, _ := newReplayer(contents, history.End{}, false, nil)
		if p, _, err := r.take(t.Context(), made("b", "9"), never); p != nil || err != nil {
			t.Errorf("with new code: %v, %v", p, err)
		}
		r, _ = newReplayer(contents, history.End{}, true, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := r.take(ctx, made("b", "9"), never); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	})
}
