package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// elsewhere is a place for the process of an upstream: another gateway while it has a server, else this one until lost is closed.
type elsewhere struct {
	t *testing.T

	mu     sync.Mutex
	server *mcp.Server
	err    error
	lost   chan struct{}
	conn   net.Conn
	left   bool
}

// Leave implements [upstream.Single].
func (e *elsewhere) Leave(context.Context, string) { e.set(func() { e.left = true }) }

// Join implements [upstream.Single].
func (e *elsewhere) Join(ctx context.Context, _ string) (io.ReadWriteCloser, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.server == nil {
		return nil, e.lost, e.err
	}
	ours, theirs := net.Pipe()
	e.conn = theirs
	_, err := e.server.Connect(context.WithoutCancel(ctx), &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil)
	return ours, nil, err
}

func (e *elsewhere) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// TestSingle: an upstream with instances: one is called at the gateway that runs it, and started here when that is this one,
// until it is another one again.
func TestSingle(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "where", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("far", 100_000)}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "down", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		meta := mcp.Meta{tool.MetaError: map[string]any{"kind": tool.Timeout, "message": "mem.down gave no answer", "hint": "wait", "retryable": true, "rule": "none"}}
		return &mcp.CallToolResult{Meta: meta, IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "mem.down gave no answer (wait)"}}}, nil
	})
	e := &elsewhere{t: t, server: server, lost: make(chan struct{})}
	s := open(t, upstream.Settings{ID: "mem", Command: "sh", Args: []string{"-c", "echo 'no server here' >&2; sleep 60"}, Instances: config.InstancesOne}, &upstream.Options{Single: e, ConnectTimeout: 2 * time.Second})
	where := func() error {
		result, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "mem", Name: "where"}})
		if err == nil && !strings.Contains(string(result.Raw), "farfar") {
			err = errors.New("the result is " + string(result.Raw))
		}
		return err
	}
	if err := where(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "mem", Name: "down"}})
	if down := wantError(t, err, tool.Timeout, "mem.down gave no answer"); !down.Retryable || down.Hint != "wait" || down.Rule != "" {
		t.Errorf("the error of the other gateway is %+v", down)
	}
	if s.State().PID != 0 {
		t.Error("a process that runs elsewhere has an ID")
	}
	e.set(func() { _ = e.conn.Close() })
	testutil.Eventually(t, "it connects again", time.Minute, func() bool { return where() == nil })

	e.set(func() { e.err = errors.New("the gateway that runs it cannot be reached"); _ = e.conn.Close() })
	testutil.Eventually(t, "the reason is known", time.Minute, func() bool {
		err := where()
		return err != nil && strings.Contains(err.Error(), "the gateway that runs it cannot be reached")
	})

	e.set(func() { e.err, e.server = nil, nil })
	var pid int
	testutil.Eventually(t, "the process runs here", time.Minute, func() bool {
		s.Reset()
		go func() { _ = s.Connect(t.Context()) }()
		pid = s.State().PID
		return pid != 0
	})
	e.set(func() { e.server = server; close(e.lost) })
	testutil.Eventually(t, "the process has ended", time.Minute, func() bool { return s.State().PID == 0 })
	testutil.Eventually(t, "it is called elsewhere again", time.Minute, func() bool {
		s.Reset()
		return where() == nil
	})
}

// TestSingleCannotStart: another gateway may run an upstream whose command is missing here.
func TestSingleCannotStart(t *testing.T) {
	t.Parallel()
	e := &elsewhere{t: t, lost: make(chan struct{})}
	s := open(t, upstream.Settings{ID: "mem", Command: "./no-such-command", Instances: config.InstancesOne}, &upstream.Options{Single: e, ConnectTimeout: 10 * time.Second})
	if err := s.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-command") {
		t.Errorf("a missing command: %v", err)
	}
	e.set(func() {
		if !e.left {
			t.Error("other gateways cannot run it")
		}
	})
}
