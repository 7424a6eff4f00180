package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sallyport/internal/access"
)

var (
	errStopping = errors.New("the gateway is stopping")
	errRevoked  = errors.New("the token is no longer valid")
)

// flight tracks the requests in flight, so that they can be canceled.
type flight struct {
	log     *slog.Logger
	mu      sync.Mutex
	leaving bool
	all     map[*flying]bool
	landed  chan struct{} // closed when none is left; nil unless someone waits
}

// flying is one request.
type flying struct {
	end context.CancelCauseFunc
	// lasting says that it may change something, so it gets time to finish when the gateway stops.
	lasting bool
	visitor access.Visitor
}

func newFlight(log *slog.Logger) *flight { return &flight{log: log, all: map[*flying]bool{}} }

// around tracks each request until it is answered.
func (f *flight) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		one := &flying{end: end, lasting: r.Method != http.MethodGet && r.Method != http.MethodHead}
		one.visitor, _ = access.VisitorOf(ctx)
		f.begin(one)
		defer f.over(one)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (f *flight) begin(one *flying) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[one] = true; f.leaving && !one.lasting {
		one.end(errStopping)
	}
}

func (f *flight) over(one *flying) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.all, one); len(f.all) == 0 && f.landed != nil {
		close(f.landed)
		f.landed = nil
	}
}

// leave cancels the read-only requests: some of them never end by themselves.
func (f *flight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = true
	for one := range f.all {
		if !one.lasting {
			one.end(errStopping)
		}
	}
}

// revoke cancels the requests with revoked or expired tokens.
func (f *flight) revoke(tokens *access.Tokens) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for one := range f.all {
		v := one.visitor
		if !tokens.Alive(v.Token) || !v.Expires.IsZero() && !now.Before(v.Expires) {
			one.end(errRevoked)
		}
	}
}

// drain waits until no request is left. When ctx ends, it cancels the remaining ones and waits briefly.
func (f *flight) drain(ctx context.Context) {
	done := f.emptied()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	f.mu.Lock()
	count := len(f.all)
	for one := range f.all {
		one.end(errStopping)
	}
	f.mu.Unlock()
	f.log.Warn("requests canceled, the grace period is over", "requests", count)
	select {
	case <-done:
	case <-time.After(5 * time.Second): // an execution stops in less
	}
}

func (f *flight) emptied() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := make(chan struct{})
	if len(f.all) == 0 {
		close(done)
	} else {
		f.landed = done
	}
	return done
}
