package upstream

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Large messages wait for room, and those that are half read do not wait for each other for ever.
func TestBudget(t *testing.T) {
	t.Parallel()
	budget := NewBudget(10 << 20)
	chunk := make([]byte, 64<<10)
	var all sync.WaitGroup
	var mu sync.Mutex
	most := int64(0)
	for range 6 {
		all.Go(func() {
			p := parcel{budget: budget}
			for range (8 << 20) / len(chunk) {
				p.add(chunk)
				mu.Lock()
				most = max(most, budget.now())
				mu.Unlock()
			}
			message := p.take()
			if len(message) != 8<<20 {
				t.Errorf("%d bytes", len(message))
			}
			runtime.KeepAlive(message)
		})
	}
	all.Wait()
	if most > 10<<20+9<<20 {
		t.Errorf("%d bytes at once", most)
	}
	for begin := time.Now(); budget.now() != 0; runtime.GC() {
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%d bytes are never given back", budget.now())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Messages that somebody holds for ever hold up others for a while only.
func TestBudgetHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(1)
		chunk := make([]byte, largeMessage+1)
		var held [3]parcel
		begin := time.Now()
		for i := range held {
			held[i].budget = budget
			held[i].add(chunk)
			budget.read(&held[i])
		}
		if waited := time.Since(begin); waited != 2*roomPatience {
			t.Errorf("waited %v", waited)
		}
		closed := make(chan struct{})
		close(closed)
		given := parcel{budget: budget, done: closed}
		given.add(chunk)
		if waited := time.Since(begin); waited != 2*roomPatience {
			t.Errorf("waited %v, although nobody wants it", waited)
		}
		given.drop()
		for i := range held {
			held[i].drop()
		}
		if budget.now() != 0 {
			t.Errorf("%d bytes are left", budget.now())
		}
		time.Sleep(2 * freeDelay)
	})
}

func (b *Budget) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
