package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// TestUnansweredCallIsNamed: a program that is stopped since a tool does not answer says which.
func TestUnansweredCallIsNamed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	mail := newSite(t, func(s *site) {
		s.tool("wait", "Wait.", "", func(json.RawMessage) *mcp.CallToolResult { <-release; return text("late") })
		s.tool("read", "Read.", "", echo)
	})
	t.Cleanup(func() { close(release) })
	g := open(t, withRunsc(t, settings(map[string]*site{"mail": mail})), nil)
	for _, code := range []string{
		"from servers.mail import wait\nwait()",
		"import time\nfrom servers.mail import read\nread()\ntime.sleep(60)",
	} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Timeout: 2 * time.Second})
		if err != nil || e.Status != sandbox.TimedOut {
			t.Fatal(err, e.Text())
		}
		named := strings.Contains(e.Text(), "mail.wait did not answer for 1.") || strings.Contains(e.Text(), "mail.wait did not answer for 2.")
		if waits := strings.Contains(code, "wait()"); named != waits {
			t.Errorf("%s", e.Text())
		}
	}
}
