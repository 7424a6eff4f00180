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

// sized is an admission with programs of different sizes, of which one runs.
type sized struct {
	*admission

	first        *slot
	ran, refused map[string]int
}

func newSized(ctx context.Context, queue int) *sized {
	limits := config.Sandbox{Queue: queue, QueueWait: time.Hour}
	s := &sized{admission: &admission{parallel: 1, limits: func() config.Sandbox { return limits }}, ran: map[string]int{}, refused: map[string]int{}}
	s.first, _ = s.acquire(ctx, 0)
	return s
}

// enter lets a program of a principal wait.
func (s *sized) enter(ctx context.Context, who string, size int64) {
	go func() {
		seat, err := s.acquire(tool.WithPrincipal(ctx, who), size)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.refused[who]++
			return
		}
		s.ran[who]++
		time.AfterFunc(programTime, seat.end)
	}()
	synctest.Wait()
}

// runAll runs all that wait, and checks that nothing is left.
func (s *sized) runAll(t *testing.T) {
	t.Helper()
	s.first.end()
	time.Sleep(time.Hour)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes != 0 || s.waiting != 0 || len(s.queues) != 0 || s.taken != 0 {
		t.Errorf("%d bytes and %d programs wait in %d queues, %d run", s.bytes, s.waiting, len(s.queues), s.taken)
	}
}

// TestQueueOfLargePrograms: the size of waiting programs is bounded. Those of the principal with the largest part make room for others,
// also the only one that it has, and all that were not refused run.
func TestQueueOfLargePrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSized(t.Context(), crowd)
		const large = maxQueuedBytes / 100
		for range 120 {
			s.enter(t.Context(), "flood", large)
		}
		s.enter(t.Context(), "whole", maxQueuedBytes*2/5)
		s.enter(t.Context(), "small", large)
		if s.bytes > maxQueuedBytes || s.refused["whole"]+s.refused["small"] > 0 {
			t.Errorf("%d bytes wait, %v were refused", s.bytes, s.refused)
		}
		s.enter(t.Context(), "another", maxQueuedBytes/3) // for which the only program of whole is refused
		s.runAll(t)
		if s.ran["small"] != 1 || s.ran["another"] != 1 || s.ran["whole"]+s.refused["whole"] != 1 || s.ran["flood"]+s.refused["flood"] != 120 || s.ran["flood"] < 30 {
			t.Errorf("ran %v, refused %v", s.ran, s.refused)
		}
	})
}

// TestQueueWithoutRoom: for a program that may not wait, no other is refused.
func TestQueueWithoutRoom(t *testing.T) {
	for name, test := range map[string]struct {
		queue int
		size  int64
	}{
		"too large when one is refused": {crowd, maxQueuedBytes / 2},
		"too large for a short queue":   {5, maxQueuedBytes},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSized(t.Context(), test.queue)
				for range 3 {
					s.enter(t.Context(), "many", maxQueuedBytes/5)
				}
				s.enter(t.Context(), "one", maxQueuedBytes*2/5-2)
				s.enter(t.Context(), "tiny", 1)
				s.enter(t.Context(), "late", test.size)
				s.runAll(t)
				if s.ran["many"] != 3 || s.ran["one"] != 1 || s.ran["tiny"] != 1 || s.refused["late"] != 1 {
					t.Errorf("ran %v, refused %v", s.ran, s.refused)
				}
			})
		})
	}
}
