package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"sallyport/internal/access"
)

var (
	errStopping = errors.New("the gateway is stopping")
	errRevoked  = errors.New("the token is no longer valid")
)

// inflight tracks the requests in flight, so that they can be canceled.
type inflight struct {
	log      *slog.Logger
	mu       sync.Mutex
	stopping bool
	all      map[*inflightRequest]bool
	empty    chan struct{} // closed when none is left; nil unless someone waits
}

// inflightRequest is one request.
type inflightRequest struct {
	end context.CancelCauseFunc
	// mutating says that it may change something, so it gets time to finish when the gateway stops.
	mutating bool
	visitor  access.Caller
}

func newInflight(log *slog.Logger) *inflight {
	return &inflight{log: log, all: map[*inflightRequest]bool{}}
}

// track tracks each request until it is answered.
func (f *inflight) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		one := &inflightRequest{end: end, mutating: r.Method != http.MethodGet && r.Method != http.MethodHead}
		one.visitor, _ = access.CallerFrom(ctx)
		f.begin(one)
		defer f.finish(one)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (f *inflight) begin(one *inflightRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[one] = true; f.stopping && !one.mutating {
		one.end(errStopping)
	}
}

func (f *inflight) finish(one *inflightRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.all, one); len(f.all) == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
}

// cancelReads cancels the read-only requests: some of them never end by themselves.
func (f *inflight) cancelReads() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	for one := range f.all {
		if !one.mutating {
			one.end(errStopping)
		}
	}
}

// revoke cancels the requests with revoked or expired tokens.
func (f *inflight) revoke(ctx context.Context, tokens *access.Tokens) {
	alive := map[string]bool{}
	for _, id := range f.tokens() { // without the lock, as a store may be asked
		alive[id] = tokens.Alive(ctx, id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for one := range f.all {
		v := one.visitor
		known, checked := alive[v.Token]
		if checked && !known || !v.Expires.IsZero() && !now.Before(v.Expires) {
			one.end(errRevoked)
		}
	}
}

// tokens returns the ids of the tokens of all requests.
func (f *inflight) tokens() (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.all {
		if !slices.Contains(ids, one.visitor.Token) {
			ids = append(ids, one.visitor.Token)
		}
	}
	return ids
}

// drain waits until no request is left. When ctx ends, it cancels the remaining ones and waits briefly.
func (f *inflight) drain(ctx context.Context) {
	done := f.waitEmpty()
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

func (f *inflight) waitEmpty() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := make(chan struct{})
	if len(f.all) == 0 {
		close(done)
	} else {
		f.empty = done
	}
	return done
}
