package access

import (
	"context"
	"errors"
	"time"
)

// Renewal is how the caller of a session is read again, as its account or its groups may have changed at the provider.
type Renewal struct {
	// Every is the interval.
	Every time.Duration
	// State is what the provider needs to read it again. It is secret.
	State []byte
	// Provider reads it.
	Provider Provider
}

// Provider is where the person of a session signed in. It is safe for concurrent use.
type Provider interface {
	// Renew returns the caller as it is now, and the new state. The session ends if the error is [ErrEnded]. After another error the
	// request is refused, and the next one tries again.
	Renew(ctx context.Context, state []byte) (Caller, []byte, error)
	// End is called when the person logs out.
	End(ctx context.Context, state []byte)
}

// ErrEnded reports that a session must end.
var ErrEnded = errors.New("the session has ended at the provider")

const (
	// renewTimeout bounds the wait for a provider.
	renewTimeout = 10 * time.Second
	// retryInterval is the time after a failure within which the provider is not asked again.
	retryInterval = 2 * time.Second
)

func opened(v Caller, renewal *Renewal, now time.Time) *session {
	one := &session{caller: v, started: now, lastUsed: now}
	if renewal != nil {
		own := *renewal
		one.renewal, one.due = &own, now.Add(renewal.Every)
	}
	return one
}

// visitor returns the caller of a request. A request that lasts longer than the interval ends with it.
func (one *session) visitor() Caller {
	v := one.caller
	if one.renewal != nil {
		v.Expires = one.due
	}
	return v
}

// renew reads the caller again, or waits until another request has done so, and reports whether the session may be looked up
// again. It is called with mu held, and releases it for a time.
func (s *Sessions) renew(ctx context.Context, one *session) bool {
	if wait := one.renewing; wait != nil {
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		s.mu.Lock()
		return ctx.Err() == nil && !time.Now().Before(one.retry)
	}
	if time.Now().Before(one.retry) {
		return false
	}
	done := make(chan struct{})
	one.renewing = done
	s.mu.Unlock()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
	begun := time.Now()
	v, state, err := one.renewal.Provider.Renew(limited, one.renewal.State)
	cancel()
	s.mu.Lock()
	one.renewing = nil
	close(done)
	switch {
	case err == nil:
		v.By = BySession
		one.caller, one.renewal.State, one.due = v, state, begun.Add(one.renewal.Every)
		return true
	case errors.Is(err, ErrEnded):
		one.ended = true
		return true
	}
	one.retry = time.Now().Add(retryInterval)
	return false
}
