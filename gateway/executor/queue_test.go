package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/tool"
)

const (
	// crowd is the longest queue that settings may have.
	crowd = 10_000
	// The programs of one principal, and those of each of ten others.
	floodPrograms, otherPrograms, others = 9_000, 100, 10
	// programTime is how long each program runs.
	programTime = 10 * time.Millisecond
)

// crowded is an admission with one slot, which is taken, and a full queue. Programs add their names to granted, in order.
type crowded struct {
	*admission
	first   *slot
	granted []string
	refused map[string]error
	ended   int
}

// newCrowded fills the queue: first with the programs of one principal, then with those of others.
func newCrowded(ctx context.Context) *crowded {
	limits := config.Sandbox{Queue: crowd, QueueWait: time.Hour}
	c := &crowded{admission: &admission{parallel: 1, limits: func() config.Sandbox { return limits }}, refused: map[string]error{}}
	c.first, _ = c.acquire(ctx, 0)
	for i := range floodPrograms {
		c.enter(ctx, "flood", i)
	}
	for i := range otherPrograms {
		for n := range others {
			c.enter(ctx, fmt.Sprintf("other%d", n), i)
		}
	}
	return c
}

// enter has a program wait, and returns when it does. Only one runs at a time, so that what it writes needs no lock.
func (c *crowded) enter(ctx context.Context, who string, i int) {
	name := fmt.Sprint(who, " ", i)
	go func() {
		s, err := c.acquire(tool.WithPrincipal(ctx, who), 0)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended++
		if err != nil {
			c.refused[name] = err
			return
		}
		c.granted = append(c.granted, name)
		time.AfterFunc(programTime, s.end)
	}()
	synctest.Wait()
}

// TestFullQueueIsFair fills the queue with 9,000 programs of one principal and then 100 of each of ten others. All run; the others' take turns
// with those of the first, so that they end after 1,100 programs; and each principal's run in their order.
func TestFullQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowded(t.Context())
		if running, waiting := c.load(); running != 1 || waiting != crowd {
			t.Fatalf("%d run and %d wait", running, waiting)
		}
		c.first.end()
		time.Sleep(crowd * programTime)
		synctest.Wait()
		if len(c.granted) != crowd || len(c.refused) != 0 {
			t.Fatalf("%d programs ran, %d were refused", len(c.granted), len(c.refused))
		}
		next := map[string]int{}
		for i, name := range c.granted {
			who, number, _ := strings.Cut(name, " ")
			if number != fmt.Sprint(next[who]) {
				t.Fatalf("program %d of all is %s, want %d of that principal", i, name, next[who])
			}
			if turn := i / (others + 1); turn < otherPrograms && next[who] != turn {
				t.Fatalf("program %d of all is %s: want one of each principal in each turn", i, name)
			}
			next[who]++
		}
		c.wantEmpty(t)
	})
}

func (c *crowded) wantEmpty(t *testing.T) {
	t.Helper()
	if running, waiting := c.load(); running != 0 || waiting != 0 || len(c.queues) != 0 || c.waiting != 0 {
		t.Errorf("%d run and %d wait at the end, in %d queues", running, waiting, len(c.queues))
	}
}

// TestQueueThatIsFull: the principal with the longest queue is refused with an error that says when to try again. A program of another takes
// the place of the last one of the longest queue, which gets that error.
func TestQueueThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		c := newCrowded(ctx)
		c.enter(ctx, "flood", floodPrograms)
		c.wantBusy(t, fmt.Sprint("flood ", floodPrograms))
		c.enter(ctx, "late", 0)
		c.wantBusy(t, fmt.Sprint("flood ", floodPrograms-1))
		if len(c.refused) != 2 {
			t.Errorf("%d programs are refused, want 2", len(c.refused))
		}
		if _, waiting := c.load(); waiting != crowd {
			t.Errorf("%d wait", waiting)
		}
		leave()
		synctest.Wait()
		c.first.end()
		c.wantEmpty(t)
	})
}

