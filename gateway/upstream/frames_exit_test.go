package upstream

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/budget"
	"sallyport/gateway/upstream/process"
)

// TestWriteToEndedProcess checks that a message to a process that has exited fails with its exit status.
func TestWriteToEndedProcess(t *testing.T) {
	t.Parallel()
	p, err := process.Start(t.Context(), process.Command{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	c := newStdioConn(p, 1<<20, budget.New(1<<20), slog.New(slog.DiscardHandler), redactor{})
	if _, err := c.Read(t.Context()); err == nil || err.Error() != "exited with status 0" {
		t.Errorf("Read: %v", err)
	}
	if err := c.Write(t.Context(), &jsonrpc.Request{Method: "initialize"}); err == nil || !strings.Contains(err.Error(), "exited with status 0") {
		t.Errorf("Write: %v", err)
	}
	_ = c.Close() // the input may be closed already
}

// TestExitBeforeHandshake checks that a process that ends before anything is written to it is said to have failed, with its
// words, whichever notices first: who reads its output, or who writes the first message.
func TestExitBeforeHandshake(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := New(Settings{ID: "mem", Command: "sh", Args: []string{"-c", "echo 'Error: no token' >&2; exit 7"}}, nil)
		dial := s.dialer.dialCarrier
		s.dialer.dialCarrier = func(ctx context.Context) (*carrier, error) {
			c, err := dial(ctx)
			for err == nil && s.dialer.process.Load().Pid() != 0 {
				time.Sleep(time.Millisecond)
			}
			return c, err
		}
		err := s.Connect(t.Context())
		s.Close()
		if err == nil || !strings.Contains(err.Error(), "exited with status 7; stderr: Error: no token") {
			t.Fatalf("the error is %v", err)
		}
	}
}
