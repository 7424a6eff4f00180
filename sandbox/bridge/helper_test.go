package bridge_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// callerFunc answers calls.
type callerFunc func(ctx context.Context, call tool.Call) (tool.Result, error)

func (f callerFunc) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return f(ctx, call)
}

// answer answers every call with the same structured content.
func answer(json string) callerFunc {
	return func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Structured: []byte(json)}, nil
	}
}

// block waits in every call until it is cancelled, and says so on both channels.
func block(begun, cancelled chan<- struct{}) callerFunc {
	return func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		cancelled <- struct{}{}
		return tool.Result{}, ctx.Err()
	}
}

// outcome is what Run returned.
type outcome struct {
	report bridge.Report
	err    error
}

// host is a bridge whose Run goes on.
type host struct {
	*bridge.Bridge
	path    string
	started chan struct{}
	ended   chan outcome
	cancel  context.CancelCauseFunc
	report  bridge.Report // when wait has returned
}

// program is what the hosts of all tests run, unless they say otherwise.
var program = bridge.Program{Code: "1", ValueLimit: 100}

// listen opens a bridge that nobody runs yet. At the end of the test nothing of it may be left.
func listen(tb testing.TB) (*bridge.Bridge, string) {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "br-") //nolint:usetesting // the paths of TempDir are too long for sockets
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, "b.sock")
	b, err := bridge.Listen(path, bridge.Options{Logger: testutil.Logger(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
		nothingLeft(tb)
		if err := os.Remove(dir); err != nil && errors.Is(err, os.ErrExist) {
			tb.Errorf("the socket is left: %v", err)
		}
	})
	return b, path
}

// account is the one of all tests.
func account(caller bridge.Caller, limits bridge.Limits) bridge.Account {
	return bridge.Account{Execution: "e-1", Caller: caller, Limits: limits}
}

// open starts a bridge and its Run.
func open(tb testing.TB, caller bridge.Caller, limits bridge.Limits) *host {
	tb.Helper()
	return openFor(tb, program, caller, limits)
}

func openFor(tb testing.TB, program bridge.Program, caller bridge.Caller, limits bridge.Limits) *host {
	tb.Helper()
	b, path := listen(tb)
	ctx, cancel := context.WithCancelCause(context.Background())
	h := &host{Bridge: b, path: path, started: make(chan struct{}), ended: make(chan outcome, 1), cancel: cancel}
	go func() {
		report, err := b.Run(ctx, program, account(caller, limits), func() { close(h.started) })
		h.ended <- outcome{report, err}
	}()
	tb.Cleanup(func() { cancel(nil) }) // before Close of listen
	return h
}

// wait returns what Run returned, which must come soon.
func (h *host) wait(tb testing.TB) (bridge.ProgramResult, error) {
	tb.Helper()
	select {
	case o := <-h.ended:
		h.report = o.report
		return o.report.Result, o.err
	case <-time.After(30 * time.Second):
		tb.Fatalf("Run goes on:\n%s", stacks())
		return bridge.ProgramResult{}, nil
	}
}

// closed checks that the bridge ended without a report.
func (h *host) closed(tb testing.TB) {
	tb.Helper()
	if done, err := h.wait(tb); !errors.Is(err, bridge.ErrClosed) || done != (bridge.ProgramResult{}) {
		tb.Errorf("Run returned %+v, %v; want ErrClosed", done, err)
	}
}

// end lets the guest report the program's end, and returns what Run did.
func (h *host) end(tb testing.TB, g *guest) bridge.Report {
	tb.Helper()
	g.write(`{"type":"done"}`)
	if _, err := h.wait(tb); err != nil {
		tb.Errorf("Run: %v", err)
	}
	return h.report
}

// guest is a client that a test plays.
type guest struct {
	tb testing.TB
	*websocket.Conn
}

// connect dials the bridge and takes the program's frame.
func connect(tb testing.TB, h *host) *guest {
	tb.Helper()
	g := dial(tb, h.path)
	if frame := g.read(); !strings.HasPrefix(frame, `{"type":"run",`) {
		tb.Fatalf("the first frame is %q", frame)
	}
	return g
}

func dial(tb testing.TB, path string) *guest {
	tb.Helper()
	conn, response, err := dialer(path).Dial("ws://sallyport/v1", nil)
	if err != nil {
		tb.Fatal(err)
	}
	_ = response.Body.Close()
	tb.Cleanup(func() { _ = conn.Close() })
	return &guest{tb: tb, Conn: conn}
}

func dialer(path string) *websocket.Dialer {
	return &websocket.Dialer{ReadBufferSize: 64 << 10, NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
}

// write sends one text frame.
func (g *guest) write(frame string) {
	g.tb.Helper()
	if err := g.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		g.tb.Fatalf("send %.100q: %v", frame, err)
	}
}

// read receives one text frame.
func (g *guest) read() string {
	g.tb.Helper()
	_ = g.SetReadDeadline(time.Now().Add(30 * time.Second))
	kind, data, err := g.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		g.tb.Fatalf("receive: type %d, %v", kind, err)
	}
	return string(data)
}

// ask sends one frame and returns the answer.
func (g *guest) ask(frame string) string {
	g.tb.Helper()
	g.write(frame)
	return g.read()
}

// receive waits for n signals, which must come soon.
func receive(tb testing.TB, what string, signals <-chan struct{}, n int) {
	tb.Helper()
	for i := range n {
		select {
		case <-signals:
		case <-time.After(30 * time.Second):
			tb.Fatalf("%s: %d of %d", what, i, n)
		}
	}
}

// nothingLeft fails if a goroutine of the bridge, of its server or of a websocket is still there.
func nothingLeft(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		left := leaks()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Errorf("%d goroutines left, the first is:\n%s", len(left), left[0])
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func leaks() []string {
	var left []string
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		for _, owner := range []string{"sallyport/sandbox/bridge.", "gorilla/websocket", "net/http.(*"} {
			if strings.Contains(stack, owner) && !strings.Contains(stack, "testing.tRunner") {
				left = append(left, stack)
				break
			}
		}
	}
	return left
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
