package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// stage is a gateway whose programs can be held up: the tool gate.wait answers when it is let.
type stage struct {
	*gateway.Gateway
	let chan struct{}
	// arrived has one for each call that has reached the upstream.
	arrived chan struct{}
}

func newStage(t *testing.T, change func(cfg *config.Config)) *stage {
	t.Helper()
	s := &stage{let: make(chan struct{}), arrived: make(chan struct{}, 100)}
	gate := newSite(t, func(site *site) {
		site.tool("wait", "Wait.", "", func(json.RawMessage) *mcp.CallToolResult {
			s.arrived <- struct{}{}
			s.wait()
			return text("gone on")
		})
	})
	cfg := withRunsc(t, settings(map[string]*site{"gate": gate, "calc": newSite(t, calc)}))
	change(cfg)
	s.Gateway = open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	s.Catalog.WaitConnected(t.Context())
	return s
}

// wait waits until it may go on. A test that has failed does not hang.
func (s *stage) wait() {
	select {
	case <-s.let:
	case <-time.After(30 * time.Second):
	}
}

// goOn lets what waits go on.
func (s *stage) goOn(t *testing.T) {
	t.Helper()
	select {
	case s.let <- struct{}{}:
	case <-time.After(time.Minute):
		t.Error("nothing waits")
	}
}

// start runs a program on behalf of somebody; what became of it comes later.
func (s *stage) start(ctx context.Context, p execution.Program) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		e, err := s.Executor.Execute(ctx, p)
		done <- ended{e, err}
	}()
	return done
}

type ended struct {
	execution.Result
	err error
}

