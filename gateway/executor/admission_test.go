package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// admissionFixture is an admission whose programs take a second each.
type admissionFixture struct {
	*admission
	work sync.WaitGroup
	mu   sync.Mutex
	done []string // who had a turn, in order; refused ones with "!"
}

func newAdmissionFixture(parallel, queue int, patience time.Duration) *admissionFixture {
	limits := config.Sandbox{Queue: queue, QueueWait: patience}
	return &admissionFixture{admission: &admission{parallel: parallel, limits: func() config.Sandbox { return limits }}}
}

// enterAs asks for a turn on behalf of somebody, and has asked when it returns.
func (h *admissionFixture) enterAs(ctx context.Context, who string) {
	h.work.Go(func() {
		s, err := h.acquire(tool.WithPrincipal(ctx, who), 0)
		if err != nil {
			who += "!"
		}
		h.mu.Lock()
		h.done = append(h.done, who)
		h.mu.Unlock()
		if err == nil {
			time.Sleep(time.Second)
			s.end()
		}
	})
	synctest.Wait()
}

func (h *admissionFixture) want(t *testing.T, want string) {
	t.Helper()
	h.work.Wait()
	if got := strings.Join(h.done, " "); got != want {
		t.Errorf("in order: %s\nwant      %s", got, want)
	}
	if running, waiting := h.load(); running != 0 || waiting != 0 || len(h.queues) != 0 || h.waiting != 0 {
		t.Errorf("%d run and %d wait at the end", running, waiting)
	}
}

// TestTurns: lines take turns, whoever came first and however many there are; the longest makes room; nobody waits for ever.
func TestTurns(t *testing.T) {
	for name, test := range map[string]func(ctx context.Context) (h *admissionFixture, want string){
		"a flood does not starve another": func(ctx context.Context) (*admissionFixture, string) {
			h := newAdmissionFixture(1, 10, time.Minute)
			for range 5 {
				h.enterAs(ctx, "flood")
			}
			h.enterAs(ctx, "ann")
			h.enterAs(ctx, "bob")
			h.enterAs(ctx, "ann")
			return h, "flood flood ann bob flood ann flood flood"
		},
		"the longest line makes room": func(ctx context.Context) (*admissionFixture, string) {
			h := newAdmissionFixture(1, 3, time.Minute)
			for range 5 {
				h.enterAs(ctx, "flood")
			}
			h.enterAs(ctx, "ann")
			h.enterAs(ctx, "bob")
			h.enterAs(ctx, "flood")
			return h, "flood flood! flood! flood! flood! flood ann bob"
		},
		"patience ends": func(ctx context.Context) (*admissionFixture, string) {
			h := newAdmissionFixture(1, 10, 1500*time.Millisecond)
			for range 4 {
				h.enterAs(ctx, "ann")
			}
			return h, "ann ann ann! ann!"
		},
		"runs of workflows wait as long as it takes": func(ctx context.Context) (*admissionFixture, string) {
			h := newAdmissionFixture(1, 1, 2500*time.Millisecond)
			run := toolcall.WithRun(ctx, "r-1")
			for range 4 {
				h.enterAs(run, "ann")
			}
			h.enterAs(ctx, "ann")
			return h, "ann ann ann ann ann"
		},
		"who goes away leaves his place": func(ctx context.Context) (*admissionFixture, string) {
			h := newAdmissionFixture(1, 1, time.Minute)
			mayGo, leave := context.WithCancel(ctx)
			h.enterAs(ctx, "ann")
			h.enterAs(mayGo, "bob")
			leave()
			synctest.Wait()
			h.enterAs(ctx, "cid")
			return h, "ann bob! cid"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, want := test(t.Context())
				h.want(t, want)
			})
		})
	}
}

