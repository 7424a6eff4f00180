package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// workersBank is an upstream that counts payments by key. A payment with a gate ends when that is opened.
type workersBank struct {
	mu     sync.Mutex
	paid   map[string]int
	gates  map[string]chan struct{}
	passed map[string]bool // what look answers
	seen   map[string]int  // how often bills were looked at
}

type bankKey struct {
	Key string `json:"key"`
}

type bankAnswer struct {
	Done bool `json:"done"`
}

// serve returns the address of the upstream.
func (b *workersBank) serve(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "pay", Description: "Pay a bill."}, b.pay)
	mcp.AddTool(s, &mcp.Tool{Name: "look", Description: "Look at a bill.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, b.look)
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { _ = web.Config.Close() }) // open connections too
	return web.URL
}

func (b *workersBank) pay(_ context.Context, _ *mcp.CallToolRequest, in bankKey) (*mcp.CallToolResult, bankAnswer, error) {
	b.mu.Lock()
	b.paid[in.Key]++
	gate := b.gates[in.Key]
	b.mu.Unlock()
	if gate != nil {
		<-gate // also if nobody waits for the answer
	}
	return nil, bankAnswer{true}, nil
}

func (b *workersBank) look(_ context.Context, _ *mcp.CallToolRequest, in bankKey) (*mcp.CallToolResult, bankAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	b.seen[in.Key]++
	return nil, bankAnswer{b.passed[in.Key]}, nil
}

func (b *workersBank) pass(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed[key] = true
}

// waitsFor reports whether a program waits for a bill: it has looked at it again and again, so the results of earlier calls are on record.
func (b *workersBank) waitsFor(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[key] > 10
}

// wasPaid is how often a bill was paid.
func (b *workersBank) wasPaid(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paid[key]
}

// kill kills the worker that runs a program.
func (s *workersSite) kill(t *testing.T) (name string) {
	t.Helper()
	name = s.busy(t)
	if err := s.processes[name].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.processes[name].Wait() // it was killed
	return name
}

// TestWorkersLost kills the worker of a program. The program runs again on the other one, without a call that is made twice; one with a
// call that may have been done is interrupted.
func TestWorkersLost(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	slow, stuck := make(chan struct{}), make(chan struct{})
	bank := &workersBank{paid: map[string]int{}, gates: map[string]chan struct{}{"slow": slow, "stuck": stuck}, passed: map[string]bool{}}
	s := newWorkersSite(t)
	s.addUpstream(t, "bank: {url: "+bank.serve(t)+"}")
	t.Cleanup(func() { close(stuck) })
	s.join(t, "w1")
	s.join(t, "w2")
	s.serve(t)
	testutil.Eventually(t, "both have joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })

	between := s.execute(t, `import time
from servers.bank import pay, look
pay(key="one")
while not look(key="between")["done"]:
    time.sleep(0.5)
pay(key="two")
"all paid"`)
	testutil.Eventually(t, "the first bill is paid", workersPatience, func() bool { return bank.wasPaid("one") == 1 })
	victim := s.kill(t)
	bank.pass("between")
	s.wantRerun(t, <-between, victim, `"all paid"`)
	if one, two := bank.wasPaid("one"), bank.wasPaid("two"); one != 1 || two != 1 {
		t.Errorf("paid %d and %d times", one, two)
	}
	s.join(t, victim)

	during := s.execute(t, `from servers.bank import pay
pay(key="slow")["done"]`)
	testutil.Eventually(t, "the slow bill is paid", workersPatience, func() bool { return bank.wasPaid("slow") == 1 })
	victim = s.kill(t)
	close(slow)
	s.wantRerun(t, <-during, victim, "true")
	if n := bank.wasPaid("slow"); n != 1 {
		t.Errorf("paid %d times", n)
	}
	s.join(t, victim)

	doubtful := s.execute(t, `from servers.bank import pay
pay(key="stuck")`)
	testutil.Eventually(t, "the bill is paid, and not answered", workersPatience, func() bool { return bank.wasPaid("stuck") == 1 })
	victim = s.kill(t)
	answer := <-doubtful
	if answer.Status != "interrupted" || answer.Resume == "" || !strings.Contains(answer.raw, "may have been done, or not: bank.pay") || !strings.Contains(answer.raw, "worker "+victim) {
		t.Errorf("with a call in doubt: %s", answer.raw)
	}
	if resumed := <-s.send(t, map[string]any{"code": "", "resume": answer.Resume}); resumed.Status != "held" || !strings.Contains(resumed.raw, "may have been done") {
		t.Errorf("resumed: %s", resumed.raw)
	}
	if n := bank.wasPaid("stuck"); n != 1 {
		t.Errorf("paid %d times", n)
	}
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}

// wantRerun checks the answer to a program that ran again.
func (s *workersSite) wantRerun(t *testing.T, answer executed, victim, result string) {
	t.Helper()
	if answer.Status != "ok" || string(answer.Result) != result || !strings.Contains(answer.raw, "worker "+victim+") was lost; it was run again") || !strings.Contains(answer.raw, "answered from the journal") {
		t.Errorf("a program whose worker was killed: %s", answer.raw)
	}
	var record struct{ Status, Resumes string }
	if s.api(t, http.MethodGet, "/executions/"+answer.ID, "", &record); record.Status != "ok" || record.Resumes != "" {
		t.Errorf("its record: %+v", record)
	}
}

// addUpstream adds an upstream to the settings, and has the gateway wait for a person only briefly.
func (s *flowsSite) addUpstream(t *testing.T, upstream string) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		changed := strings.Replace(string(text), "upstreams: {", "upstreams: {"+upstream+", ", 1)
		err = os.WriteFile(path, fmt.Appendf(nil, "%sapproval: {wait: 1s}\n", changed), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// send asks the gateway to run a program.
func (s *flowsSite) send(t *testing.T, program map[string]any) <-chan executed {
	t.Helper()
	return s.sendAs(t, flowsToken, program)
}

// sendAs runs a program as the principal of a token.
func (s *flowsSite) sendAs(t *testing.T, token string, program map[string]any) <-chan executed {
	t.Helper()
	body, err := json.Marshal(program)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/execute", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	answered := make(chan executed, 1)
	go func() { answered <- send(req) }()
	return answered
}

// TestWorkersPlacement has two workers. Programs run on the one with the labels of the settings, or are refused.
func TestWorkersPlacement(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	s.join(t, "w1")
	s.join(t, "w2")
	s.setPlacement(t, "zone=w2")
	s.serve(t)
	testutil.Eventually(t, "both have joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })
	gone := s.execute(t, "import time\ntime.sleep(20)")
	if name := s.busy(t); name != "w2" { // without labels, it would be the first
		t.Errorf("the program runs on %s", name)
	}
	<-gone
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
	s.setPlacement(t, "zone=w3")
	s.serve(t)
	testutil.Eventually(t, "no worker has the label", workersPatience, func() bool {
		answer := <-s.execute(t, "1")
		return strings.Contains(answer.raw, "no worker has the labels zone=w3 of sandbox.placement, but 2 without them have joined")
	})
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}

func (s *workersSite) setPlacement(t *testing.T, label string) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		changed := regexp.MustCompile(`remote: workers(, placement: \[.*?\])?`).ReplaceAllString(string(text), "remote: workers, placement: ["+label+"]")
		err = os.WriteFile(path, []byte(changed), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
