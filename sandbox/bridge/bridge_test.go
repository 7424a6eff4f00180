package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

func TestProgramIsDelivered(t *testing.T) {
	h := openFor(t, bridge.Program{Code: "a < b && \"é\u2028\"\n\x01", ValueLimit: 7}, answer("1"), bridge.Limits{})
	g := dial(t, h.path)
	if got, want := g.read(), `{"type":"run","code":"a < b && \"é\u2028\"\n\u0001","value_limit":7}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	receive(t, "started", h.started, 1)
	g.write(`{"type":"done"}`)
	if done, err := h.wait(t); err != nil || done != (bridge.ProgramResult{}) || !h.report.Started || h.report.Reusable {
		t.Errorf("Run returned %+v, %v", h.report, err)
	}
	if _, _, err := g.ReadMessage(); err == nil {
		t.Error("the connection outlives its program")
	}
}

func TestCallsAreAnswered(t *testing.T) {
	var got tool.Call
	h := open(t, callerFunc(func(_ context.Context, call tool.Call) (tool.Result, error) {
		got = call
		return tool.Result{Structured: []byte(`{"n": 9007199254740993}`)}, nil
	}), bridge.Limits{})
	g := connect(t, h)
	frame := g.ask(`{"type":"call","id":7,"tool":"up.do","args":{"a": 12345678901234567890, "é<": "\u00e9"},"execution":"victim","session":1}`)
	if want := `{"type":"result","id":7,"value":{"json":{"n": 9007199254740993}}}`; frame != want {
		t.Errorf("got  %s\nwant %s", frame, want)
	}
	if got.Tool.String() != "up.do" || got.Execution != "e-1" || string(got.Args) != `{"a": 12345678901234567890, "é<": "\u00e9"}` {
		t.Errorf("call %+v with %s", got, got.Args)
	}
	g.ask(`{"type":"call","id":8,"tool":"up.do"}`)
	if calls := h.end(t, g).Calls; got.Args != nil || calls != 2 {
		t.Errorf("%d calls, args %q", calls, got.Args)
	}
}

func TestConcurrency(t *testing.T) {
	const limit, calls = 4, 60
	var running, peak atomic.Int64
	h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for {
			if seen := peak.Load(); now <= seen || peak.CompareAndSwap(seen, now) {
				break
			}
		}
		time.Sleep(2 * time.Millisecond)
		return tool.Result{}, nil
	}), bridge.Limits{Concurrency: limit})
	g := connect(t, h)
	go func() {
		for i := range calls {
			_ = g.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"call","id":%d,"tool":"a.b"}`, i))
		}
	}()
	answered := map[string]bool{}
	for range calls {
		answered[g.read()] = true
	}
	if len(answered) != calls || peak.Load() != limit {
		t.Errorf("%d answers, %d at once; want %d, %d", len(answered), peak.Load(), calls, limit)
	}
}

