package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestServiceOfOlderWorker: a worker that speaks an older protocol is not asked for a service, whatever it says that it has.
func TestServiceOfOlderWorker(t *testing.T) {
	t.Parallel()
	for want, there := range map[bool]greeting{
		true:  {Compat: Here(), Services: []string{"a", "b"}},
		false: {Compat: Compat{Oldest: 2, Newest: 3, Host: hostInterface}, Services: []string{"a", "b"}},
	} {
		asked := make(chan string, 1)
		l := &hostileWorker{
			hello:   func(g *greeting) { g.Compat, g.Services = there.Compat, there.Services },
			service: func(_ *requestStream, r *http.Request) { asked <- r.URL.Path },
		}
		c := l.client(t)
		s, err := c.Serve(t.Context(), "b")
		if (err == nil) != want || err != nil && !errors.Is(err, ErrNoService) {
			t.Errorf("protocol %d: %v", there.Newest, err)
		}
		if err == nil {
			if path := <-asked; path != "/service/b" {
				t.Errorf("it is asked for %s", path)
			}
			_ = s.Close()
		}
	}
}

// TestServiceHostile: what a worker does to a service hurts neither the client nor its caller.
func TestServiceHostile(t *testing.T) {
	t.Parallel()
	for name, behave := range map[string]func(a *requestStream, r *http.Request){
		"ends at once":    func(*requestStream, *http.Request) {},
		"is silent":       func(_ *requestStream, r *http.Request) { <-r.Context().Done() },
		"answers late":    func(a *requestStream, r *http.Request) { <-r.Context().Done(); _, _ = a.Write([]byte("late")) },
		"writes for ever": func(a *requestStream, _ *http.Request) { floodStream(a) },
		"refuses":         func(a *requestStream, _ *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &hostileWorker{hello: func(g *greeting) { g.Services = []string{"a"} }, service: behave}
			c := l.client(t)
			s, err := c.Serve(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			wrote := make(chan error, 1)
			go func() {
				_, err := s.Write(make([]byte, 8<<20)) // more than the windows have room for
				wrote <- err
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			defer context.AfterFunc(ctx, func() { _ = s.Close() })()
			if n, err := io.Copy(io.Discard, s); n > 1<<40 || ctx.Err() == nil && err == nil && name == "is silent" {
				t.Errorf("%d bytes, %v", n, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := <-wrote; err == nil {
				t.Error("all was written")
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func floodStream(a *requestStream) {
	for {
		if _, err := a.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}
