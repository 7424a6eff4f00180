package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// instanceSites are two gateways of one store, with an upstream that has one process for both.
type instanceSites struct {
	marker string // an argument of the process
	sites  []*flowsSite
}

// processes returns the process of the upstream of each gateway, 0 for none.
func (w *instanceSites) processes(t *testing.T) []int {
	t.Helper()
	found := make([]int, len(w.sites))
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, _ := os.ReadFile(path) // it may have ended
		if !bytes.HasPrefix(line, []byte("node\x00")) || !bytes.Contains(line, []byte("\x00"+w.marker+"\x00")) {
			continue
		}
		variables, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		for i, s := range w.sites {
			if bytes.Contains(variables, []byte("XDG_DATA_HOME="+s.dir)) {
				_, _ = fmt.Sscanf(path, "/proc/%d/", &found[i])
			}
		}
	}
	return found
}

// wantRunner wants that one gateway runs the process, and no other.
func (w *instanceSites) wantRunner(t *testing.T, at int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("gateway %d alone runs the process", at), time.Minute, func() bool {
		for i, pid := range w.processes(t) {
			if (pid != 0) != (i == at) {
				return false
			}
		}
		return true
	})
}

// research calls a tool at a gateway that becomes a task, asks the client, and reports progress.
func (w *instanceSites) research(t *testing.T, at int) error {
	t.Helper()
	progressed := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"interpretation": "snake"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { progressed <- req.Params.Message },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.sites[at].url + "/mcp?mode=direct", HTTPClient: &http.Client{Transport: bearer(flowsToken)}}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	params := &mcp.CallToolParams{Name: "every__simulate_research_query", Arguments: map[string]any{"topic": "python", "ambiguous": true}}
	params.SetProgressToken("p")
	result, err := session.CallTool(t.Context(), params)
	if err != nil {
		return err
	}
	if text := result.Content[0].(*mcp.TextContent).Text; result.IsError || !strings.Contains(text, "python (snake)") {
		return fmt.Errorf("the result is %.500s", text)
	}
	select {
	case <-progressed:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("there is no progress")
	}
}

// offer returns what a gateway shows to clients in a mode.
func (w *instanceSites) offer(t *testing.T, at int, mode string) string {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.sites[at].url + "/mcp?mode=" + mode, HTTPClient: &http.Client{Transport: bearer(flowsToken)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := []any{session.InitializeResult().Instructions, tools}
	if mode == "direct" {
		resources, err := session.ListResources(t.Context(), nil)
		templates, err2 := session.ListResourceTemplates(t.Context(), nil)
		prompts, err3 := session.ListPrompts(t.Context(), nil)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		all = append(all, resources, templates, prompts)
	} else {
		found, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "every", "detail": "full"}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found.Content)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestInstanceOfCluster has an upstream with instances: one at two gateways: each reaches the one process, with questions and
// progress. The other gateway runs it when the first has stopped or is killed, and a gateway that has stopped for a while ends its
// process when it goes on.
func TestInstanceOfCluster(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	w := &instanceSites{marker: "one-" + strings.ToLower(t.Name()), sites: []*flowsSite{newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)}}
	script := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	for _, s := range w.sites {
		s.replaceSettings(t, "upstreams: {", fmt.Sprintf("upstreams: {every: {command: node, args: [%q, stdio, %q], instances: one}, ", script, w.marker))
		s.serve(t)
		if err := w.research(t, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.research(t, 1); err != nil {
		t.Fatal(err)
	}
	w.wantRunner(t, 0)
	for _, mode := range []string{"direct", "code"} {
		if here, there := w.offer(t, 0, mode), w.offer(t, 1, mode); here != there {
			t.Errorf("mode %s: the gateway that runs the process shows\n%s\nand the other one\n%s", mode, here, there)
		}
	}

	first := w.sites[0].cmd.Process
	if err := first.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the other gateway runs the process", 2*time.Minute, func() bool { return w.research(t, 1) == nil })
	if err := first.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.wantRunner(t, 1)
	testutil.Eventually(t, "the first gateway reaches the process", time.Minute, func() bool { return w.research(t, 0) == nil })
	w.wantRunner(t, 1)

	w.sites[1].kill(t)
	testutil.Eventually(t, "the first gateway runs the process again", 2*time.Minute, func() bool { return w.research(t, 0) == nil })
	w.wantRunner(t, 0)
	if err := stop(w.sites[0].cmd); err != nil {
		t.Error(err)
	}
	for _, pid := range w.processes(t) {
		if pid != 0 {
			t.Errorf("process %d is left", pid)
		}
	}
}
