package httpserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// Auditor records events on behalf of the caller in ctx.
type Auditor interface {
	Audit(ctx context.Context, e audit.Event) error
}

const (
	// loginAgain is the time after which a request from the same address counts as another login.
	loginAgain = time.Hour
	// maxLogins is the maximum number of remembered logins.
	maxLogins = 4096
)

// logins records logins and refused tokens in the audit log, but not every request, so that a flood does not fill
// the log. A nil logins does nothing.
type logins struct {
	auditor Auditor
	refusal *rate.Limiter

	mu      sync.Mutex
	seen    map[string]time.Time
	dropped int // refusals that were not recorded
}

func newLogins(auditor Auditor) *logins {
	if auditor == nil {
		return nil
	}
	return &logins{auditor: auditor, refusal: rate.NewLimiter(rate.Every(10*time.Second), 10), seen: map[string]time.Time{}}
}

// in records the login of a principal. The auditor logs an error, and later calls of the principal are refused.
func (l *logins) in(ctx context.Context, principal string, r *http.Request) {
	if l == nil || !l.isNew(principal+"\x00"+from(r)) {
		return
	}
	_ = l.auditor.Audit(tool.WithPrincipal(ctx, principal), audit.Event{Kind: audit.Login, From: from(r), Outcome: "ok"})
}

func (l *logins) isNew(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if last, ok := l.seen[who]; ok && now.Sub(last) < loginAgain {
		return false
	}
	if len(l.seen) >= maxLogins {
		clear(l.seen)
	}
	l.seen[who] = now
	return true
}

// refused records a refused token.
func (l *logins) refused(ctx context.Context, r *http.Request) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if !l.refusal.Allow() {
		l.dropped++
		l.mu.Unlock()
		return
	}
	e := audit.Event{Kind: audit.LoginRefused, From: from(r), Outcome: "denied"}
	if l.dropped > 0 {
		e.Note = fmt.Sprintf("and %d more since the last one", l.dropped)
	}
	l.dropped = 0
	l.mu.Unlock()
	_ = l.auditor.Audit(ctx, e)
}

// from returns the client address of a request without the port.
func from(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