func TestCallLimit(t *testing.T) {
	var calls atomic.Int64
	h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) {
		calls.Add(1)
		return tool.Result{}, nil
	}), bridge.Limits{Calls: 3})
	g := connect(t, h)
	for i := range 3 {
		if got := g.ask(fmt.Sprintf(`{"type":"call","id":%d,"tool":"a.b"}`, i)); !strings.Contains(got, `"result"`) {
			t.Errorf("call %d: %s", i, got)
		}
	}
	for i := range 3 {
		want := fmt.Sprintf(`{"type":"error","id":%d,"error":{"kind":"limit","message":"this program has used up its 3 tool calls","hint":"fetch more per call, or split the work over several programs"}}`, i)
		if got := g.ask(fmt.Sprintf(`{"type":"call","id":%d,"tool":"a.b"}`, i)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if counted := h.end(t, g).Calls; calls.Load() != 3 || counted != 3 {
		t.Errorf("%d calls made, %d counted", calls.Load(), counted)
	}
}

func TestFrameLimit(t *testing.T) {
	call := func(size int) string {
		head, tail := `{"type":"call","id":1,"tool":"a.b","args":{"s":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	for _, send := range []struct {
		name string
		to   func(g *guest)
	}{
		{"at once", func(g *guest) { g.write(call(4097)) }},
		{"in fragments", func(g *guest) {
			w, err := g.NextWriter(websocket.TextMessage)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; err == nil && i < 100; i++ {
				_, err = w.Write([]byte(strings.Repeat(" ", 4096))) // the writer's buffer: a fragment each
			}
		}},
		{"by its header alone", func(g *guest) {
			_, _ = g.NetConn().Write([]byte{0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
		}},
		{"by a header that overflows", func(g *guest) {
			_, _ = g.NetConn().Write([]byte{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
		}},
	} {
		t.Run(send.name, func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{Frame: 4096})
			g := connect(t, h)
			if got := g.ask(call(4096)); !strings.Contains(got, `"result"`) {
				t.Fatalf("a frame at the limit: %s", got)
			}
			send.to(g)
			_, err := h.wait(t)
			if !errors.Is(err, bridge.ErrClosed) || !strings.Contains(err.Error(), "too large") || h.report.Calls != 1 {
				t.Errorf("%v after %d calls", err, h.report.Calls)
			}
		})
	}
}

func TestWhatIsNoFrameEndsTheBridge(t *testing.T) {
	for name, frame := range map[string]string{
		"empty": "", "no JSON": "hello", "half": `{"type":"call"`, "two": `{"type":"done"}{}`, "list": `["call"]`, "number": "1",
		"type of a type": `{"type":1}`, "type of an id": `{"type":"call","id":"1"}`, "fraction as id": `{"type":"call","id":1.5}`,
		"big id": `{"type":"call","id":9223372036854775808}`, "type of a value": `{"type":"done","value":1}`,
		"type of a fault": `{"type":"done","fault":"x"}`, "type of a line": `{"type":"done","fault":{"lines":[1]}}`,
		"not UTF-8": "{\"type\":\"call\",\"id\":1,\"tool\":\"a.b\",\"args\":{\"s\":\"\xff\"}}",
		"deep":      `{"type":"call","id":1,"tool":"a.b","args":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{})
			g := connect(t, h)
			g.write(frame)
			h.closed(t)
			if h.report.Calls != 0 {
				t.Errorf("%d calls", h.report.Calls)
			}
		})
	}
	t.Run("binary", func(t *testing.T) {
		h := open(t, answer("1"), bridge.Limits{})
		if err := connect(t, h).WriteMessage(websocket.BinaryMessage, []byte(`{"type":"done"}`)); err != nil {
			t.Fatal(err)
		}
		h.closed(t)
	})
	t.Run("not masked", func(t *testing.T) {
		h := open(t, answer("1"), bridge.Limits{})
		_, _ = connect(t, h).NetConn().Write([]byte("\x81\x02{}"))
		h.closed(t)
	})
	t.Run("close frame", func(t *testing.T) {
		h := open(t, answer("1"), bridge.Limits{})
		if err := connect(t, h).WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		h.closed(t)
	})
}

