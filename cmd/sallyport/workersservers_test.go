package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox/workers"
)

// TestWorkersServers has three servers with three copies of each record, a gateway and two workers. Each server is killed in turn while
// programs pay bills: each program ends well, each bill is paid once, and each program has a record.
func TestWorkersServers(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	bank := &workersBank{paid: map[string]int{}, gates: map[string]chan struct{}{}, passed: map[string]bool{}}
	s, servers := newServersSite(t)
	s.addUpstream(t, "bank: {url: "+bank.serve(t)+"}")
	for _, name := range []string{"w1", "w2"} {
		rights := workers.WorkerRights("sallyport", name)
		s.joinWith(t, name, "--creds", servers.User(t, name, rights.Publish, rights.Subscribe), "--ca", servers.CA)
	}
	s.serve(t)
	testutil.Eventually(t, "both have joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })
	answers := map[string]<-chan executed{}
	for server := range 3 {
		for i := range 4 {
			key := fmt.Sprintf("%d-%d", server, i)
			answers[key] = s.execute(t, fmt.Sprintf(`import time
from servers.bank import pay, look
pay(key="before-%[1]s")
while not look(key="%[2]d")["done"]:
    time.sleep(0.2)
pay(key="after-%[1]s")
"%[1]s"`, key, server))
		}
		testutil.Eventually(t, "programs run", workersPatience, func() bool { return bank.wasPaid(fmt.Sprintf("before-%d-0", server)) == 1 })
		servers.Kill(t, server)
		bank.pass(fmt.Sprint(server))
		s.wantPaid(t, bank, answers)
		clear(answers)
		servers.Start(t, server)
		testutil.Eventually(t, "the server has all records again", workersPatience, func() bool {
			out, _ := s.command("doctor").CombinedOutput() // other checks may fail
			return regexp.MustCompile(`ok +store: NATS .*3 replicas of`).Match(out)
		})
	}
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}

// wantPaid wants that each program has ended well, and has paid each of its bills once, by its record too.
func (s *workersSite) wantPaid(t *testing.T, bank *workersBank, answers map[string]<-chan executed) {
	t.Helper()
	for key, answered := range answers {
		answer := <-answered
		if string(answer.Result) != `"`+key+`"` || bank.wasPaid("before-"+key) != 1 || bank.wasPaid("after-"+key) != 1 {
			t.Errorf("%s: paid %d and %d times: %s", key, bank.wasPaid("before-"+key), bank.wasPaid("after-"+key), answer.raw)
			continue
		}
		var record struct{ Status string }
		if s.api(t, http.MethodGet, "/executions/"+answer.ID, "", &record); record.Status != "ok" {
			t.Errorf("the record of %s: %+v", key, record)
		}
	}
}

// newServersSite is a site with three servers.
func newServersSite(t *testing.T) (*workersSite, *natscluster.Cluster) {
	t.Helper()
	servers := natscluster.Start(t, 3)
	s := &workersSite{flowsSite: newFlowsSite(t), processes: map[string]*exec.Cmd{}, servers: servers.URL()}
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		changed := strings.Replace(string(text), "sandbox: {", "sandbox: {remote: workers, timeout: 5m, parallel: 8, ", 1)
		err = os.WriteFile(path, fmt.Appendf(nil, "%sstore: {url: %q, creds: %q, tls: {ca: %q}, replicas: 3}\n", changed, s.servers, servers.Creds, servers.CA), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, servers
}

// joinWith starts a worker with these credentials.
func (s *workersSite) joinWith(t *testing.T, name string, more ...string) {
	t.Helper()
	cmd := s.command(append([]string{"worker", "--join", s.servers, "--seats", "2", "--label", "zone=" + name, "--runsc", testutil.Runsc(t)}, more...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.processes[name] = cmd
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
}
