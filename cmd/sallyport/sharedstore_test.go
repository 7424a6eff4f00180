package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// TestSharedStore has two gateways on one store of three servers: an answer at one continues a run at the other, a killed
// gateway's run is continued by the other, schedules run once, and without a majority of the servers work is refused.
func TestSharedStore(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)
	one.serve(t)
	two.serve(t)
	answered(t, one, two)

	var long workflow.Run
	one.api(t, http.MethodPost, "/workflows/long/runs", `{"key":"k"}`, &long)
	await(t, "the first step has run", func() bool {
		var events httpapi.EventList
		one.api(t, http.MethodGet, "/runs/"+long.ID+"/events", "", &events)
		return len(events.Events) > 3
	})
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.cmd.Wait() // killed
	killed := time.Now()
	var same workflow.Run // the client has lost the answer, and asks another gateway again
	if two.api(t, http.MethodPost, "/workflows/long/runs", `{"key":"k","wait":60}`, &same); same.ID != long.ID || same.Status != workflow.OK {
		t.Errorf("the run %s started again with its key: %+v", long.ID, same)
	}
	testutil.Eventually(t, "the other gateway ends the run", 60*time.Second, func() bool {
		return two.run(t, long.ID).Status == workflow.OK
	})
	two.once(t, long.ID)
	testutil.Eventually(t, "the other gateway runs the schedule", 60*time.Second, func() bool {
		runs := ticks(t, two)
		return runs[len(runs)-1].Started.After(killed)
	})

	c.Kill(t, 0)
	c.Kill(t, 1)
	for _, request := range []struct{ path, body string }{{"/api/workflows/long/runs", "{}"}, {"/api/execute", `{"language":"python","code":"1"}`}, {"/api/tools/call/toy/echo", `{"arguments":{"text":"x"}}`}} {
		testutil.Eventually(t, "work is refused", 40*time.Second, func() bool {
			status, body := two.ask(t, http.MethodPost, request.path, request.body, "Authorization: Bearer "+flowsToken)
			refused := status == http.StatusServiceUnavailable && strings.Contains(string(body), "the store of records does not answer")
			if !refused {
				t.Logf("%s: %d %.200s", request.path, status, body)
				time.Sleep(time.Second)
			}
			return refused
		})
	}
	if status, body := two.ask(t, http.MethodGet, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("ready: %d %s", status, body)
	}
	c.Start(t, 0)
	c.Start(t, 1)
	testutil.Eventually(t, "work is accepted again", 60*time.Second, func() bool {
		status, _ := two.ask(t, http.MethodPost, "/api/workflows/long/runs", `{"key":"after"}`, "Authorization: Bearer "+flowsToken)
		return status == http.StatusOK
	})
	one.serve(t)
	if out, _ := two.command("doctor").CombinedOutput(); !regexp.MustCompile(`store: NATS 2\.\d+\.\d+, 3 replicas of \d+ streams, leaders \[n\d:`).Match(out) { // other checks may fail
		t.Errorf("doctor:\n%s", out)
	}
	movedRecords(t, c, two, long.ID)
	for _, s := range []*flowsSite{one, two} {
		if err := stop(s.cmd); err != nil {
			t.Error(err)
		}
		out, err := s.command("log", "verify").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "compared with the copy") {
			t.Errorf("audit verify: %v\n%s", err, out)
		}
	}
	dueOnce(t, one, two)
}

