package main_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/openapi"
)

// TestOpenAPIServed: a gateway with upstreams, sandboxes and workflows answers as its OpenAPI document says, whoever asks, and is told by
// it as much as a client needs that knows nothing else.
func TestOpenAPIServed(t *testing.T) {
	t.Parallel()
	s := newFlowsSite(t)
	config := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	withRunsc := strings.Replace(string(text), "sandbox: {", "sandbox: {runsc: "+testutil.Runsc(t)+", ", 1)
	if err := os.WriteFile(config, []byte(withRunsc), 0o600); err != nil {
		t.Fatal(err)
	}
	s.serve(t)
	const operator = "Authorization: Bearer " + flowsToken
	status, data := s.ask(t, http.MethodGet, "/openapi.json?profile=clients", "", operator)
	if status != http.StatusOK {
		t.Fatalf("the document: %d %.300s", status, data)
	}
	doc := openapi.Read(t, data)
	ask := func(who, operation, path, body string, status int) (answer map[string]any) {
		t.Helper()
		method, template, _ := strings.Cut(operation, " ")
		if path == "" {
			path = template
		}
		got := s.answer(t, method, path, body, who)
		if got.Status != status {
			t.Errorf("%s: %d, not %d: %.500s", path, got.Status, status, got.Body)
		}
		doc.Check(t, path, operation, got)
		_ = json.Unmarshal(got.Body, &answer)
		return answer
	}
	testutil.Eventually(t, "the gateway is ready", 20*time.Second, func() bool {
		return s.answer(t, http.MethodGet, "/readyz", "", operator).Status == http.StatusOK
	})
	for operation, op := range doc.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		if op["x-scope"] != nil && !strings.Contains(path, "{") {
			ask("Authorization: Bearer wrong", operation, "", "{}", http.StatusUnauthorized)
		}
		if method == http.MethodGet && !strings.Contains(path, "{") && !served[operation] {
			ask(operator, operation, "", "", http.StatusOK)
		}
	}
	ran := ask(operator, "POST /execute", "", `{"code":"from servers.toy import echo\nprint('hi')\necho(text='there')"}`, http.StatusOK)
	if ran["status"] != "ok" || ran["output"] != "hi" {
		t.Errorf("a program: %v", ran)
	}
	id, _ := ran["id"].(string)
	ask(operator, "GET /executions/{id}", "/executions/"+id, "", http.StatusOK)
	ask(operator, "POST /execute", "", `{"code":"1/0"}`, http.StatusOK)
	seen := s.answer(t, http.MethodPost, "/execute", `{"code":"print('now')"}`, operator, "Accept: text/event-stream")
	doc.Check(t, "as it is printed", "POST /execute", seen)
	want(t, "the events", string(seen.Body), "event: started\n", "event: output\n", `"text":"now`, "event: result\n")
	ask(operator, "GET /tools/info/{upstream}/{tool}", "/tools/info/toy/echo", "", http.StatusOK)
	// All arguments in the body, as clients do that make tools of operations.
	called := ask(operator, "POST /tools/call/{upstream}/{tool}", "/tools/call/toy/echo", `{"upstream":"toy","tool":"echo","arguments":{"text":"x"}}`, http.StatusOK)
	if called["isError"] == true {
		t.Errorf("a call: %v", called)
	}
	ask(operator, "POST /tools/call/{upstream}/{tool}", "/tools/call/toy/nothing", `{"arguments":{}}`, http.StatusNotFound)
	run := ask(operator, "POST /workflows/{name}/runs", "/workflows/long/runs", `{}`, http.StatusOK)
	id, _ = run["id"].(string)
	ask(operator, "GET /runs/{id}/events", "/runs/"+id+"/events", "", http.StatusOK)
	ask(operator, "POST /runs/{id}/cancel", "/runs/"+id+"/cancel", `{}`, http.StatusOK)
	ask(operator, "GET /runs/{id}", "/api/runs/"+id+"?wait=5", "", http.StatusOK)
	ask(operator, "GET /runs/{id}", "/runs/r-none", "", http.StatusNotFound)
	ask(operator, "GET /cluster", "", "", http.StatusNotFound) // this gateway is in none
}

// served are operations that answer otherwise than with JSON and status 200 at once.
var served = map[string]bool{"GET /metrics": true, "GET /cluster": true}

// answer is that of the gateway to a request.
func (s *flowsSite) answer(t *testing.T, method, path, body string, headers ...string) openapi.Answer {
	t.Helper()
	got := testutil.Request(t, method, s.url+path, body, headers...)
	return openapi.Answer{Status: got.Status, Header: got.Header, Body: got.Body}
}
