package gateway

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
	// arriving is how long after the start those who name no upstream wait for all, and
	// between is for how long they go on while one after the other arrives.
	arriving = 4 * time.Second
	between  = 2 * time.Second
	// glance is how soon an arrival is seen.
	glance = 20 * time.Millisecond
)

// Await waits for one upstream, by its id, or for "" as those do who name none: no longer than upstreams arrive one soon after the
// other. Nobody waits for one whose definitions are in the cache.
func (g *Gateway) Await(ctx context.Context, upstream string) {
	if upstream == "" {
		g.settleMost(ctx)
	} else {
		g.settle(ctx, upstream)
	}
}

// settleMost waits for the upstreams on behalf of somebody who names none: no longer than they arrive one soon after the
// other, so that one that does not answer keeps nobody.
func (g *Gateway) settleMost(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, *g.patient.Load())
	defer cancel()
	begun := g.patient.Load().Add(-g.opts.Settle)
	last, left := begun, -1
	for now := time.Now(); ; now = time.Now() {
		unseen := g.catalog.unseen()
		waiting := len(unseen)
		if waiting == 0 || now.Sub(begun) > arriving && now.Sub(last) > between && !slices.ContainsFunc(unseen, isReady) {
			return
		}
		if waiting != left && left >= 0 {
			last = now
		}
		left = waiting
		if g.catalog.over() || sleep.For(ctx, glance) != nil {
			return
		}
	}
}

// isReady reports whether an upstream has answered, so that its tools are searched soon.
func isReady(m *member) bool { return m.state().Status == upstream.Ready }

// settleFor waits for the upstreams that a program names, and for no other. What a skill of its calls is not to be seen
// in it.
func (g *Gateway) settleFor(ctx context.Context, code string) {
	for _, id := range g.catalog.untried() {
		if mentions(code, id) {
			g.settle(ctx, id)
		}
	}
	if mentions(code, "skills") {
		g.settleMost(ctx)
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
