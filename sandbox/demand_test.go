//go:build linux

package sandbox

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestDemand: how many should wait follows how many come together, within its bounds, and goes down when few do.
func TestDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(&Host{}, Pool{Min: 1, Max: 4})
		k := kind{interpreter: Python}
		want := func(n int, when string) {
			t.Helper()
			if got := p.idleFor(k).peak; got != n {
				t.Errorf("%s: %d are wanted, not %d", when, got, n)
			}
		}
		want(1, "at first")
		for range 3 {
			p.recordDemand(k)
			time.Sleep(2 * demandWindow)
		}
		want(1, "one after the other")
		for range 3 {
			p.recordDemand(k)
		}
		want(3, "three at once")
		for range 20 {
			p.recordDemand(k)
		}
		want(4, "twenty at once")
		for n := 3; n >= 1; n-- {
			time.Sleep(shrinkAfter + time.Second)
			p.shrink(time.Now())
			want(n, "calm")
		}
		time.Sleep(shrinkAfter + time.Second)
		p.shrink(time.Now())
		want(1, "long calm")
		time.Sleep(unusedAfter)
		p.shrink(time.Now())
		if len(p.idle) != 0 {
			t.Error("a kind that nobody uses is kept for")
		}
		p.idleFor(k).pinned = true
		time.Sleep(2 * unusedAfter)
		p.shrink(time.Now())
		if len(p.idle) != 1 {
			t.Error("a kind that was warmed is forgotten")
		}
	})
}

// TestWantedWithinMemory: all that wait together stay within the budget.
func TestWantedWithinMemory(t *testing.T) {
	p := newPool(&Host{reuse: &reuse{}}, Pool{Min: 2, Max: 4, Memory: 3 * instanceCost})
	for _, i := range []Interpreter{Python, Node} {
		p.idleFor(kind{interpreter: i})
	}
	started := 0
	for k, ok := p.mostNeeded(); ok; k, ok = p.mostNeeded() {
		p.idleFor(k).starting++
		if started++; started > 10 {
			break
		}
	}
	if started != 3 {
		t.Errorf("%d are started, not 3", started)
	}
}
