package upstream

import (
	"log/slog"
	"strings"
	"testing"

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
