package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// keepProgram is a program after which the guest stays.
var keepProgram = bridge.Program{Code: "1", ValueLimit: 100, Keep: true}

func TestWait(t *testing.T) {
	b, path := listen(t)
	cause := errors.New("too long")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
	defer cancel()
	if err := b.Wait(ctx); !errors.Is(err, cause) {
		t.Errorf("without a guest: %v", err)
	}
	dial(t, path)
	for range 2 {
		if err := b.Wait(t.Context()); err != nil {
			t.Errorf("with a guest: %v", err)
		}
	}
	_ = b.Close()
	if err := b.Wait(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestWaitForWhoIsNoGuest(t *testing.T) {
	b, path := listen(t)
	speak(t, connection(t, path), upgrade("POST /v1", ""))
	if err := b.Wait(t.Context()); !errors.Is(err, bridge.ErrClosed) {
		t.Error(err)
	}
}

func TestPingOfAWaitingGuest(t *testing.T) {
	b, path := listen(t)
	g := dial(t, path)
	pinged := make(chan error, 1)
	for range 2 {
		go func() { pinged <- b.Ping(t.Context()) }()
		if got := g.read(); got != `{"type":"ping"}` {
			t.Errorf("got %s", got)
		}
		g.write(`{"type":"call","id":1,"tool":"a.b"}`) // of no program: dropped
		g.write(`{"type":"pong"}`)
		if err := <-pinged; err != nil {
			t.Error(err)
		}
	}
	ended := make(chan outcome, 1)
	go func() {
		report, err := b.Run(t.Context(), program, account(answer("1"), bridge.Limits{}), func() {})
		ended <- outcome{report, err}
	}()
	g.read()
	g.ask(`{"type":"call","id":1,"tool":"a.b"}`)
	g.write(`{"type":"done"}`)
	if o := <-ended; o.err != nil || o.report.Calls != 1 {
		t.Errorf("Run returned %+v, %v", o.report, o.err)
	}
}

func TestPingFails(t *testing.T) {
	cause := errors.New("no answer")
	for _, test := range []struct {
		name string
		make func(b *bridge.Bridge, g *guest)
		want error
	}{
		{"a guest that is silent", func(*bridge.Bridge, *guest) {}, cause},
		{"a guest that is gone", func(_ *bridge.Bridge, g *guest) { _ = g.Close() }, bridge.ErrClosed},
		{"a guest that says something else", func(_ *bridge.Bridge, g *guest) { g.write("x") }, bridge.ErrClosed},
		{"a guest that says too much", func(_ *bridge.Bridge, g *guest) { g.write(strings.Repeat(" ", 1<<17)) }, bridge.ErrClosed},
		{"a bridge that is closed", func(b *bridge.Bridge, _ *guest) { _ = b.Close() }, net.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, path := listen(t)
			g := dial(t, path)
			test.make(b, g)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, cause)
			defer cancel()
			if err := b.Ping(ctx); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if _, err := b.Run(t.Context(), program, account(answer("1"), bridge.Limits{}), func() {}); err == nil {
				t.Error("the bridge goes on")
			}
		})
	}
}

// TestProgramsOneAfterTheOther counts and limits each program by itself.
func TestProgramsOneAfterTheOther(t *testing.T) {
	b, path := listen(t)
	g := dial(t, path)
	for i := range 3 {
		name := fmt.Sprintf("e-%d", i)
		caller := callerFunc(func(_ context.Context, call tool.Call) (tool.Result, error) {
			return tool.Result{Structured: []byte(`"` + call.Execution + `"`)}, nil
		})
		ended := make(chan outcome, 1)
		go func() {
			report, err := b.Run(t.Context(), keepProgram, bridge.Account{Execution: name, Caller: caller, Limits: bridge.Limits{Calls: 1, Emits: 1}}, func() {})
			ended <- outcome{report, err}
		}()
		if got, want := g.read(), `{"type":"run","code":"1","value_limit":100,"keep":true}`; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		if got := g.ask(`{"type":"call","id":1,"tool":"a.b"}`); !strings.Contains(got, name) {
			t.Errorf("got %s", got)
		}
		if got := g.ask(`{"type":"call","id":2,"tool":"a.b"}`); !strings.Contains(got, "used up") {
			t.Errorf("got %s", got)
		}
		if got := g.ask(emitFrame(`{"type":"text","text":"` + name + `"}`)); !strings.Contains(got, "result") {
			t.Errorf("got %s", got)
		}
		g.write(`{"type":"done","exit":1}`)
		o := <-ended
		if o.err != nil || !o.report.Reusable || !o.report.Started || o.report.Calls != 1 || o.report.Result.Exit != 1 || len(o.report.Emitted) != 1 || o.report.Emitted[0].Text != name {
			t.Errorf("Run returned %+v, %v", o.report, o.err)
		}
	}
}

