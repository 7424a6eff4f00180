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
	// arriving is how long after the start a caller that names no upstream waits for all of them.
	// After that, it waits until no upstream has arrived for between.
	arriving = 4 * time.Second
	between  = 2 * time.Second
	// glance is how often arrivals are checked.
	glance = 20 * time.Millisecond
)

// Await waits until the definitions of an upstream have been read, or for "" those of most upstreams: it stops waiting when none has
// arrived for a while. It does not wait for an upstream with definitions in the cache.
func (c *Catalog) Await(ctx context.Context, upstream string) {
	if upstream == "" {
		arrivals{c}.settleMost(ctx)
	} else {
		arrivals{c}.settle(ctx, upstream)
	}
}

// arrivals waits for upstreams.
type arrivals struct{ *Catalog }

// settleMost waits while upstreams keep arriving, so that an unresponsive one does not block callers.
func (c arrivals) settleMost(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, *c.patience.Load())
	defer cancel()
	begun := c.patience.Load().Add(-c.opts.Settle)
	last, left := begun, -1
	for now := time.Now(); ; now = time.Now() {
		unseen := c.unseen()
		waiting := len(unseen)
		if waiting == 0 || now.Sub(begun) > arriving && now.Sub(last) > between && !slices.ContainsFunc(unseen, isReady) {
			return
		}
		if waiting != left && left >= 0 {
			last = now
		}
		left = waiting
		if c.Closed() || sleep.For(ctx, glance) != nil {
			return
		}
	}
}

// isReady reports whether an upstream is connected, so that its tools are searchable soon.
func isReady(m *member) bool { return m.state().Status == upstream.Ready }

// Awaited returns the ids of the upstreams that callers still wait for; none after the deadline.
func (c *Catalog) Awaited() []string {
	if time.Now().After(*c.patience.Load()) {
		return nil
	}
	return arrivals{c}.untried()
}

// AwaitNamed waits for the upstreams that a program names. For a program that imports skills it waits as [Catalog.Await] does for
// "": which tools a skill calls is not in the program's text.
func (c *Catalog) AwaitNamed(ctx context.Context, code string) {
	for _, id := range (arrivals{c}).untried() {
		if mentions(code, id) {
			arrivals{c}.settle(ctx, id)
		}
	}
	if mentions(code, "skills") {
		arrivals{c}.settleMost(ctx)
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

// untried returns the ids of the upstreams that no snapshot shows yet.
func (c arrivals) untried() (ids []string) {
	for _, m := range c.unseen() {
		ids = append(ids, m.id)
	}
	return ids
}

func (c arrivals) unseen() (all []*member) {
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

// Settle waits until every upstream has been tried once, or the deadline has passed.
func (c *Catalog) Settle(ctx context.Context) { arrivals{c}.settle(ctx, "") }

// settle is Settle for one upstream, or for all for "".
func (c arrivals) settle(ctx context.Context, id string) {
	ctx, cancel := context.WithDeadline(ctx, *c.patience.Load())
	defer cancel()
	wrappers(c).shown(ctx, id)
}

// wait resets the deadline until which callers wait for first connections.
func (c arrivals) wait() {
	until := time.Now().Add(c.opts.Settle)
	c.patience.Store(&until)
}
