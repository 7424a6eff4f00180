package upstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/upstream/backoff"
	"sallyport/internal/tool"
)

// TestRetryable: a call may be made again where it was not begun, or where the
// tool says that a second time does no harm; never else.
func TestRetryable(t *testing.T) {
	for name, want := range map[string]bool{
		"drop": false, "drop_read": true, "drop_same": true, // connection lost
		"wait": false, "wait_read": true, // no answer in time
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Settings{ID: "m"}, nil)
				defer s.Close()
				m := newMemory(s)
				if err := s.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := m.call(t.Context(), s, name, ""); err == nil || tool.AsError(err).Retryable != want {
					t.Errorf("%v: retryable is not %t", err, want)
				}
				synctest.Wait()
			})
		})
	}
}

// TestRetryableBeforeTheCall: nothing was sent to an upstream that is not there.
func TestRetryableBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m", Concurrency: 1}, nil)
		defer s.Close()
		s.dialer.dialCarrier = func(context.Context) (*carrier, error) { return nil, errors.New("no route") }
		for n := range 2 * backoff.ParkAfter {
			if err := s.Connect(t.Context()); err == nil || !tool.AsError(err).Retryable {
				t.Errorf("attempt %d: %v", n, err)
			}
			if n%2 == 1 { // every other one comes too soon
				time.Sleep(time.Until(s.State().RetryAt))
			}
		}
		if s.State().Status != Parked {
			t.Errorf("state %+v", s.State())
		}
		s.slots.TryAcquire(1)
		if _, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Name: "x"}}); tool.AsError(err).Kind != tool.Limit || !tool.AsError(err).Retryable {
			t.Errorf("queue: %v", err)
		}
	})
}

// TestNotRetryable: what only a person can mend, or another call.
func TestNotRetryable(t *testing.T) {
	for name, s := range map[string]*Session{
		"no program":              New(Settings{ID: "m", Command: "/no/such/program"}, nil),
		"not in the path":         New(Settings{ID: "m", Command: "no-such-program-here"}, nil),
		"settings with a problem": New(Settings{ID: "m", Problem: "no key"}, nil),
		"no such transport":       New(Settings{ID: "m", URL: "ftp://x"}, nil),
	} {
		for range 2 { // the second comes too soon
			if err := s.Connect(t.Context()); err == nil || tool.AsError(err).Retryable {
				t.Errorf("%s: %v is retryable", name, err)
			}
		}
		_ = s.Close()
		if err := s.Connect(t.Context()); err == nil || tool.AsError(err).Retryable {
			t.Errorf("closed: %v is retryable", err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{ID: "m"}, nil)
		defer s.Close()
		s.dialer.dialCarrier = func(context.Context) (*carrier, error) { return nil, &loginError{reason: "HTTP 401", remedy: "log in"} }
		for range 2 {
			if err := s.Connect(t.Context()); err == nil || tool.AsError(err).Retryable {
				t.Errorf("login: %v is retryable", err)
			}
		}
	})
}