// TestGuestIsNotKept ends the bridge where the guest leaves, or where nobody asked it to stay.
func TestGuestIsNotKept(t *testing.T) {
	for name, test := range map[string]struct {
		program bridge.Program
		done    string
	}{"not asked": {program, `{"type":"done"}`}, "leaves": {keepProgram, `{"type":"done","exit":2,"leaving":true}`}} {
		t.Run(name, func(t *testing.T) {
			h := openFor(t, test.program, answer("1"), bridge.Limits{})
			connect(t, h).write(test.done)
			if _, err := h.wait(t); err != nil || h.report.Reusable {
				t.Errorf("Run returned %+v, %v", h.report, err)
			}
			if _, err := h.Run(t.Context(), program, account(answer("1"), bridge.Limits{}), func() {}); !errors.Is(err, bridge.ErrClosed) {
				t.Errorf("Run once more: %v", err)
			}
		})
	}
}

// TestCallsOfAnEarlierProgram are cancelled at its end, and their answers go to nobody.
func TestCallsOfAnEarlierProgram(t *testing.T) {
	begun, cancelled := make(chan struct{}, 2), make(chan struct{}, 2)
	h := openFor(t, keepProgram, block(begun, cancelled), bridge.Limits{})
	g := connect(t, h)
	g.write(`{"type":"call","id":1,"tool":"a.b","progress":true}`)
	receive(t, "call begun", begun, 1)
	g.write(`{"type":"done"}`)
	if _, err := h.wait(t); err != nil || !h.report.Reusable || len(cancelled) != 1 {
		t.Fatalf("Run returned %+v, %v with %d calls cancelled", h.report, err, len(cancelled))
	}
	go func() { _, _ = h.Run(t.Context(), program, account(answer("2"), bridge.Limits{}), func() {}) }()
	if got := g.read(); !strings.HasPrefix(got, `{"type":"run"`) {
		t.Errorf("got %s", got)
	}
	if got := g.ask(`{"type":"call","id":2,"tool":"a.b"}`); got != `{"type":"result","id":2,"value":{"json":2}}` {
		t.Errorf("got %s", got)
	}
}

// TestKeptGuestThatReadsNothing has its answers waiting when its program ends: it cannot hold up the end.
func TestKeptGuestThatReadsNothing(t *testing.T) {
	h := openFor(t, keepProgram, answer(`"`+strings.Repeat("x", 4<<20)+`"`), bridge.Limits{})
	g := connect(t, h)
	for range 3 {
		g.write(`{"type":"call","id":1,"tool":"a.b"}`)
	}
	time.Sleep(20 * time.Millisecond)
	g.write(`{"type":"done"}`)
	if _, err := h.wait(t); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestTraffic(t *testing.T) {
	h := open(t, answer(`"`+strings.Repeat("x", 4000)+`"`), bridge.Limits{Traffic: 10_000})
	g := connect(t, h)
	call := func(id, size int) string {
		return fmt.Sprintf(`{"type":"call","id":%d,"tool":"a.b","args":{"s":"%s"}}`, id, strings.Repeat("y", size))
	}
	for id, step := range []struct {
		size int
		want string
	}{
		{10, `{"type":"result","id":0,`}, {10, `{"type":"result","id":1,`},
		{10, `{"type":"error","id":2,"error":{"kind":"limit","message":"the result of 4`},
		{5000, `{"type":"error","id":3,"error":{"kind":"limit","message":"a frame of 5`},
	} {
		if got := g.ask(call(id, step.size)); !strings.HasPrefix(got, step.want) || step.size == 10 && id == 2 && !strings.Contains(got, `"hint"`) {
			t.Errorf("got %.100s", got)
		}
	}
	if report := h.end(t, g); report.Calls != 3 {
		t.Errorf("%d calls", report.Calls)
	}
}

func TestTrafficGoesOn(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{Traffic: 1000})
	g := connect(t, h)
	go func() {
		for {
			if _, _, err := g.NextReader(); err != nil {
				return
			}
		}
	}()
	frame := []byte(`{"type":"call","id":1,"tool":"a.b","args":"` + strings.Repeat("y", 10_000) + `"}`)
	sent := 0
	for g.WriteMessage(1, frame) == nil {
		sent += len(frame)
	}
	if _, err := h.wait(t); !errors.Is(err, bridge.ErrTraffic) || !errors.Is(err, bridge.ErrClosed) || h.report.Calls != 0 {
		t.Errorf("Run returned %+v, %v", h.report, err)
	}
	if sent > 3<<20 {
		t.Errorf("it could send %d bytes", sent)
	}
}
