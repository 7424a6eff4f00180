package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/httpapi"
	"sallyport/internal/tool"
)

func (house) Running(ctx context.Context) []executor.Live {
	x := executor.Live{ID: "e-live", Principal: "ada", Language: "python", State: executor.LiveRunning, Made: 30, Bytes: 5}
	for i := range 30 {
		x.Calls = append(x.Calls, executor.LiveCall{Tool: tool.ID{Upstream: "crm", Name: fmt.Sprint("t", i)}, Duration: 1500 * time.Microsecond})
	}
	if tool.Principal(ctx) == "ada" || tool.Operator(ctx) != "" {
		return []executor.Live{x}
	}
	return nil
}

// FollowRunning shows e-live three times: its output begins with a gap, and goes on in the middle of a piece.
func (h house) FollowRunning(ctx context.Context, id string, seen func(now executor.Live, over bool) error) error {
	if id != "e-live" {
		if _, err := h.Record(ctx, id); err != nil {
			return err
		}
		return &tool.Error{Kind: tool.Failed, Message: id + " has ended already"}
	}
	for _, now := range []executor.Live{
		{Bytes: 10, Output: []execution.Printed{{Stream: "stdout", Text: "abc"}, {Stream: "stderr", Text: "de"}}},
		{Bytes: 12, Output: []execution.Printed{{Stream: "stderr", Text: "defg"}}},
		{Bytes: 20, Output: []execution.Printed{{Stream: "stdout", Text: "xyz"}}},
	} {
		if err := seen(now, now.Bytes == 20); err != nil {
			return err
		}
	}
	return nil
}

func (h house) CancelExecution(ctx context.Context, id string) error {
	if id == "e-live" {
		return nil
	}
	_, err := h.Record(ctx, id)
	return err
}

// TestEvents: what is printed comes in order, gaps are said, and the end is the same answer as without events.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		route, path, body string
		want              []string
	}{
		{"POST /execute", "", `{"code":"print"}`, []string{
			`event: started|data: {"id":"e-new"}`, `event: output|data: {"stream":"stdout","text":"a\n"}`, `event: output|data: {"stream":"stderr","text":"b"}`, `event: result|data: {"id":"e-new","status":"ok","output":"red"`,
		}},
		{"POST /execute", "", `{"code":"broken"}`, []string{`event: started|data: {"id":"e-new"}`, `event: output`, `event: output`, `event: error|data: {"type":"about:blank","title":"Gateway Timeout","status":504`}},
		{"GET /executions/{id}/output", "/executions/e-live/output", "", []string{
			`event: started|data: {"id":"e-live"}`, `event: dropped|data: {"bytes":5}`, `event: output|data: {"stream":"stdout","text":"abc"}`, `event: output|data: {"stream":"stderr","text":"defg"}`,
			`event: dropped|data: {"bytes":5}`, `event: output|data: {"stream":"stdout","text":"xyz"}`, `event: ended|data: {"id":"e-live"}`,
		}},
	} {
		got := strings.Split(strings.TrimSuffix(send(t, promise{who: "ada", route: test.route, path: test.path, body: test.body, events: true}).Body.String(), "\n\n"), "\n\n")
		if len(got) != len(test.want) {
			t.Fatalf("%s: %q", test.body, got)
		}
		for i, want := range test.want {
			if !strings.HasPrefix(strings.ReplaceAll(got[i], "\n", "|"), want) {
				t.Errorf("%s: event %d is %.300s, not %s", test.route, i, got[i], want)
			}
		}
	}
	if _, _, got := ask(t, "ada", "GET", "/executions/live", ""); len(got["executions"].([]any)[0].(map[string]any)["calls"].([]any)) != 20 {
		t.Errorf("live: %v", got)
	}
	if _, _, got := ask(t, "bob", "GET", "/executions/live", ""); len(got["executions"].([]any)) != 0 {
		t.Errorf("bob sees %v", got)
	}
}

// waits is a house whose programs wait until whoever asked has gone.
type waits struct {
	house
	begun, gone chan struct{}
}

func (w waits) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	if p.OnStart != nil && p.Code != "queued" {
		p.OnStart("e-new")
	}
	if w.begun != nil {
		close(w.begun)
	}
	<-ctx.Done()
	close(w.gone)
	return execution.Result{ID: "e-new"}, nil
}

// TestHeartbeat: a client of a program that prints nothing, or waits for its turn, hears something every 15 seconds.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"silent": "event: started\ndata: {\"id\":\"e-new\"}\n\n", "queued": ""} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/execute", strings.NewReader(`{"code":"`+code+`"}`))
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			httpapi.New(waits{gone: make(chan struct{})}, nil).ServeHTTP(w, r)
			beat := ": nothing new\n\n"
			if got := w.Body.String(); !strings.HasPrefix(got, want+beat+beat+"event: result") {
				t.Errorf("%s: %q", code, got)
			}
		})
	}
}

// dial sends a request over a connection of its own, whose receiving end is small.
func dial(t *testing.T, api http.Handler, body string) net.Conn {
	t.Helper()
	at := httptest.NewServer(api)
	t.Cleanup(at.Close)
	conn, err := net.Dial("tcp", at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /execute HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestClientGoes: the program of a client that hangs up is canceled, with and without events.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	verbs := waits{begun: make(chan struct{}), gone: make(chan struct{})}
	conn := dial(t, httpapi.New(verbs, nil), `{"code":"silent"}`)
	<-verbs.begun
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-verbs.gone:
	case <-time.After(time.Minute):
		t.Fatal("the program goes on without its client")
	}
}

// TestSlowReader: a client that does not read holds neither the program up nor memory, and learns what it has missed.
func TestSlowReader(t *testing.T) { // not parallel: it measures the heap
	ended := make(chan struct{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	conn := dial(t, httpapi.New(tells{house{}, ended}, nil), `{"code":"flood"}`)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the program waits for its reader")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if more := int64(after.HeapAlloc) - int64(before.HeapAlloc); more > 16<<20 { //nolint:gosec // no heap is that large
		t.Errorf("64 MiB that nobody reads hold %d MiB", more>>20)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 16<<20)
	text, missed := int64(0), int64(0)
	for lines.Scan() {
		kind, data, _ := strings.Cut(lines.Text(), " ")
		var n int64
		switch {
		case strings.HasPrefix(data, `{"bytes":`):
			_, err := fmt.Sscanf(data, `{"bytes":%d}`, &n)
			missed += n
			if err != nil {
				t.Fatal(err)
			}
		case kind == "data:" && strings.HasPrefix(data, `{"stream":"stdout","text":"x`):
			text += int64(strings.Count(data, "x") - strings.Count(`"text"`, "x"))
		case data == "result":
			_ = conn.Close()
		}
	}
	if err := lines.Err(); err != nil && !strings.Contains(err.Error(), "closed") && err != io.EOF { //nolint:errorlint // of a scanner
		t.Fatal(err)
	}
	if missed == 0 || text+missed != 64<<20 {
		t.Errorf("of 64 MiB %d bytes came, and %d are said to be missing", text, missed)
	}
}

// tells is a house that says when a program has ended.
type tells struct {
	house
	ended chan struct{}
}

func (h tells) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	defer close(h.ended)
	return h.house.Execute(ctx, p)
}