// movedRecords makes a backup of a site with its records on servers, and restores it on one machine, and on servers of another account.
func movedRecords(t *testing.T, c *natscluster.Cluster, from *flowsSite, run string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "all.tar.gz")
	from.writeFile(t, "dir/kept.txt", "kept")
	if err := os.RemoveAll(filepath.Join(from.dir, "sallyport", "workspaces")); err != nil { // the backup has what the store has
		t.Fatal(err)
	}
	if out, err := from.command("backup", file).CombinedOutput(); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	if out, err := from.command("restore", "--data", t.TempDir(), file).CombinedOutput(); err == nil || !strings.Contains(string(out), "the servers of store.url have records already") {
		t.Errorf("over what is there: %v\n%s", err, out)
	}
	alone, other := newFlowsSite(t), newSharedSite(t, c, c.OtherCreds)
	for name, s := range map[string]*flowsSite{"alone": alone, "other servers": other} {
		data := filepath.Join(s.dir, "data")
		out, err := s.command("restore", "--data", data, file).CombinedOutput()
		if err != nil || strings.Contains(string(out), "records to the servers") != (s == other) {
			t.Errorf("%s: restore: %v\n%s", name, err, out)
		}
		kept, _ := filepath.Glob(filepath.Join(data, "workspaces", "*", "default", "dir", "kept.txt"))
		if len(kept) != 1 {
			t.Errorf("%s: the files of a workspace: %q", name, kept)
		} else if text, err := os.ReadFile(kept[0]); err != nil || string(text) != "kept" {
			t.Errorf("%s: a file of a workspace: %q, %v", name, text, err)
		}
		testutil.Eventually(t, name+": the run is shown", time.Minute, func() bool { // busy servers may not answer at once
			out, err := s.command("workflow", "show", "--data", data, run).CombinedOutput()
			if err != nil {
				t.Logf("%s: %v\n%s", name, err, out)
			}
			return err == nil && strings.Contains(string(out), run+"  long  ok")
		})
	}
}

// dueOnce wants one run for each due time of the schedule, whichever gateways started it.
func dueOnce(t *testing.T, sites ...*flowsSite) {
	t.Helper()
	started := regexp.MustCompile(`workflow=tick due=(\S+) run=(\S+)`)
	runs := map[string]string{}
	for _, s := range sites {
		for _, log := range s.logs {
			for _, found := range started.FindAllStringSubmatch(<-log, -1) {
				if due, run := found[1], found[2]; runs[due] != "" && runs[due] != run {
					t.Errorf("runs %s and %s were both due at %s", runs[due], run, due)
				} else {
					runs[due] = run
				}
			}
		}
	}
	if len(runs) < 3 {
		t.Errorf("the logs have %d due times", len(runs))
	}
}

// newSharedSite is a site with its records in a cluster.
func newSharedSite(t *testing.T, c *natscluster.Cluster, creds string) *flowsSite {
	t.Helper()
	s := newFlowsSite(t)
	s.share(t, c, creds)
	return s
}

// share adds the servers to the settings.
func (s *flowsSite) share(t *testing.T, c *natscluster.Cluster, creds string) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(text, "store: {url: %q, creds: %q, tls: {ca: %q}, replicas: 3}\n", c.URL(), creds, c.CA), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "workflows", "asks.yaml"), []byte("steps: [{id: sure, wait: {approval: {message: Go on}}}, {id: then, tool: toy.echo, with: {text: done}}]\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *flowsSite) run(t *testing.T, id string) (run workflow.Run) {
	t.Helper()
	s.api(t, http.MethodGet, "/runs/"+id, "", &run)
	return run
}

// answered starts a run at one gateway that asks, and answers at the other.
func answered(t *testing.T, one, two *flowsSite) {
	t.Helper()
	var run workflow.Run
	one.api(t, http.MethodPost, "/workflows/asks/runs", "{}", &run)
	id := ""
	await(t, "the other gateway shows the question", func() bool {
		var list struct{ Approvals []approvals.Approval }
		two.api(t, http.MethodGet, "/approvals", "", &list)
		for _, a := range list.Approvals {
			id = a.ID
		}
		return id != ""
	})
	var answer json.RawMessage
	two.api(t, http.MethodPost, "/approvals/"+id, `{"decision":"allow"}`, &answer)
	await(t, "the run continues", func() bool { return one.run(t, run.ID).Status == workflow.OK })
}

// ticks returns the runs of a schedule of every second. No due time may have started two; a run may be late.
func ticks(t *testing.T, s *flowsSite) []workflow.Run {
	t.Helper()
	var list httpapi.RunList
	s.api(t, http.MethodGet, "/runs?workflow=tick&limit=1000", "", &list)
	if len(list.Runs) == 0 {
		t.Fatal("the schedule has started no run")
	}
	slices.SortFunc(list.Runs, func(a, b workflow.Run) int { return a.Started.Compare(b.Started) })
	last := list.Runs[len(list.Runs)-1].Started
	for i, run := range list.Runs {
		if most := int(last.Sub(run.Started).Seconds()) + 3; len(list.Runs)-i > most {
			t.Errorf("%d runs of one schedule since %s, want at most %d", len(list.Runs)-i, run.Started, most)
		}
	}
	return list.Runs
}
