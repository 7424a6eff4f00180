package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/backoff"
	"sallyport/internal/tool"
)

// memory makes a session's upstream a real server of the SDK in memory, so that
// its time can be simulated.
type memory struct {
	server  *mcp.Server
	begun   atomic.Int32
	stopped atomic.Int32
	hold    chan struct{} // while there is one, "wait" waits for it
	running atomic.Int32  // of "wait"
	most    atomic.Int32
	mu      sync.Mutex
	order   []string
	cut     func() // ends the last connection
}

func newMemory(s *Session) *memory {
	m := &memory{server: mcp.NewServer(&mcp.Implementation{Name: "memory", Version: "1"}, nil), hold: make(chan struct{})}
	yes := true
	m.add("wait", nil, m.wait)
	m.add("drop", nil, m.drop)
	m.add("drop_read", &mcp.ToolAnnotations{ReadOnlyHint: true}, m.drop)
	m.add("drop_same", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &yes}, m.drop)
	m.add("fail_read", &mcp.ToolAnnotations{ReadOnlyHint: true}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		m.note("fail_read")
		return nil, errors.New("no such row")
	})
	m.add("wait_read", &mcp.ToolAnnotations{ReadOnlyHint: true}, m.wait)
	s.dialer.dialCarrier = m.dial
	return m
}

func (m *memory) add(name string, hints *mcp.ToolAnnotations, handler mcp.ToolHandler) {
	m.server.AddTool(&mcp.Tool{Name: name, Annotations: hints, InputSchema: json.RawMessage(`{"type":"object"}`)}, handler)
}

func (m *memory) dial(ctx context.Context) (*carrier, error) {
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := m.server.Connect(ctx, theirs, nil)
	if err != nil {
		return nil, err
	}
	conn, err := ours.Connect(ctx)
	if err != nil {
		return nil, err
	}
	m.begun.Add(1)
	m.mu.Lock()
	m.cut = func() { _ = conn.Close() }
	m.mu.Unlock()
	return &carrier{conn: conn, stop: func() {
		_ = session.Close()
		m.stopped.Add(1)
	}}, nil
}

func (m *memory) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order = append(m.order, what)
}

func (m *memory) events() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.order)
}

func (m *memory) wait(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	m.note(req.Params.Name + string(req.Params.Arguments))
	n := m.running.Add(1)
	defer m.running.Add(-1)
	for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
	}
	select {
	case <-m.hold:
	case <-ctx.Done():
	}
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
}

// drop breaks the connection before it answers.
func (m *memory) drop(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	m.note(req.Params.Name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut()
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
}

func (m *memory) call(ctx context.Context, s *Session, name, args string) error {
	_, err := s.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "m", Name: name}, Args: json.RawMessage(args)})
	return err
}

// storm calls an upstream once a second by each of four callers for a day, and
// returns when it was tried.
func storm(t *testing.T, s *Session, dial func() error) (tries []time.Duration) {
	t.Helper()
	begin := time.Now()
	s.dialer.dialCarrier = func(context.Context) (*carrier, error) {
		tries = append(tries, time.Since(begin))
		return nil, dial()
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			time.Sleep(rand.N(time.Second))
			for time.Since(begin) < 24*time.Hour {
				if _, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "m", Name: "x"}}); err == nil {
					t.Error("a call went through")
				}
				time.Sleep(time.Second)
			}
		})
	}
	callers.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return tries
}

func TestBackoffLimitsAttempts(t *testing.T) {
	for name, err := range map[string]error{"dead": errors.New("connection refused"), "login": &loginError{reason: "HTTP 401 Unauthorized", remedy: "log in"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := storm(t, New(Settings{ID: "m"}, nil), func() error { return err })
				t.Logf("%d attempts in 24 h, the first at %v", len(tries), tries[:8])
				if n := len(tries); n < 45 || n > 70 { // every 24 to 30 min, after the first few
					t.Errorf("%d attempts in 24 h", n)
				}
				quick := map[string]int{"dead": backoff.ParkAfter, "login": 1}[name]
				for i := quick; i < len(tries); i++ {
					if gap := tries[i] - tries[i-1]; gap < min(backoff.ParkMin<<(i-quick), backoff.ParkMax) || gap > 30*time.Minute+2*time.Second {
						t.Errorf("attempt %d comes %v after the last", i+1, gap)
					}
				}
			})
		})
	}
}

func TestParkedSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m"}, nil)
		defer s.Close()
		var tries int
		s.dialer.dialCarrier = func(context.Context) (*carrier, error) {
			tries++
			return nil, errors.New("no database")
		}
		for range backoff.ParkAfter {
			time.Sleep(time.Until(s.State().RetryAt))
			_ = s.Connect(t.Context())
		}
		state := s.State()
		if wait := time.Until(state.RetryAt); state.Status != Parked || state.Login || wait < backoff.ParkMin || tries != backoff.ParkAfter {
			t.Errorf("after %d tries, for %v: %+v", tries, wait, state)
		}
		want := "cannot connect to upstream m: no database (parked after 5 failures: check the upstream; next attempt in 2 min)"
		if err := s.Connect(t.Context()); err == nil || err.Error() != want || tool.AsError(err).Kind != tool.Upstream {
			t.Errorf("error %v, want %s", err, want)
		}
		m := newMemory(s)
		s.Reset()
		if got := s.State(); got.Status != Idle || got.Error != "" || !got.RetryAt.IsZero() {
			t.Errorf("after Reset: %+v", got)
		}
		if err := s.Connect(t.Context()); err != nil || m.begun.Load() != 1 {
			t.Errorf("after Reset: %v", err)
		}
	})
}

