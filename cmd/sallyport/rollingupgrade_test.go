package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/gateway/cluster"
	"sallyport/gateway/httpapi"
	"sallyport/internal/testutil"
)

// nextBuild builds a sallyport as the next release may be: it speaks a newer version of the protocol of workers too, and other files of
// guests, in which sallyport.together has a name BUILD.
func nextBuild(t *testing.T) string {
	t.Helper()
	root, dir := testutil.ModuleRoot(t), t.TempDir()
	replace := map[string]string{}
	for path, change := range map[string][2]string{
		"sandbox/remote/compat.go":                    {"newestProtocol = 5\n", "newestProtocol = 6\n"},
		"codegen/runtime/guest/sallyport/together.py": {"\nimport ", "\nBUILD = \"next\"\nimport "},
	} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil || !strings.Contains(string(text), change[0]) {
			t.Fatalf("%s has no %q: %v", path, change[0], err)
		}
		changed := filepath.Join(dir, filepath.Base(path))
		writeText(t, changed, strings.Replace(string(text), change[0], change[1], 1))
		replace[filepath.Join(root, filepath.FromSlash(path))] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(dir, "overlay.json"), string(overlay))
	binary := filepath.Join(dir, "sallyport")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-w -X sallyport/internal/build.version=v-next", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./cmd/sallyport")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// twin is another gateway of the cluster, with a data directory of its own.
func (s *workersSite) twin(t *testing.T) *workersSite {
	t.Helper()
	other := *s
	other.flowsSite = newFlowsSite(t)
	text, err := os.ReadFile(filepath.Join(s.dir, "upstreams.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(other.dir, "upstreams.yaml"), strings.ReplaceAll(string(text), "keys/gateway.creds", filepath.Join(s.keys, "gateway.creds")))
	return &other
}

// TestRollingUpgrade upgrades a cluster to the next build, a process after the other, while programs run: gateways and workers of both
// builds work together, each program has the functions of its gateway's build, and all calls are made once.
func TestRollingUpgrade(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	next := nextBuild(t)
	bank := &workersBank{paid: map[string]int{}, gates: map[string]chan struct{}{}, passed: map[string]bool{}}
	old := newWorkersSite(t)
	old.addUpstream(t, "bank: {url: "+bank.serve(t)+"}")
	pays := func(s *workersSite, key, build string) func() {
		t.Helper()
		answer := s.execute(t, fmt.Sprintf("from sallyport import together\n"+strings.TrimSuffix(payment, "\nkey + \" is paid\""), key)+"\ngetattr(together, 'BUILD', 'this')")
		testutil.Eventually(t, "the program "+key+" runs", workersPatience, func() bool { return bank.waitsFor(key) })
		return func() {
			t.Helper()
			bank.pass(key)
			if got := <-answer; got.Status != "ok" || string(got.Result) != `"`+build+`"` || strings.Contains(got.raw, "lost") {
				t.Errorf("the program %s, of a gateway of %s: %s", key, build, got.raw)
			}
			bank.wantPaid(t, key+"-one", key+"-two")
		}
	}
	old.join(t, "w1")
	old.serve(t)
	testutil.Eventually(t, "the worker has joined", workersPatience, func() bool { return len(old.workers(t)) == 1 })
	ends := []func(){pays(old, "old-on-old", "this")}

	upgraded := old.twin(t)
	upgraded.program = next
	upgraded.join(t, "w2")
	old.wantOrder(t, true, `(?m)^w2 +2 +0 +ready +- +v-next `, "status")
	old.wantOrder(t, true, `(?m)^w1 +2 +1 +draining `, "drain", "w1")
	ends = append(ends, pays(old, "old-on-new", "this"))
	old.wantBusy(t, map[string]int{"w1": 1, "w2": 1})

	upgraded.serve(t)
	ends = append(ends, pays(upgraded, "new-on-new", "next"))
	upgraded.wantBusy(t, map[string]int{"w1": 1, "w2": 2})
	upgraded.wantOrder(t, true, `(?m)^w2 +2 +2 +draining `, "drain", "w2")
	upgraded.wantOrder(t, true, `(?m)^w1 +2 +1 +ready +- +`, "resume", "w1")
	ends = append(ends, pays(upgraded, "new-on-old", "next"))
	upgraded.wantBusy(t, map[string]int{"w1": 2, "w2": 2})
	upgraded.wantVersions(t)
	for _, end := range ends {
		end()
	}

	if err := stop(old.cmd); err != nil {
		t.Errorf("the gateway of this build: %v", err)
	}
	upgraded.wantOrder(t, true, `(?m)^w2 +2 +0 +ready `, "resume", "w2")
	if err := old.processes["w1"].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := old.processes["w1"].Wait(); err != nil {
		t.Errorf("the worker of this build: %v", err)
	}
	pays(upgraded, "after", "next")()
	var list httpapi.ExecutionList
	upgraded.api(t, http.MethodGet, "/executions", "", &list)
	if len(list.Executions) != 5 {
		t.Errorf("%d executions are on record, not 5: %+v", len(list.Executions), list.Executions)
	}
	if err := stop(upgraded.cmd); err != nil {
		t.Error(err)
	}
}

// wantVersions wants that the gateway reports gateways and workers of two builds that are alive.
func (s *workersSite) wantVersions(t *testing.T) {
	t.Helper()
	var report cluster.Members
	s.api(t, http.MethodGet, "/cluster", "", &report)
	gateways, workers := map[string]bool{}, map[string]bool{}
	for _, g := range report.Gateways {
		gateways[g.Version] = g.State == "alive"
	}
	for _, w := range report.Workers {
		workers[w.Version] = true
	}
	if len(gateways) != 2 || !gateways["v-next"] || len(workers) != 2 || !workers["v-next"] {
		t.Errorf("the cluster: %+v", report)
	}
}