// TestTurnsWhilePeopleAreWaitedFor: a slot that is released is another's, and who goes on has one whatever happens.
func TestTurnsWhilePeopleAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAdmissionFixture(1, 10, time.Minute)
		asks, err := h.acquire(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		asks.release()
		asks.release()
		h.enterAs(t.Context(), "other")
		asks.reacquire()
		asks.reacquire()
		if running, _ := h.load(); running != 2 {
			t.Errorf("%d run", running)
		}
		h.enterAs(t.Context(), "third")
		time.Sleep(1500 * time.Millisecond)
		if running, waiting := h.load(); running != 1 || waiting != 1 {
			t.Errorf("%d run, %d wait", running, waiting)
		}
		asks.end()
		asks.reacquire() // a call that ends after its program takes no slot
		h.want(t, "other third")
		_, err = newAdmissionFixture(1, 0, time.Minute).acquire(t.Context(), 0)
		if err != nil {
			t.Error(err)
		}
	})
}

// TestBusySaysWhen: the longer programs take and the more wait, the later one is to come back.
func TestBusySaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAdmissionFixture(2, 0, time.Minute)
		seats := make([]*slot, 2)
		for i := range seats {
			seats[i], _ = h.acquire(t.Context(), 0)
		}
		after := func() time.Duration {
			_, err := h.acquire(t.Context(), 0)
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || e.Kind != tool.Busy || !strings.Contains(e.Hint, fmt.Sprintf("%d s", int(e.After.Seconds()))) {
				t.Fatalf("%v", err)
			}
			return e.After
		}
		if got := after(); got != time.Second {
			t.Errorf("at first after %s", got)
		}
		time.Sleep(time.Hour)
		seats[0].end()
		seats[0], _ = h.acquire(t.Context(), 0)
		if got := after(); got != maxRetryAfter {
			t.Errorf("after programs that take an hour: %s", got)
		}
	})
}

// FuzzPrinted: what is printed in pieces is what the answer shows of it, whatever the pieces are.
func FuzzPrinted(f *testing.F) {
	f.Add("one\r\ntwo\rthree \x1b[31mred\x1b[0m \u009b1m \x00\xff€\xe2\x82", 1)
	f.Add("\xff\xff a \xe2\xe2\x82", 1)
	f.Add("sec\x1b[1mret-Of-9 and se\u200bcret-Of-9 \x1b[ \x1b", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		m := new(redact.Book).For("", "secret-Of-9")
		var heard strings.Builder
		o := newOutput(m, func(p execution.Printed) { heard.WriteString(p.Text) }, func() {})
		size = 1 + size&31
		for piece := range slices.Chunk([]byte(text), size) {
			o.write(sandbox.Stdout, piece)
		}
		o.end()
		clean := strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD") // as the sandbox has it
		want := m.Text(execution.Visible(clean))
		if got := strings.TrimRight(heard.String(), "\n"); got != want && len(text) < maxSequence {
			t.Errorf("%q in pieces of %d becomes %q; the answer has %q", text, size, got, want)
		}
		pieces, total := o.tail()
		kept := 0
		for _, p := range pieces {
			kept += len(p.Text)
		}
		if kept > maxLiveOutput || int(total) != heard.Len() || total <= maxLiveOutput && kept != int(total) {
			t.Errorf("%d of %d bytes are kept", kept, total)
		}
	})
}

// TestPrintedIsBounded: of a program that prints on only the last is kept, in few pieces.
func TestPrintedIsBounded(t *testing.T) {
	o := newOutput(nil, nil, func() {})
	for range 100_000 {
		o.write(sandbox.Stdout, []byte("€uro "))
		o.write(sandbox.Stderr, []byte("e"))
	}
	o.write(sandbox.Stdout, []byte(strings.Repeat("€", maxLiveOutput)))
	pieces, total := o.tail()
	if len(pieces) != 1 || len(pieces[0].Text) > maxLiveOutput || len(pieces[0].Text) < maxLiveOutput-4 || total != 100_000*8+3*maxLiveOutput || strings.ContainsRune(pieces[0].Text, '\uFFFD') {
		t.Errorf("%d pieces of %d bytes, %d in all", len(pieces), len(pieces[0].Text), total)
	}
}