// One that takes connections but dies before it was of any use is parked too.
func TestCrashLoopIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m"}, nil)
		defer s.Close()
		m := newMemory(s)
		for range backoff.ParkAfter {
			time.Sleep(time.Until(s.State().RetryAt))
			if err := m.call(t.Context(), s, "drop", ""); err == nil {
				t.Error("drop answers")
			}
			synctest.Wait()
		}
		if got := s.State(); got.Status != Parked || m.begun.Load() != backoff.ParkAfter {
			t.Errorf("after %d connections: %+v", m.begun.Load(), got)
		}
	})
}

func TestLoginIsParkedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m"}, nil)
		defer s.Close()
		s.dialer.dialCarrier = func(context.Context) (*carrier, error) {
			return nil, &loginError{reason: "HTTP 401 Unauthorized", remedy: "a person has to run: sallyport auth login m"}
		}
		want := "upstream m needs authorization: HTTP 401 Unauthorized (a person has to run: sallyport auth login m)"
		for range 3 {
			if err := s.Connect(t.Context()); err == nil || err.Error() != want || tool.AsError(err).Kind != tool.Denied {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		if got := s.State(); got.Status != Parked || !got.Login || got.Error != want {
			t.Errorf("state %+v", got)
		}
	})
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m", Idle: 10 * time.Minute, Timeout: time.Hour, Concurrency: 1}, nil)
		defer s.Close()
		m := newMemory(s)
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for range 2 { // one is under way, one waits for its turn
			calls.Go(func() {
				if err := m.call(t.Context(), s, "wait", ""); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(30 * time.Minute)
		if got := s.State().Status; got != Ready || m.stopped.Load() != 0 {
			t.Errorf("status %s with a call under way", got)
		}
		close(m.hold)
		calls.Wait()
		time.Sleep(10*time.Minute - time.Millisecond)
		if got := s.State().Status; got != Ready {
			t.Errorf("status %s before its time", got)
		}
		time.Sleep(time.Second)
		if got := s.State(); got.Status != Idle || got.Error != "" || m.stopped.Load() != 1 || got.Tools == 0 {
			t.Errorf("state %+v, stopped %d times, want one that is idle", got, m.stopped.Load())
		}
		if err := m.call(t.Context(), s, "wait", ""); err != nil || m.begun.Load() != 2 {
			t.Errorf("the next call: %v, begun %d times", err, m.begun.Load())
		}
	})
}

func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m", Concurrency: 2, Timeout: time.Minute}, nil)
		defer s.Close()
		m := newMemory(s)
		var calls sync.WaitGroup
		for i := range 6 {
			args := string(rune('0' + i))
			calls.Go(func() {
				if err := m.call(t.Context(), s, "wait", `{"n":`+args+`}`); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 6 {
			time.Sleep(time.Second)
			m.hold <- struct{}{}
			synctest.Wait()
		}
		calls.Wait()
		order := m.events()
		if !slices.IsSorted(order[2:]) || len(order) != 6 || m.most.Load() != 2 {
			t.Errorf("order %q, %d at once", order, m.most.Load())
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m", Concurrency: 1, Timeout: time.Minute}, nil)
		defer s.Close()
		m := newMemory(s)
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends := make(chan error, 2)
		begin := time.Now()
		for range 2 {
			go func() { ends <- m.call(t.Context(), s, "wait", "") }()
			time.Sleep(time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if e := tool.AsError(m.call(ctx, s, "wait", "")); e.Kind != tool.Timeout || time.Since(begin) > 8*time.Second {
			t.Errorf("a caller with less patience: %v", e)
		}
		if e := tool.AsError(<-ends); e.Kind != tool.Timeout || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), e)
		}
		// The time of the second begins when it is sent.
		if e := tool.AsError(<-ends); e.Kind != tool.Timeout || time.Since(begin) != 2*time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), e)
		}
		s.slots.TryAcquire(1) // as a call that never ends
		want := "upstream m was busy for 60s, at its limit of 1 calls at once (make fewer calls at once)"
		if e := tool.AsError(m.call(t.Context(), s, "wait", "")); e.Kind != tool.Limit || e.Error() != want {
			t.Errorf("%v, want %s", e, want)
		}
	})
}

func TestRepeatedOnce(t *testing.T) {
	tests := map[string]struct{ runs, links int }{
		"drop": {1, 1}, "drop_read": {2, 2}, "drop_same": {2, 2}, // connection lost, both times
		"fail_read": {1, 1}, "wait_read": {1, 1}, // an error, and a time limit
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Settings{ID: "m"}, nil)
				defer s.Close()
				m := newMemory(s)
				if err := s.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // the link counts as good
				if err := m.call(t.Context(), s, name, ""); err == nil && name != "fail_read" {
					t.Error("no error")
				}
				synctest.Wait()
				if got := len(m.events()); got != want.runs || int(m.begun.Load()) != want.links {
					t.Errorf("%d runs over %d links, want %+v", got, m.begun.Load(), want)
				}
			})
		})
	}
}

// Settings with a problem start nothing, and say why.
func TestSettingsWithAProblem(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	s := New(Settings{ID: "a", Command: "touch", Args: []string{marker}, Problem: "the variable X is not set"}, nil)
	t.Cleanup(func() { _ = s.Close() })
	const want = "cannot connect to upstream a: the variable X is not set"
	if state := s.State(); state.Status != Parked || state.Error != want {
		t.Errorf("state %+v", state)
	}
	s.Reset()
	_, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "a", Name: "x"}})
	if e := tool.AsError(err); e == nil || e.Message != want || e.Hint == "" || s.Connect(t.Context()) == nil {
		t.Errorf("call: %v", err)
	}
	if _, err := os.Stat(marker); err == nil || s.State().Status != Parked {
		t.Errorf("it was started, or %v", s.State())
	}
}
