package main_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/gateway/cluster"
	"sallyport/internal/testutil"
)

// TestWorkersDrain drains the worker of a program. It ends there, and the next ones run on the other, until the worker gets the order to take
// programs again. Who has only the credentials of a worker cannot do it.
func TestWorkersDrain(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	bank := &workersBank{paid: map[string]int{}, gates: map[string]chan struct{}{}, passed: map[string]bool{}}
	s := newWorkersSite(t)
	s.addUpstream(t, "bank: {url: "+bank.serve(t)+"}")
	s.join(t, "w1")
	s.join(t, "w2")
	s.serve(t)
	testutil.Eventually(t, "both have joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })
	start := func() <-chan executed {
		return s.execute(t, "import time\nfrom servers.bank import look\nwhile not look(key='k')['done']:\n    time.sleep(0.5)\n'ended'")
	}
	running := []<-chan executed{start()}
	drained := s.busy(t)
	other := map[string]string{"w1": "w2", "w2": "w1"}[drained]

	s.wantOrder(t, false, `no worker "w9" has joined\n *hint: workers that have: w1, w2`, "drain", "w9")
	s.wantOrder(t, true, `(?m)^`+drained+` +2 +1 +draining `, "drain", drained)
	s.wantOrder(t, true, `(?m)^`+drained+` +2 +1 +draining `, "status")
	s.wantStates(t, map[string]string{drained: "draining", other: "alive"})
	for range 3 { // without the order, the workers would share them
		running = append(running, start())
	}
	s.wantBusy(t, map[string]int{drained: 1, other: 3})
	s.wantForeignOrder(t, drained)
	bank.pass("k")
	for _, answered := range running {
		if answer := <-answered; string(answer.Result) != `"ended"` || strings.Contains(answer.raw, "lost") {
			t.Errorf("a program while a worker drains: %s", answer.raw)
		}
	}
	s.wantOrder(t, true, `(?m)^`+drained+` +2 +0 +drained `, "drain", drained, "--wait")
	s.wantOrder(t, true, `(?m)^`+other+` +2 +0 +drained `, "drain", other, "--wait")
	testutil.Eventually(t, "no worker takes programs", workersPatience, func() bool {
		return strings.Contains((<-s.execute(t, "1")).raw, "those that have joined are draining")
	})
	s.wantOrder(t, true, `(?m)^`+drained+` +2 +0 +ready `, "resume", drained)
	testutil.Eventually(t, "the gateway knows", workersPatience, func() bool { return string((<-s.execute(t, "6*7")).Result) == "42" })
	s.orderByPage(t, other, "resume")
	s.wantStates(t, map[string]string{drained: "alive", other: "alive"})
	s.orderByPage(t, other, "drain")
	s.wantStates(t, map[string]string{drained: "alive", other: "drained"})
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}

// wantOrder runs a command of cluster. Its output must match a pattern.
func (s *workersSite) wantOrder(t *testing.T, ok bool, pattern string, args ...string) {
	t.Helper()
	out, err := s.command(append([]string{"cluster"}, args...)...).CombinedOutput()
	if (err == nil) != ok || !regexp.MustCompile(pattern).Match(out) {
		t.Errorf("cluster %q: %v\n%s", args, err, out)
	}
}

// orderByPage presses a button of the page of the cluster.
func (s *workersSite) orderByPage(t *testing.T, worker, do string) {
	t.Helper()
	token, path := "Authorization: Bearer "+flowsToken, "/ui/cluster/workers/"+worker
	button := `<form method="post" action="` + path + `"><button name="do" value="` + do + `">`
	if status, page := s.ask(t, http.MethodGet, "/ui/cluster", "", token); status != http.StatusOK || !strings.Contains(string(page), button) {
		t.Fatalf("the page of the cluster: %d %s", status, page)
	}
	if status, page := s.ask(t, http.MethodPost, path, "do="+do, token, "Content-Type: application/x-www-form-urlencoded"); status != http.StatusSeeOther && status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", do, worker, status, page)
	}
}

// wantStates wants that the gateway reports workers in these states.
func (s *workersSite) wantStates(t *testing.T, want map[string]string) {
	t.Helper()
	var report cluster.Members
	s.api(t, http.MethodGet, "/cluster", "", &report)
	got := map[string]string{}
	for _, w := range report.Workers {
		got[w.Name] = w.State
	}
	if !maps.Equal(got, want) || len(report.Gateways) != 1 {
		t.Errorf("the cluster: %+v", report)
	}
}

// wantBusy waits until each worker runs as many programs.
func (s *workersSite) wantBusy(t *testing.T, want map[string]int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("the workers run %v", want), workersPatience, func() bool {
		got := map[string]int{}
		for _, w := range s.workers(t) {
			got[w.Name] = w.Busy
		}
		return maps.Equal(got, want)
	})
}

// wantForeignOrder wants that a worker's credentials do not permit to give orders.
func (s *workersSite) wantForeignOrder(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	foreign := filepath.Join(s.dir, "foreign.yaml")
	if err == nil {
		err = os.WriteFile(foreign, []byte(strings.Replace(string(text), "keys/gateway.creds", "keys/"+name+".creds", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command("cluster", "resume", name)
	cmd.Args[len(cmd.Args)-1] = foreign
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("a worker gives orders:\n%s", out)
	}
	s.wantOrder(t, true, `(?m)^`+name+` .* draining `, "status")
}
