package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// aboutTask sends a request of a client that handles tasks, and returns the answer. named is the tool or the task.
func (s *flowsSite) aboutTask(t *testing.T, token, method, named, params string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+
		`{"extensions":{"io.modelcontextprotocol/tasks":{}}}},%s}}`, method, params)
	_, answer := s.ask(t, http.MethodPost, "/mcp", body, "Authorization: Bearer "+token, "Content-Type: application/json", "Accept: application/json, text/event-stream",
		"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+named)
	return string(answer)
}

// TestTasksOfLostGateway has two gateways that share a store. A client gets a task at one, which is killed: the other one answers for it,
// for this client alone.
func TestTasksOfLostGateway(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	lab := &upstreamtest.Tasks{Modern: true}
	web := httptest.NewServer(lab)
	t.Cleanup(web.Close)
	c := natscluster.Start(t, 1)
	one, two := newTasksSite(t, c, web.URL), newTasksSite(t, c, web.URL)
	one.serve(t, "--mode", "direct")
	two.serve(t, "--mode", "direct")
	var begun struct {
		Result struct{ ResultType, TaskID string }
	}
	answer := one.aboutTask(t, flowsToken, "tools/call", "lab__work", `"name":"lab__work","arguments":{"as":"held"}`)
	_, data, _ := strings.Cut(answer, "{") // it may be an event
	if err := json.Unmarshal([]byte("{"+strings.TrimSpace(data)), &begun); err != nil || begun.Result.ResultType != "task" {
		t.Fatalf("%v: %s", err, answer)
	}
	id := begun.Result.TaskID
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.cmd.Wait() // killed
	state := func(token string) string {
		return two.aboutTask(t, token, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
	}
	if got := state(flowsToken); !strings.Contains(got, `"status":"working"`) || !strings.Contains(got, id) {
		t.Errorf("at another gateway: %s", got)
	}
	polls := lab.Polls("held")
	if got := state(eveToken); !strings.Contains(got, "Task not found") || lab.Polls("held") != polls {
		t.Errorf("of another principal: %s", got)
	}
	lab.Release()
	if got := state(flowsToken); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("at its end: %s", got)
	}
	if n := lab.Calls(); n != 1 {
		t.Errorf("%d tasks were made", n)
	}
	if err := stop(two.cmd); err != nil {
		t.Error(err)
	}
}

// newTasksSite is a site with its records in a cluster, and with a server of tasks.
func newTasksSite(t *testing.T, c *natscluster.Cluster, url string) *flowsSite {
	t.Helper()
	s := newSharedSite(t, c, c.Creds)
	s.replace(t, "replicas: 3", "replicas: 1")
	s.replace(t, "ops: "+flowsToken, "ops: "+flowsToken+", eve: "+eveToken)
	s.addUpstream(t, "lab: {url: "+url+"}")
	return s
}

// replace changes a text of the settings.
func (s *flowsSite) replace(t *testing.T, before, after string) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), before, after, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
