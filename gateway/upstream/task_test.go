package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func openTasks(t *testing.T, modern bool, timeout time.Duration) (*upstreamtest.Tasks, *upstream.Session) {
	t.Helper()
	server := &upstreamtest.Tasks{Modern: modern}
	web := tlstest.NewServer(t, server)
	t.Cleanup(web.Close)
	return server, open(t, upstream.Settings{ID: "mem", URL: web.URL, Timeout: timeout}, &upstream.Options{Asks: true})
}

func work(as string) tool.Call { return toolCall("work", fmt.Sprintf(`{"as":%q}`, as)) }

// taskCase is a task and what its call comes to: the result, or the kind and a part of the error. other is that of the
// extension of 2026-07-28, "" for the same, "-" for a task that there is none of.
type taskCase struct {
	as, want, other string
	kind, otherKind tool.Kind
	canceled        bool
}

func taskCases() []taskCase {
	return []taskCase{
		{as: "good", want: "done"},
		{as: "plain", want: "plain"},
		{as: "bad", want: "no luck"},
		{as: "early", want: "done", other: "-"}, // the result comes before the end
		{as: "late", want: "done", other: "-"},  // a result is refused before the end
		{as: "ask", want: `{"action":"accept","content":{"n":9007199254740993}}`},
		{as: "other", want: "another task", kind: tool.Upstream, canceled: true},
		{as: "unknown", want: "unknown status of a task: sleeping", kind: tool.Upstream, canceled: true},
		{as: "gone", want: "lost the task: Task not found", kind: tool.Upstream, canceled: true},
		{as: "none", want: "the task has no result", kind: tool.Upstream},
		{as: "failed", want: "the task failed: disk full", kind: tool.Failed},
		{as: "refused", want: "no such topic", other: "the task failed: disk full", kind: tool.Invalid, otherKind: tool.Failed},
		{as: "canceled", want: "canceled the task: by an operator", kind: tool.Failed},
		{as: "long", want: "an invalid task", kind: tool.Upstream},
		{as: "odd", want: "an invalid task", kind: tool.Upstream},
	}
}

func TestTasks(t *testing.T) {
	for _, modern := range []bool{false, true} {
		server, s := openTasks(t, modern, time.Minute)
		for _, c := range taskCases() {
			if modern && c.other == "-" {
				continue
			}
			if modern && c.other != "" {
				c.want, c.kind = c.other, c.otherKind
			}
			t.Run(fmt.Sprintf("%s modern %v", c.as, modern), func(t *testing.T) { c.run(t, server, s) })
		}
	}
}

func (c taskCase) run(t *testing.T, server *upstreamtest.Tasks, s *upstream.Session) {
	t.Helper()
	p, call := &peer{}, work(c.as)
	call.Params = map[string]json.RawMessage{"task": raw(`{"ttl":1}`), "_meta": raw(`{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}`)}
	result, err := p.run(t, s, call)
	if c.kind == "" {
		if got := must(t, result, err); got.Text() != c.want || strings.Contains(string(got.Raw), "related-task") != (c.as == "plain") {
			t.Errorf("result %s", got.Raw)
		}
		if asked := len(p.asked); asked != map[string]int{"ask": 1}[c.as] {
			t.Errorf("asked %d times", asked)
		}
	} else {
		wantError(t, err, c.kind, c.want)
	}
	if c.as == "good" {
		want := "[notifications/progress {\"message\":\"step 1\",\"progress\":1} notifications/progress {\"message\":\"step 2\",\"progress\":2}]"
		if got := fmt.Sprint(p.told); got != want {
			t.Errorf("told %s", got)
		}
	}
	if c.canceled {
		testutil.Eventually(t, "the task is canceled", 30*time.Second, func() bool { return server.Canceled(c.as) })
	} else if server.Canceled(c.as) {
		t.Error("an ended task is canceled")
	}
}

// TestTaskStatusNotification: an upstream that sends the status of a task is polled at once, and not after the time that it asks for
// between two polls. One that does not is polled as before.
func TestTaskStatusNotification(t *testing.T) {
	for _, modern := range []bool{false, true} {
		server, s := openTasks(t, modern, time.Minute)
		server.Pushes = true
		connect(t, s)
		p := &peer{}
		go func() {
			testutil.Eventually(t, "the gateway listens", 30*time.Second, func() bool { return server.Listens() == 1 && server.Calls() == 1 })
			server.Release()
		}()
		begin := time.Now()
		result, err := p.run(t, s, work("told"))
		if got := must(t, result, err); got.Text() != "done" || time.Since(begin) > 30*time.Second || server.Polls("told") > 2 {
			t.Errorf("modern %v: %s after %v and %d polls", modern, got.Raw, time.Since(begin), server.Polls("told"))
		}
		if modern {
			testutil.Eventually(t, "nothing listens", 30*time.Second, func() bool { return server.Listens() == 0 })
		}
	}
}

// TestEndlessTask: a task that never ends fails at the time limit of the call, or when its caller leaves. It is canceled then.
func TestEndlessTask(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		server, s := openTasks(t, modern, 10*time.Second)
		connect(t, s)
		p := &peer{}
		_, err := p.run(t, s, work("endless"))
		wantError(t, err, tool.Timeout, "gave no answer")
		polls := server.Polls("endless")
		if told := fmt.Sprint(p.told); len(told) > 1200*min(polls, 10*20) { // of each second at most 20
			t.Errorf("told %d bytes after %d polls", len(told), polls)
		}
		testutil.Eventually(t, "the task is canceled", 30*time.Second, func() bool { return server.Canceled("endless") })

		server, s = openTasks(t, modern, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			testutil.Eventually(t, "it is polled", 30*time.Second, func() bool { return server.Polls("held") > 0 })
			cancel()
		}()
		_, err = s.Call(ctx, work("held"))
		wantError(t, err, tool.Canceled)
		testutil.Eventually(t, "the task is canceled", 30*time.Second, func() bool { return server.Canceled("held") })
	}
}

// TestPlainCallOfATool that can be a task, but need not.
func TestPlainCallOfATool(t *testing.T) {
	for _, modern := range []bool{false, true} {
		server, s := openTasks(t, modern, time.Minute)
		if got := call(t, s, "plain", `{}`).Text(); got != "plain" || server.Calls() != 0 {
			t.Errorf("%s, %d tasks", got, server.Calls())
		}
	}
}

// TestKnownTask: with the id of its task a call is not made again, but waited for. A task that is lost is an error.
func TestKnownTask(t *testing.T) {
	for _, modern := range []bool{false, true} {
		server, s := openTasks(t, modern, time.Minute)
		first := work("good")
		first.OnTask = func(id string) { first.Task = id }
		if _, err := s.Call(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		again, err := s.Call(t.Context(), first)
		if got := must(t, again, err).Text(); got != "done" || server.Calls() != 1 || first.Task != "t-good" {
			t.Errorf("%s, %d calls, task %q", got, server.Calls(), first.Task)
		}
		first.Task = "t-none-such"
		_, err = s.Call(t.Context(), first)
		if e := wantError(t, err, tool.Upstream, "lost the task"); e.Retryable {
			t.Error("it may be repeated")
		}
	}
}
