package budget

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/tool"
)

// Large messages wait for room, and those that are half read do not wait for each other for ever.
func TestBudget(t *testing.T) {
	t.Parallel()
	budget := New(10 << 20)
	chunk := make([]byte, 64<<10)
	var all sync.WaitGroup
	var mu sync.Mutex
	most := int64(0)
	for range 6 {
		all.Go(func() {
			p := Buffer{Budget: budget}
			for range (8 << 20) / len(chunk) {
				p.Add(chunk)
				mu.Lock()
				most = max(most, budget.now())
				mu.Unlock()
			}
			message := p.Take()
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
		budget := New(1)
		chunk := make([]byte, largeMessage+1)
		var held [3]Buffer
		begin := time.Now()
		for i := range held {
			held[i].Budget = budget
			held[i].Add(chunk)
			budget.finishRead(&held[i])
		}
		if waited := time.Since(begin); waited != 2*roomTimeout {
			t.Errorf("waited %v", waited)
		}
		closed := make(chan struct{})
		close(closed)
		given := Buffer{Budget: budget, Done: closed}
		given.Add(chunk)
		if waited := time.Since(begin); waited != 2*roomTimeout {
			t.Errorf("waited %v, although nobody wants it", waited)
		}
		given.Drop()
		for i := range held {
			held[i].Drop()
		}
		if budget.now() != 0 {
			t.Errorf("%d bytes are left", budget.now())
		}
		time.Sleep(2 * freeDelay)
	})
}

// Messages that wait longer than the patience do not stop each other: each is read in one go when it is its turn.
func TestBudgetOfSlowMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(10 << 20).Share()
		const each, pause = 12, 700 * time.Millisecond
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		most := int64(0)
		for range 6 {
			all.Go(func() {
				p := Buffer{Budget: budget}
				for range each {
					p.Add(make([]byte, chunkSize))
					mu.Lock()
					most = max(most, budget.parent.now())
					mu.Unlock()
					time.Sleep(pause)
				}
				p.Drop()
			})
		}
		all.Wait()
		if took := time.Since(begin); took > 6*each*pause {
			t.Errorf("6 messages took %v, one after the other they take %v", took, 6*each*pause)
		}
		if most > 6*each<<20/2 {
			t.Errorf("%d bytes at once", most)
		}
		time.Sleep(2 * freeDelay)
	})
}

// One upstream that uses up its part does not hold up another, and what it uses counts for the process.
func TestBudgetOfAnUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process := New(4 * largeMessage)
		greedy, modest := process.Share(), process.Share()
		chunk := make([]byte, largeMessage+1)
		begin := time.Now()
		var held [3]Buffer
		for i := range held[:2] {
			held[i].Budget = greedy
			held[i].Add(chunk)
		}
		held[2].Budget = modest
		held[2].Add(chunk)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("waited %v", waited)
		}
		greedy.finishRead(&held[0])
		late := Buffer{Budget: greedy}
		late.Add(chunk)
		if waited := time.Since(begin); waited != roomTimeout {
			t.Errorf("one beyond the part of its upstream waited %v", waited)
		}
		late.Drop()
		for i := range held {
			held[i].Drop()
		}
		if process.now() != 0 || greedy.now() != 0 || modest.now() != 0 {
			t.Errorf("%d, %d, %d bytes are left", process.now(), greedy.now(), modest.now())
		}
		time.Sleep(2 * freeDelay)
	})
}

// What is made of a message counts as long as it is in use.
func TestBudgetKeepsCopies(t *testing.T) {
	t.Parallel()
	process := New(0)
	part := process.Share()
	result := tool.Result{Content: []tool.Content{{Text: strings.Repeat("x", 2*largeMessage)}, {Data: make([]byte, largeMessage+1)}, {Text: "short"}}}
	part.Keep(result)
	runtime.GC()
	if want := int64(3*largeMessage + 1); process.now() != want || part.now() != want {
		t.Errorf("%d and %d bytes count, want %d", process.now(), part.now(), want)
	}
	runtime.KeepAlive(result)
	for begin := time.Now(); process.now() != 0 || part.now() != 0; runtime.GC() {
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%d bytes are never given back", process.now())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (b *Budget) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
