// Package backoff delays the attempts to connect to an upstream that fails.
package backoff

import (
	"math/rand/v2"
	"time"
)

const (
	minDelay = 200 * time.Millisecond
	maxDelay = 30 * time.Second
	// ParkAfter is how many consecutive failures, without a working connection between them, park an upstream.
	ParkAfter = 5
	// ParkMin is the first delay of a parked upstream.
	ParkMin = time.Minute
	// ParkMax is the longest one, without the jitter.
	ParkMax = 24 * time.Minute
)

// Backoff delays attempts: none before the first, then 200 ms doubling, then, parked, one minute doubling to 24, with a
// jitter of up to a quarter so that upstreams are not tried at the same time. The zero value is that of no failure.
type Backoff struct {
	// Failures is the number of failures, Parks that of the delays while parked; 0 is not parked.
	Failures, Parks int
	// Login says that the last failure requires a login, Permanent that it is permanent.
	Login, Permanent bool
	// Until is when the next attempt may be made.
	Until    time.Time
	forgiven bool // a lost session since the last good link
}

// Forgive reports whether a lost session needs no delay although its link did not work yet: once, since a restarted server
// loses its sessions.
func (b *Backoff) Forgive(sessionLost bool) bool {
	first := !b.forgiven && b.Failures == 0 && sessionLost
	b.forgiven = b.forgiven || first
	return first
}

// Fail records a failure. One that requires a login parks at once.
func (b *Backoff) Fail(login, permanent bool) {
	b.Failures++
	b.Login, b.Permanent = login, permanent
	wait := min(minDelay<<min(b.Failures-1, 16), maxDelay)
	if login || b.Parks > 0 || b.Failures >= ParkAfter {
		wait = min(ParkMin<<min(b.Parks, 16), ParkMax)
		b.Parks++
	}
	b.Until = time.Now().Add(wait + rand.N(wait/4))
}
