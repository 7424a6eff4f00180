package catalog

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sallyport/gateway/upstream"
	"sallyport/internal/sleep"
)

const (
	// minStartupWait is how long after the start a caller that names no upstream waits for all of them.
	// After that, it waits until no upstream has arrived for maxArrivalGap: if others arrive, the rest may only be slow.
	minStartupWait = 2 * time.Second
	maxArrivalGap  = time.Second
	// pollInterval is how often arrivals are checked.
	pollInterval = 20 * time.Millisecond
)

// Await waits until the definitions of an upstream have been read, or for "" those of most upstreams: it stops waiting when none has
// arrived for a while. It does not wait for an upstream with definitions in the cache.
func (c *Catalog) Await(ctx context.Context, upstream string) {
	if upstream == "" {
		readiness{c}.waitMostConnected(ctx)
	} else {
		readiness{c}.waitConnected(ctx, upstream)
	}
}

// readiness waits for upstreams.
type readiness struct{ *Catalog }

// waitMostConnected waits while upstreams keep arriving, so that an unresponsive one does not block callers. It does not wait for one that
// has never answered in time.
func (c readiness) waitMostConnected(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, *c.connectDeadline.Load())
	defer cancel()
	begun := c.connectDeadline.Load().Add(-c.opts.ConnectWait)
	last, left := begun, -1
	for now := time.Now(); ; now = time.Now() {
		unseen := slices.DeleteFunc(c.pendingMembers(), func(m *member) bool { return m.silent.Load() && !isReady(m) })
		waiting := len(unseen)
		if waiting == 0 {
			return
		}
		if now.Sub(begun) > minStartupWait && now.Sub(last) > maxArrivalGap && !slices.ContainsFunc(unseen, isReady) {
			c.rememberSilent(unseen)
			return
		}
		if waiting != left && left >= 0 {
			last = now
		}
		left = waiting
		if c.Closed() || sleep.For(ctx, pollInterval) != nil {
			return
		}
	}
}

// rememberSilent records that upstreams have not answered in time, so that the next callers, also in later processes, do not wait for them.
func (c readiness) rememberSilent(members []*member) {
	for _, m := range members {
		m.silent.Store(true)
		c.cache.setSilent(*m.cfg.Load(), true)
	}
}

// isReady reports whether an upstream is connected, so that its tools are searchable soon.
func isReady(m *member) bool { return m.state().Status == upstream.Ready }

// PendingUpstreams returns the ids of the upstreams that callers still wait for; none after the deadline.
func PendingUpstreams(c *Catalog) []string {
	if time.Now().After(*c.connectDeadline.Load()) {
		return nil
	}
	return readiness{c}.pendingIDs()
}

// AwaitNamed waits for the upstreams that a program names. For a program that imports skills it waits as [Catalog.Await] does for
// "": which tools a skill calls is not in the program's text.
func (c *Catalog) AwaitNamed(ctx context.Context, code string) {
	for _, id := range (readiness{c}).pendingIDs() {
		if mentions(code, id) {
			readiness{c}.waitConnected(ctx, id)
		}
	}
	if mentions(code, "skills") {
		readiness{c}.waitMostConnected(ctx)
	}
}

// mentions reports whether a word occurs in a text.
func mentions(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		at += i + len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:at-len(word)])
		after, _ := utf8.DecodeRuneInString(text[at:])
		if !inWord(before) && !inWord(after) {
			return true
		}
	}
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// pendingIDs returns the ids of the upstreams that no snapshot shows yet.
func (c readiness) pendingIDs() (ids []string) {
	for _, m := range c.pendingMembers() {
		ids = append(ids, m.id)
	}
	return ids
}

func (c readiness) pendingMembers() (all []*member) {
	for _, m := range c.roster.Load().members {
		select {
		case <-m.shown:
		case <-m.ended:
		default:
			all = append(all, m)
		}
	}
	return all
}

// WaitConnected waits until every upstream has been tried once, or the deadline has passed.
func (c *Catalog) WaitConnected(ctx context.Context) { readiness{c}.waitConnected(ctx, "") }

// waitConnected is Settle for one upstream, or for all for "".
func (c readiness) waitConnected(ctx context.Context, id string) {
	ctx, cancel := context.WithDeadline(ctx, *c.connectDeadline.Load())
	defer cancel()
	wrappers(c).waitShown(ctx, id)
}

// resetDeadline resets the deadline until which callers wait for first connections.
func (c readiness) resetDeadline() {
	until := time.Now().Add(c.opts.ConnectWait)
	c.connectDeadline.Store(&until)
}