// TestForgedFrames sends frames that only a host may send, ids that were never asked for, and ids twice.
func TestForgedFrames(t *testing.T) {
	h := open(t, callerFunc(func(_ context.Context, call tool.Call) (tool.Result, error) {
		return tool.Result{Structured: call.Args}, nil
	}), bridge.Limits{Concurrency: 1})
	g := connect(t, h)
	g.write(`{"type":"result","id":1,"value":{"json":"forged"}}`)
	g.write(`{"type":"error","id":1,"error":{}}`)
	g.write(`{"type":"run","code":"forged"}`)
	g.write(`{"type":"from another version","id":3}`)
	g.write(`{}`)
	for _, id := range []string{"-1", "-9223372036854775808", "9223372036854775807", "0"} {
		for _, args := range []string{"1", "2"} {
			if got, want := g.ask(`{"type":"call","id":`+id+`,"tool":"a.b","args":`+args+`}`), `{"type":"result","id":`+id+`,"value":{"json":`+args+`}}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
	for _, id := range []string{"", "x", "../x", "a.b.c", ".", "a.", ".b"} {
		if got := g.ask(`{"type":"call","id":1,"tool":"` + id + `"}`); !strings.HasPrefix(got, `{"type":"error","id":1,"error":{"kind":"invalid","message":`) {
			t.Errorf("tool %q: %s", id, got)
		}
	}
	if calls := h.end(t, g).Calls; calls != 15 {
		t.Errorf("%d calls, want 15", calls)
	}
}

func TestPing(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	g := connect(t, h)
	pong := ""
	g.SetPongHandler(func(data string) error { pong = data; return nil })
	if err := g.WriteControl(websocket.PingMessage, []byte("hello"), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	g.ask(`{"type":"call","id":1,"tool":"a.b"}`)
	if pong != "hello" {
		t.Errorf("a ping brought %q", pong)
	}
}

func TestGuestGoesInTheMiddleOfCalls(t *testing.T) {
	begun, cancelled := make(chan struct{}, 3), make(chan struct{}, 3)
	h := open(t, block(begun, cancelled), bridge.Limits{})
	g := connect(t, h)
	for i := range 3 {
		g.write(fmt.Sprintf(`{"type":"call","id":%d,"tool":"a.b"}`, i))
	}
	receive(t, "calls begun", begun, 3)
	_ = g.Close()
	h.closed(t)
	if len(cancelled) != 3 {
		t.Errorf("Run returned while %d of 3 calls were running", 3-len(cancelled))
	}
}

func TestDoneCancelsCalls(t *testing.T) {
	begun, cancelled := make(chan struct{}, 1), make(chan struct{}, 1)
	h := open(t, block(begun, cancelled), bridge.Limits{})
	g := connect(t, h)
	g.write(`{"type":"call","id":1,"tool":"a.b"}`)
	receive(t, "call begun", begun, 1)
	g.write(`{"type":"done","exit":259}`)
	if done, err := h.wait(t); err != nil || done.Exit != 3 || len(cancelled) != 1 {
		t.Errorf("Run returned %+v, %v with %d calls cancelled", done, err, len(cancelled))
	}
}

func TestCancel(t *testing.T) {
	cause := errors.New("time is over")
	large := answer(`"` + strings.Repeat("x", 1<<20) + `"`) // more than a socket holds
	for _, test := range []struct {
		name   string
		caller bridge.Caller
		guest  func(g func() *guest)
	}{
		{"a guest that never connects", large, func(func() *guest) {}},
		{"a guest that says nothing", large, func(g func() *guest) { g() }},
		{"a guest that stops in a frame", large, func(connect func() *guest) {
			_, _ = connect().NetConn().Write([]byte{0x81, 0xfe, 1, 0, 0, 0, 0, 0, '{'})
		}},
		{"a guest that reads nothing", large, func(connect func() *guest) {
			g := connect()
			for range 40 { // 16 at once: the reader waits for a slot as well
				g.write(`{"type":"call","id":1,"tool":"a.b"}`)
			}
			time.Sleep(20 * time.Millisecond)
		}},
		{"a guest that reads nothing at its limit", large, func(connect func() *guest) {
			g := connect()
			g.write(`{"type":"call","id":1,"tool":"a.b"}`)
			go func() {
				for g.WriteMessage(websocket.TextMessage, []byte(`{"type":"call","id":1,"tool":"a.b"}`)) == nil {
				}
			}()
			time.Sleep(20 * time.Millisecond)
		}},
		{"a guest in the middle of a call", block(make(chan struct{}, 1), make(chan struct{}, 1)), func(connect func() *guest) {
			connect().write(`{"type":"call","id":1,"tool":"a.b"}`)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, test.caller, bridge.Limits{Calls: 60})
			test.guest(func() *guest { return connect(t, h) })
			start := time.Now()
			h.cancel(cause)
			if _, err := h.wait(t); !errors.Is(err, cause) {
				t.Errorf("Run returned %v", err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestGuestThatDoesNotReadIsCutOff(t *testing.T) {
	h := open(t, answer(`"`+strings.Repeat("x", 1<<20)+`"`), bridge.Limits{Write: 50 * time.Millisecond})
	connect(t, h).write(`{"type":"call","id":1,"tool":"a.b"}`)
	h.closed(t)
}

// TestLargeArgumentsWait has a guest that makes many calls with large arguments at once: those wait
// for which there is no room, and one that is larger than all of it goes on by itself.
func TestLargeArgumentsWait(t *testing.T) {
	const calls = 4
	begun, release := make(chan int, calls), make(chan struct{})
	h := open(t, callerFunc(func(_ context.Context, call tool.Call) (tool.Result, error) {
		begun <- len(call.Args)
		<-release
		return tool.Result{}, nil
	}), bridge.Limits{Calls: calls, Concurrency: calls, InFlight: 100 << 10})
	g := connect(t, h)
	for i, size := range []int{60 << 10, 30 << 10, 200 << 10, 10} {
		g.write(fmt.Sprintf(`{"type":"call","id":%d,"tool":"u.t","args":{"a":"%s"}}`, i+1, strings.Repeat("x", size)))
	}
	for range 2 {
		<-begun
	}
	select {
	case size := <-begun:
		t.Errorf("a call with %d bytes is made without room for it", size)
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	for range 2 {
		<-begun
	}
	for range calls {
		g.read()
	}
	h.end(t, g)
}

// TestLargeResultsDoNotPileUp has a guest that asks for many large results at once and reads none.
func TestLargeResultsDoNotPileUp(t *testing.T) {
	const size, calls = 16 << 20, 16
	text := strings.Repeat("x", size) // one for all: what is added is copies of the bridge
	h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Content: []tool.Content{{Type: "text", Text: text}}}, nil
	}), bridge.Limits{Calls: calls, Concurrency: calls, Write: 2 * time.Second, Traffic: 1 << 30})
	before := heap()
	g := connect(t, h)
	for i := range calls {
		g.write(fmt.Sprintf(`{"type":"call","id":%d,"tool":"u.t","args":{}}`, i+1))
	}
	most := int64(0)
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		most = max(most, heap()-before)
	}
	if most > 3*size {
		t.Errorf("%d MiB are held for a guest that reads nothing", most>>20)
	}
	h.closed(t)
}

func TestClose(t *testing.T) {
	t.Run("twice, before a guest", func(t *testing.T) {
		b, path := listen(t)
		if err := errors.Join(b.Close(), b.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
		if _, err := b.Run(t.Context(), program, account(answer("1"), bridge.Limits{}), func() {}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Run of a closed bridge: %v", err)
		}
	})
	t.Run("before Run, with a guest", func(t *testing.T) {
		b, path := listen(t)
		g := dial(t, path)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := g.ReadMessage(); err == nil {
			t.Error("the guest is still connected")
		}
		if _, err := b.Run(t.Context(), program, account(answer("1"), bridge.Limits{}), func() {}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Run of a closed bridge: %v", err)
		}
	})
	t.Run("while Run waits for a guest", func(t *testing.T) {
		h := open(t, answer("1"), bridge.Limits{})
		_ = h.Close()
		if _, err := h.wait(t); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Run("while calls run", func(t *testing.T) {
		begun, cancelled := make(chan struct{}, 1), make(chan struct{}, 1)
		h := open(t, block(begun, cancelled), bridge.Limits{})
		connect(t, h).write(`{"type":"call","id":1,"tool":"a.b"}`)
		receive(t, "call begun", begun, 1)
		_ = h.Close()
		if _, err := h.wait(t); !errors.Is(err, net.ErrClosed) || len(cancelled) != 1 {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Run("as soon as a guest has come in", func(t *testing.T) {
		for range 50 {
			b, path := listen(t)
			dial(t, path)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("after Run", func(t *testing.T) {
		h := open(t, answer("1"), bridge.Limits{})
		connect(t, h).write(`{"type":"done"}`)
		if _, err := h.wait(t); err != nil {
			t.Error(err)
		}
		if err := errors.Join(h.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestListen(t *testing.T) {
	_, path := listen(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != os.ModeSocket|0o666 {
		t.Errorf("the socket is %v", info.Mode())
	}
	for name, path := range map[string]string{"in use": path, "no folder": "/nonexistent/b.sock", "too long": filepath.Join(filepath.Dir(path), strings.Repeat("x", 120))} {
		if b, err := bridge.Listen(path, bridge.Options{}); err == nil {
			t.Errorf("%s: listens", name)
			_ = b.Close()
		}
	}
}

func TestSecondConnection(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	early, err := net.Dial("unix", h.path) // connected before the guest, speaks after it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = early.Close() }()
	g := connect(t, h)
	if _, err := net.Dial("unix", h.path); !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a second connection: %v", err)
	}
	if got := speak(t, early, upgrade("GET /v1", "")); !strings.HasPrefix(got, "HTTP/1.1 403 ") && got != "" {
		t.Errorf("a connection from before the guest's was answered: %q", got)
	}
	g.ask(`{"type":"call","id":1,"tool":"a.b"}`)
}
