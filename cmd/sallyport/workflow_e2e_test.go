package main_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/testutil"
)

const flowsSecret, flowsToken = "a-secret-for-a-test", "a-token-for-a-test"

// flowsSite is a folder with workflows, and a gateway that serves it.
type flowsSite struct {
	dir, url string
	program  string // that its commands are, another build than this; "" is this
	cmd      *exec.Cmd
	logs     []<-chan string // of each process that served, after its end
}

func newFlowsSite(t *testing.T) *flowsSite {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "flows-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{
		"upstreams.yaml": "upstreams: {toy: {command: toyserver, args: [echo]}}\nprofiles: [workflows]\nsandbox: {pool: {max: 0, min: 0}}\n" +
			"http: {tokens: {ops: " + flowsToken + "}, operators: [ops]}\nworkflows: {secrets: {builds: " + flowsSecret + "}}\n",
		"workflows/tick.yaml":   "on: {schedule: [{every: 1s}]}\nsteps: [{id: tick, tool: toy.echo, with: {text: tick}}]\n",
		"workflows/hooked.yaml": "on: {webhook: {secret: builds}}\ninputs: {ref: {type: string}}\nsteps: [{id: say, tool: toy.echo, with: {text: \"${{ inputs.ref }}\"}}]\noutputs: {said: {value: \"${{ steps.say.output }}\"}}\n",
		"workflows/long.yaml":   "expose: true\nsteps: [{id: one, tool: toy.echo, with: {text: one}}, {id: pause, wait: 3s}, {id: two, tool: toy.echo, with: {text: \"after ${{ steps.one.output }}\"}}]\noutputs: {all: {value: \"${{ steps.two.output }}\"}}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &flowsSite{dir: dir}
}

// serve starts the gateway.
func (s *flowsSite) serve(t *testing.T, more ...string) {
	t.Helper()
	s.cmd = s.command(append([]string{"serve", "--http", "127.0.0.1:0"}, more...)...)
	url, log := startListening(t, s.cmd)
	s.url, s.logs = strings.TrimSuffix(url, "/mcp"), append(s.logs, log)
}

// command runs sallyport with the settings and folders of the site.
func (s *flowsSite) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(s.program, "sallyport"), append(args, "--config", filepath.Join(s.dir, "upstreams.yaml"))...)
	cmd.Env = append(os.Environ(), "TMPDIR="+s.dir, "XDG_RUNTIME_DIR="+s.dir, "XDG_CACHE_HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir)
	return cmd
}

// api asks the API, and reads the answer. It asks again while the store of records does not answer.
func (s *flowsSite) api(t *testing.T, method, path, body string, into any) {
	t.Helper()
	var status int
	var data []byte
	testutil.Eventually(t, "the store of records answers", workersPatience, func() bool {
		status, data = s.ask(t, method, "/api"+path, body, "Authorization: Bearer "+flowsToken)
		return status != http.StatusServiceUnavailable || !strings.Contains(string(data), storeBusy)
	})
	if err := json.Unmarshal(data, into); err != nil || status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, data)
	}
}

func (s *flowsSite) ask(t *testing.T, method, path, body string, headers ...string) (status int, answer []byte) {
	t.Helper()
	got := testutil.Request(t, method, s.url+path, body, headers...)
	return got.Status, got.Body
}

// signatureHeaders are the headers of a webhook, by the secret of the settings.
func signatureHeaders(id, body string) []string {
	now := fmt.Sprint(time.Now().Unix())
	sum := hmac.New(sha256.New, []byte(flowsSecret))
	fmt.Fprintf(sum, "%s.%s.%s", id, now, body)
	return []string{"webhook-id: " + id, "webhook-timestamp: " + now, "webhook-signature: v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))}
}

// TestWorkflowsServed: a gateway starts runs by request, webhook and clock; killed in the middle of one it goes on with it at the
// next start, and does nothing twice.
func TestWorkflowsServed(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newFlowsSite(t)
	s.serve(t)
	var long workflow.Run
	s.api(t, http.MethodPost, "/workflows/long/runs", `{"key":"k"}`, &long)
	s.hooks(t)
	var health httpapi.Health
	s.api(t, http.MethodGet, "/health", "", &health)
	if last := health.Upstreams[len(health.Upstreams)-1]; !health.Workflows || last.ID != "workflows" || last.Status != "ready" {
		t.Errorf("health: %+v", health)
	}
	await(t, "the clock starts a run", func() bool {
		var list httpapi.RunList
		s.api(t, http.MethodGet, "/runs?workflow=tick&status=ok", "", &list)
		return len(list.Runs) > 0 && list.Runs[0].Trigger == "schedule"
	})
	await(t, "the long run waits", func() bool {
		s.api(t, http.MethodGet, "/runs/"+long.ID, "", &long)
		return long.Status == workflow.Waiting || long.Status.Over()
	})
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // killed
	s.serve(t)
	await(t, "the long run is over", func() bool {
		s.api(t, http.MethodGet, "/runs/"+long.ID+"?wait=10", "", &long)
		return long.Status.Over()
	})
	if long.Status != workflow.OK || string(long.Outputs) != `{"all":"toy got after toy got one"}` {
		t.Errorf("the long run: %+v %s", long, long.Outputs)
	}
	s.once(t, long.ID)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// hooks sends webhooks: a signed one starts a run, once for two deliveries; without the secret nothing starts.
func (s *flowsSite) hooks(t *testing.T) {
	t.Helper()
	const body = `{"ref":"main"}`
	ids := map[string]bool{}
	for range 2 {
		status, answer := s.ask(t, http.MethodPost, "/hooks/hooked", body, signatureHeaders("one", body)...)
		var got struct{ Run string }
		if err := json.Unmarshal(answer, &got); err != nil || status != http.StatusAccepted {
			t.Fatalf("webhook: %d %s", status, answer)
		}
		ids[got.Run] = true
		var run workflow.Run
		s.api(t, http.MethodGet, "/runs/"+got.Run+"?wait=10", "", &run)
		if run.Status != workflow.OK || !bytes.Contains(run.Outputs, []byte("toy got main")) || run.Trigger != "webhook" {
			t.Errorf("run of the webhook: %+v %s", run, run.Outputs)
		}
	}
	if len(ids) != 1 {
		t.Errorf("the same request started %v", ids)
	}
	if status, answer := s.ask(t, http.MethodPost, "/hooks/hooked", body+" ", signatureHeaders("two", body)...); status != http.StatusUnauthorized {
		t.Errorf("a body that was not signed: %d %s", status, answer)
	}
	if status, _ := s.ask(t, http.MethodGet, "/api/runs", ""); status != http.StatusUnauthorized {
		t.Errorf("who has no token sees runs: %d", status)
	}
}

// once checks that no step of a run was made twice.
func (s *flowsSite) once(t *testing.T, id string) {
	t.Helper()
	var list httpapi.EventList
	s.api(t, http.MethodGet, "/runs/"+id+"/events", "", &list)
	began, claimed := map[string]int{}, 0
	for _, e := range list.Events {
		switch e.Kind {
		case runlog.Began:
			began[e.Path]++
		case runlog.Claimed:
			claimed++
		}
	}
	if began["one"] != 1 || began["two"] != 1 || claimed != 2 || !list.Over {
		t.Errorf("steps began %v, it was claimed %d times: %+v", began, claimed, list.Events)
	}
	if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "sallyport", "--data", filepath.Join(s.dir, "sallyport"), "workflow", "log", id).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("waited")) {
		t.Errorf("log: %v\n%s", err, out)
	}
}