func (c *crowded) wantBusy(t *testing.T, name string) {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](c.refused[name])
	if !ok || e.Kind != tool.Busy || !e.Retryable || e.After < time.Second || !strings.Contains(e.Message, "too many programs") || !strings.Contains(e.Hint, "try again in") {
		t.Errorf("%s: %+v", name, c.refused[name])
	}
}

// maxWaiterBytes bounds what a waiting program takes in the queue, with the goroutine that waits. docs/explanation/capacity.md has it.
const maxWaiterBytes = 16 << 10

// TestQueueMemory: a waiting program takes a bounded amount of memory, and one that is canceled leaves nothing.
func TestQueueMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := inUse()
		ctx, leave := context.WithCancel(t.Context())
		c := newCrowded(ctx)
		if each := (inUse() - before) / crowd; each > maxWaiterBytes {
			t.Errorf("a waiting program takes %d bytes, at most %d are wanted", each, maxWaiterBytes)
		} else {
			t.Logf("a waiting program takes %d bytes", each)
		}
		leave()
		synctest.Wait()
		c.first.end()
		c.wantEmpty(t)
		if c.ended != crowd || len(c.refused) != crowd {
			t.Errorf("%d programs ended, %d of them refused", c.ended, len(c.refused))
		}
		c.refused = nil
		const rest = 256 // of each: the runtime keeps goroutines that have ended for new ones
		if left := (inUse() - before) / crowd; left > rest+goroutineBytes {
			t.Errorf("a canceled program leaves %d bytes", left)
		}
		runtime.KeepAlive(c)
	})
}

// goroutineBytes is what the runtime keeps of a goroutine that has ended, without its stack.
const goroutineBytes = 1 << 10

// inUse returns the memory of all objects and stacks that are in use, in bytes.
func inUse() int64 {
	for range 3 { // stacks of goroutines that have ended are free after the next collections
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far from the bound
}

// TestQueueOfLargePrograms: the size of waiting programs is bounded. Those of the principal with the largest part make room for others,
// also the only one that it has, and all that were not refused run.
func TestQueueOfLargePrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := config.Sandbox{Queue: crowd, QueueWait: time.Hour}
		a := &admission{parallel: 1, limits: func() config.Sandbox { return limits }}
		first, _ := a.acquire(t.Context(), 0)
		ran, refused := map[string]int{}, map[string]int{}
		enter := func(who string, size int64) {
			go func() {
				s, err := a.acquire(tool.WithPrincipal(t.Context(), who), size)
				a.mu.Lock()
				defer a.mu.Unlock()
				if err != nil {
					refused[who]++
					return
				}
				ran[who]++
				time.AfterFunc(programTime, s.end)
			}()
			synctest.Wait()
		}
		const large = maxQueuedBytes / 100
		for range 120 {
			enter("flood", large)
		}
		enter("whole", maxQueuedBytes*2/5)
		enter("small", large)
		a.mu.Lock()
		if a.bytes > maxQueuedBytes || refused["whole"]+refused["small"] > 0 {
			t.Errorf("%d bytes wait, %v were refused", a.bytes, refused)
		}
		a.mu.Unlock()
		enter("another", maxQueuedBytes/3) // for which the only program of whole goes
		first.end()
		time.Sleep(time.Hour)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.bytes != 0 || a.waiting != 0 || len(a.queues) != 0 || a.taken != 0 {
			t.Errorf("%d bytes and %d programs wait in %d queues, %d run", a.bytes, a.waiting, len(a.queues), a.taken)
		}
		if ran["small"] != 1 || ran["another"] != 1 || ran["whole"]+refused["whole"] != 1 || ran["flood"]+refused["flood"] != 120 || ran["flood"] < 30 {
			t.Errorf("ran %v, refused %v", ran, refused)
		}
	})
}
