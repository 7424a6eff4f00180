package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox/workers"
)

// workersSite is a gateway whose programs run on workers, with the credentials that cluster init wrote.
type workersSite struct {
	*flowsSite

	servers, keys string
	processes     map[string]*exec.Cmd
}

// TestWorkers has a gateway and two workers. One is killed in the middle of a program, and the other drains in the middle of one.
func TestWorkers(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	s.join(t, "w1")
	s.join(t, "w2")
	s.serve(t)
	testutil.Eventually(t, "both have joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })
	if out, err := s.command("cluster", "status").CombinedOutput(); err != nil || !regexp.MustCompile(`(?m)^w1 +2 +0 +ready +- .*zone=w1$`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
	if answer := <-s.execute(t, "6*7"); answer.Status != "ok" || string(answer.Result) != "42" {
		t.Errorf("%+v", answer)
	}

	s.wantMetrics(t, `sallyport_workers{state="ready"} 2`, `sallyport_worker_seats{worker="w1"} 2`, `sallyport_worker_running{worker="w2"} 0`)
	s.wantPrograms(t, 1)

	lost := s.execute(t, "import time\ntime.sleep(20)\n'at last'")
	victim := s.kill(t)
	if answer := <-lost; string(answer.Result) != `"at last"` || !strings.Contains(answer.raw, "worker "+victim+") was lost") {
		t.Errorf("a program whose worker was killed: %s", answer.raw)
	}
	s.wantMetrics(t, `sallyport_worker_executions_total{outcome="lost",worker="`+victim+`"} 1`)
	if answer := <-s.execute(t, "'again'"); string(answer.Result) != `"again"` {
		t.Errorf("the next program: %s", answer.raw)
	}

	// It takes longer than cluster status twice on a slow machine.
	last := s.execute(t, "from servers.toy import echo\nimport time\ntime.sleep(25)\necho(text='a call')\n'ended'")
	left := s.busy(t)
	if left == victim {
		t.Fatalf("a program runs on %s, which was killed", left)
	}
	if err := s.processes[left].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it drains", workersPatience, func() bool {
		found := s.workers(t)
		return len(found) > 0 && found[len(found)-1].Draining
	})
	if answer := <-last; string(answer.Result) != `"ended"` {
		t.Errorf("a program on a worker that drains: %s", answer.raw)
	}
	if err := s.processes[left].Wait(); err != nil {
		t.Errorf("a drained worker: %v", err)
	}
	if answer := <-s.execute(t, "1"); !strings.Contains(answer.raw, "sallyport worker --join") {
		t.Errorf("without workers: %s", answer.raw)
	}
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}

func newWorkersSite(t *testing.T) *workersSite {
	t.Helper()
	s := &workersSite{flowsSite: newFlowsSite(t), processes: map[string]*exec.Cmd{}}
	s.keys = filepath.Join(s.dir, "keys")
	if out, err := s.command("cluster", "init", s.keys, "--worker", "w1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := s.command("cluster", "init", s.keys, "--worker", "w2").CombinedOutput(); err != nil || string(out) != filepath.Join(s.keys, "w2.creds")+"\n" {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := s.command("cluster", "init", s.keys, "--worker", "w2").CombinedOutput(); err == nil {
		t.Errorf("credentials are overwritten: %s", out)
	}
	s.servers = natscluster.StartPlain(t, filepath.Join(s.keys, "nats-accounts.conf")).URL()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		changed := strings.Replace(string(text), "sandbox: {", "sandbox: {remote: workers, timeout: 5m, parallel: 8, ", 1)
		err = os.WriteFile(path, fmt.Appendf(nil, "%sstore: {url: %q, creds: keys/gateway.creds}\n", changed, s.servers), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// join starts a worker.
func (s *workersSite) join(t *testing.T, name string) {
	t.Helper()
	s.joinWith(t, name, "--creds", filepath.Join(s.keys, name+".creds"))
}

// workers are those that cluster status shows.
func (s *workersSite) workers(t *testing.T) []workers.Worker {
	t.Helper()
	out, err := s.command("cluster", "status", "--json").Output()
	var found struct{ Workers []workers.Worker }
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return found.Workers
}

// wantMetrics wants lines of the gateway's metrics.
func (s *workersSite) wantMetrics(t *testing.T, lines ...string) {
	t.Helper()
	_, page := s.ask(t, http.MethodGet, "/metrics", "", "Authorization: Bearer "+flowsToken)
	for _, line := range lines {
		if !strings.Contains(string(page), line+"\n") {
			t.Errorf("the metrics have no %s:\n%s", line, regexp.MustCompile(`(?m)^sallyport_worker.*`).FindAll(page, -1))
		}
	}
}

// wantPrograms wants that each of the two workers has a count of programs that have ended, and that they are n together. Either may have
// run a program.
func (s *workersSite) wantPrograms(t *testing.T, n int) {
	t.Helper()
	_, page := s.ask(t, http.MethodGet, "/metrics", "", "Authorization: Bearer "+flowsToken)
	counts, sum := regexp.MustCompile(`(?m)^sallyport_worker_executions_total\{outcome="ended",worker="w[12]"\} (\d+)$`).FindAllSubmatch(page, -1), 0
	for _, c := range counts {
		one, _ := strconv.Atoi(string(c[1])) // digits
		sum += one
	}
	if len(counts) != 2 || sum != n {
		t.Errorf("programs that have ended, by worker: %q, want %d in all", counts, n)
	}
}

// busy waits until a worker runs a program, and returns its name.
func (s *workersSite) busy(t *testing.T) (name string) {
	t.Helper()
	testutil.Eventually(t, "a worker runs a program", workersPatience, func() bool {
		for _, w := range s.workers(t) {
			if w.Busy > 0 {
				name = w.Name
			}
		}
		return name != ""
	})
	return name
}

// workersPatience is for a slow machine.
const workersPatience = 90 * time.Second

// executed is the answer to a program.
type executed struct {
	ID, Status, Resume string
	Result             json.RawMessage
	raw                string
}

// execute runs a program at the gateway.
func (s *flowsSite) execute(t *testing.T, code string) <-chan executed {
	t.Helper()
	return s.send(t, map[string]any{"language": "python", "code": code})
}

// send sends a program, and again while the answer is that the store of records does not answer and nothing was done: so does a client that
// heeds Retry-After.
func send(req *http.Request) (e executed) {
	for began := time.Now(); ; time.Sleep(time.Second) {
		if e = sendOnce(req); !strings.Contains(e.raw, storeBusy) || time.Since(began) > workersPatience || req.Context().Err() != nil {
			return e
		}
		req.Body, _ = req.GetBody() // of a reader of a string, which has no error
	}
}

// storeBusy is a part of the answer to new work while the store of records does not answer: on a busy machine its servers may be slow for a moment.
const storeBusy = "the store of records does not answer, so nothing new is started"

func sendOnce(req *http.Request) (e executed) {
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return executed{raw: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	e.raw = fmt.Sprint(response.Status, " ", string(data), err)
	_ = json.Unmarshal(data, &e) // raw shows what is no JSON
	return e
}