// waitLive waits until an execution can be seen that is so.
func waitLive(ctx context.Context, t *testing.T, s *stage, what string, so func(executor.Live) bool) (found executor.Live) {
	t.Helper()
	testutil.Eventually(t, what, 15*time.Second, func() bool {
		for _, l := range s.Executor.Running(ctx) {
			if so(l) {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

func inState(state string) func(executor.Live) bool {
	return func(l executor.Live) bool { return l.State == state }
}

const holdUp = "from servers.gate import wait\nwait()\n"

// TestLive looks at programs while they run, and stops them.
func TestLive(t *testing.T) {
	s := newStage(t, func(cfg *config.Config) {
		cfg.Sandbox.Parallel, cfg.Sandbox.Queue, cfg.Sandbox.QueueWait = 1, 1, time.Minute
		cfg.HTTP.Tokens = config.Secrets{"ci": "sixteen-Letters-7"}
		cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "sums", Tools: []string{"calc.fail"}, Then: policy.Ask}}}
		cfg.Approval.Wait = 20 * time.Second
	})
	ann, bob := tool.WithPrincipal(t.Context(), "ann"), tool.WithPrincipal(t.Context(), "bob")
	operator := tool.WithOperator(bob, "bob")
	var told atomic.Int64
	defer s.Executor.WatchRunning(func() { told.Add(1) })()

	t.Run("as it goes on", func(t *testing.T) {
		var mu sync.Mutex
		var heard strings.Builder
		done := s.start(ann, execution.Program{Code: "import sys\nfrom servers.calc import add\nadd(1, 2)\nprint('sixteen-', end='', flush=True)\nprint('Letters-7 \\x1b[31mred\\x1b[0m')\nprint('aside', file=sys.stderr)\n" + holdUp + "print('end', end='')", Session: "s",
			OnOutput: func(p execution.Printed) {
				mu.Lock()
				defer mu.Unlock()
				heard.WriteString(p.Stream + " " + p.Text + "|")
			}})
		l := waitLive(ann, t, s, "both calls", func(l executor.Live) bool { return len(l.Calls) == 2 })
		if l.State != executor.LiveRunning || l.Principal != "ann" || l.Session != "s" || l.Language != "python" || l.Made != 2 || !strings.Contains(l.Code, "add(1, 2)") || time.Since(l.Started) > time.Minute {
			t.Errorf("%+v", l)
		}
		if c := l.Calls; c[0].Outcome != "ok" || c[0].Duration <= 0 || c[1].Outcome != "" || c[1].Tool.String() != "gate.wait" || c[1].Begun.Before(c[0].Begun) {
			t.Errorf("calls %+v", c)
		}
		l = waitLive(ann, t, s, "what is printed", func(l executor.Live) bool { return len(l.Output) == 2 })
		for _, p := range l.Output {
			if want := map[string]string{"stdout": "[hidden] red\n", "stderr": "aside\n"}[p.Stream]; p.Text != want {
				t.Errorf("%+v, want %q", p, want)
			}
		}
		if l.Bytes != int64(len("[hidden] red\naside\n")) {
			t.Errorf("%d bytes", l.Bytes)
		}
		if got := len(s.Executor.Running(operator)); got != 1 {
			t.Errorf("an operator sees %d", got)
		}
		if _, ok := s.Executor.LiveOf(bob, l.ID); ok || len(s.Executor.Running(bob)) != 0 {
			t.Error("another one sees it")
		}
		wantError(t, s.Executor.CancelExecution(bob, l.ID), tool.NotFound, "no execution")
		s.goOn(t)
		e := <-done
		if e.err != nil || e.Status != sandbox.OK || e.Stdout.Text != "[hidden] \x1b[31mred\x1b[0m\nend" {
			t.Errorf("%+v", e)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := heard.String(); !strings.Contains(got, "stdout [hidden]") || !strings.HasSuffix(got, "stdout end|") {
			t.Errorf("heard %q", got)
		}
	})

	t.Run("canceled", func(t *testing.T) {
		for len(s.arrived) > 0 {
			<-s.arrived
		}
		done := s.start(ann, execution.Program{Code: holdUp})
		l := waitLive(ann, t, s, "a call", func(l executor.Live) bool { return len(l.Calls) == 1 })
		<-s.arrived // it is on record before it leaves
		var gap atomic.Bool
		quit, looked := make(chan struct{}), make(chan struct{})
		go func() { // from now on it is there or on record, at any moment
			defer close(looked)
			for {
				if _, ok := s.Executor.LiveOf(ann, l.ID); !ok {
					if _, err := s.History.Record(ann, l.ID); err != nil {
						gap.Store(true)
					}
				}
				select {
				case <-quit:
					return
				default:
				}
			}
		}()
		begin := time.Now()
		if err := s.Executor.CancelExecution(operator, l.ID); err != nil {
			t.Fatal(err)
		}
		e := <-done
		if took := time.Since(begin); took > 10*time.Second || e.Status != sandbox.Canceled || !strings.Contains(e.Text(), "stopped by bob") {
			t.Errorf("after %s: %s", took, e.Text())
		}
		close(quit)
		<-looked
		s.goOn(t) // the upstream still waits
		if gap.Load() {
			t.Error("for a moment it was nowhere")
		}
		if r, err := s.History.Record(ann, l.ID); err != nil || r.Status != sandbox.Canceled {
			t.Errorf("%+v, %v", r, err)
		}
		wantError(t, s.Executor.CancelExecution(ann, l.ID), tool.Invalid, "has ended already")
		wantError(t, s.Executor.CancelExecution(ann, "e-none"), tool.NotFound)
	})

	t.Run("in turn", func(t *testing.T) {
		first := s.start(ann, execution.Program{Code: holdUp})
		waitLive(ann, t, s, "a call", func(l executor.Live) bool { return len(l.Calls) == 1 })
		second := s.start(ann, execution.Program{Code: "2"})
		l := waitLive(ann, t, s, "one that waits", inState(executor.LiveQueued))
		e, err := s.Executor.Execute(ann, execution.Program{Code: "3"})
		wantError(t, err, tool.Busy, "too many programs are running", "try again in")
		if tool.AsError(err).After < time.Second || e.ID != "" {
			t.Errorf("%+v, %+v", e, err)
		}
		if err := s.Executor.CancelExecution(ann, l.ID); err != nil {
			t.Error(err)
		}
		if e := <-second; e.err != nil || e.Status != sandbox.Canceled {
			t.Errorf("%+v", e)
		}
		if r, err := s.History.Record(ann, l.ID); err != nil || r.Status != sandbox.Canceled {
			t.Errorf("%+v, %v", r, err)
		}
		third := s.start(bob, execution.Program{Code: "3"})
		waitLive(bob, t, s, "one that waits", inState(executor.LiveQueued))
		s.goOn(t)
		if e := <-first; e.Status != sandbox.OK {
			t.Errorf("%+v", e)
		}
		if e := <-third; e.Status != sandbox.OK || e.Queued <= 0 {
			t.Errorf("%+v", e)
		}
	})

	t.Run("while it waits for a person another runs", func(t *testing.T) {
		somebody := &person{decide: func(string) string { s.wait(); return "once" }}
		first := s.start(ann, execution.Program{Code: "from servers.calc import fail\ntry: fail()\nexcept Exception as e: print(e)", Peer: somebody})
		waitLive(ann, t, s, "one that waits for a person", inState(executor.LiveWaiting))
		if e, err := s.Executor.Execute(bob, execution.Program{Code: "1"}); err != nil || e.Status != sandbox.OK {
			t.Errorf("%+v, %v", e, err)
		}
		s.goOn(t)
		if e := <-first; e.Status != sandbox.OK || !strings.Contains(e.Stdout.Text, "ledger") {
			t.Errorf("%s", e.Text())
		}
		if running, waiting := s.Executor.Load(); running != 0 || waiting != 0 {
			t.Errorf("%d run, %d wait", running, waiting)
		}
	})
	if told.Load() == 0 {
		t.Error("nobody was told of any change")
	}
}
