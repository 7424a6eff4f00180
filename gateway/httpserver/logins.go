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
	// loginInterval is the time after which a request from the same address counts as another login.
	loginInterval = time.Hour
	// maxLogins is the maximum number of remembered logins.
	maxLogins = 4096
)

// logins records logins and refused tokens in the audit log, but not every request, so that a flood does not fill
// the log. A nil logins does nothing.
type logins struct {
	auditor Auditor
	limiter *rate.Limiter

	mu      sync.Mutex
	seen    map[string]time.Time
	dropped int // refusals that were not recorded
}

func newLogins(auditor Auditor) *logins {
	if auditor == nil {
		return nil
	}
	return &logins{auditor: auditor, limiter: rate.NewLimiter(rate.Every(10*time.Second), 10), seen: map[string]time.Time{}}
}

// record records the login of a principal. The auditor logs an error, and later calls of the principal are refused.
func (l *logins) record(ctx context.Context, principal string, r *http.Request) {
	if l == nil || !l.isNew(principal+"\x00"+remoteIP(r)) {
		return
	}
	_ = l.auditor.Audit(tool.WithPrincipal(ctx, principal), audit.Event{Kind: audit.Login, From: remoteIP(r), Outcome: "ok"})
}

func (l *logins) isNew(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if last, ok := l.seen[who]; ok && now.Sub(last) < loginInterval {
		return false
	}
	if len(l.seen) >= maxLogins {
		clear(l.seen)
	}
	l.seen[who] = now
	return true
}

// recordRefusal records a refused token.
func (l *logins) recordRefusal(ctx context.Context, r *http.Request) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if !l.limiter.Allow() {
		l.dropped++
		l.mu.Unlock()
		return
	}
	e := audit.Event{Kind: audit.LoginRefused, From: remoteIP(r), Outcome: "denied"}
	if l.dropped > 0 {
		e.Note = fmt.Sprintf("and %d more since the last one", l.dropped)
	}
	l.dropped = 0
	l.mu.Unlock()
	_ = l.auditor.Audit(ctx, e)
}

// remoteIP returns the client address of a request without the port.
func remoteIP(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
