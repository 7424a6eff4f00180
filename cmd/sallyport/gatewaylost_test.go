package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/cluster"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// lostPatience is how long it may take until a gateway has taken over what another one left.
const lostPatience = 90 * time.Second

// eveToken is the token of another principal.
const eveToken = "another-token-for-a-test"

// payment is a program that pays two bills; %q is the prefix of their keys.
const payment = `import time
from servers.bank import pay, look
key = %q
pay(key=key + "-one")
while not look(key=key)["done"]:
    time.sleep(0.2)
pay(key=key + "-two")
key + " is paid"`

// newBankSite is a site with its records in a cluster, and with a bank.
func newBankSite(t *testing.T, c *natscluster.Cluster, bank string) *flowsSite {
	t.Helper()
	s := newSharedSite(t, c, c.Creds)
	s.addUpstream(t, "bank: {url: "+bank+"}")
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.NewReplacer("sandbox: {", "sandbox: {timeout: 5m, typecheck: false, runsc: "+testutil.Runsc(t)+", ",
			"ops: "+flowsToken, "ops: "+flowsToken+", eve: "+eveToken).Replace(string(text))), 0o600)
	}
	if err == nil {
		flow := "steps:\n  - id: pay\n    timeout: 5m\n    code: |\n      " + strings.ReplaceAll(fmt.Sprintf(payment, "flow"), "\n", "\n      ") + "\n"
		err = os.WriteFile(filepath.Join(s.dir, "workflows", "pays.yaml"), []byte(flow), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// interrupted waits until a gateway has the record of an interrupted program with a text.
func (s *flowsSite) interrupted(t *testing.T, text string) (record httpapi.Record) {
	t.Helper()
	testutil.Eventually(t, "the program is on record as interrupted: "+text, lostPatience, func() bool {
		var list httpapi.ExecutionList
		s.api(t, http.MethodGet, "/executions?status=interrupted&text="+text, "", &list)
		if len(list.Executions) == 0 {
			return false
		}
		s.api(t, http.MethodGet, "/executions/"+list.Executions[0].ID, "", &record)
		return true
	})
	return record
}

// resume resumes an execution.
func (s *flowsSite) resume(t *testing.T, id string) executed {
	t.Helper()
	return <-s.send(t, map[string]any{"code": "", "resume": id})
}

// wantPaid wants that bills were paid once.
func (b *workersBank) wantPaid(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if n := b.wasPaid(key); n != 1 {
			t.Errorf("%s was paid %d times", key, n)
		}
	}
}

// TestGatewayLost kills and stops a gateway while programs run. The other one records them as interrupted, says which calls may have been
// done, and resumes them: no bill is paid twice.
func TestGatewayLost(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	stuck := make(chan struct{})
	bank := &workersBank{paid: map[string]int{}, gates: map[string]chan struct{}{"stuck": stuck}, passed: map[string]bool{}}
	url := bank.serve(t)
	t.Cleanup(func() { close(stuck) })
	c := natscluster.Start(t, 3)
	one, two := newBankSite(t, c, url), newBankSite(t, c, url)
	one.serve(t)
	two.serve(t)
	resumedElsewhere(t, bank, one, two)
	resumedLast(t, bank, one, two)
	killedGateway(t, bank, one, two)
	pausedGateway(t, bank, one, two)
	for _, s := range []*flowsSite{one, two} {
		if err := stop(s.cmd); err != nil {
			t.Error(err)
		}
	}
}

// resumedElsewhere resumes a failed program at the gateway that did not run it.
func resumedElsewhere(t *testing.T, bank *workersBank, one, two *flowsSite) {
	t.Helper()
	failed := <-one.execute(t, `from servers.bank import pay, look
pay(key="failed")
1 / int(look(key="failed")["done"])`)
	if failed.Status != "failed" || failed.Resume == "" {
		t.Fatalf("failed program: %s", failed.raw)
	}
	var resumed executed
	testutil.Eventually(t, "the other gateway resumes it", lostPatience, func() bool {
		resumed = <-two.send(t, map[string]any{"language": "python", "code": "from servers.bank import pay\npay(key=\"failed\")[\"done\"]", "resume": failed.Resume})
		return resumed.Status == "ok"
	})
	if !strings.Contains(resumed.raw, "1 call answered from the journal of "+failed.ID) {
		t.Errorf("resumed: %s", resumed.raw)
	}
	if again := one.resume(t, failed.Resume); !strings.Contains(again.raw, "was resumed by "+resumed.ID) {
		t.Errorf("resumed where it ran: %s", again.raw)
	}
	bank.wantPaid(t, "failed")
}

// resumedLast resumes the last failed program at the gateway that did not run it. Another principal cannot.
func resumedLast(t *testing.T, bank *workersBank, one, two *flowsSite) {
	t.Helper()
	failed := <-one.execute(t, "from servers.bank import pay\npay(key=\"last\")\n1/0")
	if failed.Status != "failed" {
		t.Fatalf("failed program: %s", failed.raw)
	}
	testutil.Eventually(t, "the other gateway knows it", lostPatience, func() bool {
		status, body := two.ask(t, http.MethodGet, "/api/executions/"+failed.ID, "", "Authorization: Bearer "+flowsToken)
		return status == http.StatusOK && strings.Contains(string(body), `"failed"`)
	})
	status, stolen := two.ask(t, http.MethodPost, "/api/execute", `{"code": "", "resume": "last"}`, "Authorization: Bearer "+eveToken, "Content-Type: application/json")
	if status == http.StatusOK || !strings.Contains(string(stolen), "no failed execution to resume") {
		t.Errorf("another principal resumes the last one: %d %s", status, stolen)
	}
	resumed := <-two.send(t, map[string]any{"language": "python", "code": "from servers.bank import pay\npay(key=\"last\")[\"done\"]", "resume": "last"})
	if resumed.Status != "ok" || !strings.Contains(resumed.raw, "1 call answered from the journal of "+failed.ID) {
		t.Errorf("the last one is resumed: %s", resumed.raw)
	}
	bank.wantPaid(t, "last")
}

// knownElsewhere waits until the other gateway knows of all programs that run.
func knownElsewhere(t *testing.T, one, two *flowsSite) {
	t.Helper()
	var list httpapi.LiveList
	one.api(t, http.MethodGet, "/executions/live", "", &list)
	for _, e := range list.Executions {
		testutil.Eventually(t, "the other gateway knows that a program runs", lostPatience, func() bool {
			return strings.Contains(two.resume(t, e.ID).raw, e.ID+" still runs")
		})
	}
}

// wantGateways waits until a gateway says that it is alive, and that the process of another one is in a state.
func (s *flowsSite) wantGateways(t *testing.T, other *flowsSite, state string) {
	t.Helper()
	testutil.Eventually(t, "the other gateway is "+state, lostPatience, func() bool {
		var report cluster.Members
		s.api(t, http.MethodGet, "/cluster", "", &report)
		found := map[int]cluster.Gateway{}
		for _, g := range report.Gateways {
			found[g.PID] = g
		}
		self, theirs := found[s.cmd.Process.Pid], found[other.cmd.Process.Pid]
		return self.Self && self.State == "alive" && self.Seats > 0 && !theirs.Self && theirs.State == state && theirs.Version == self.Version
	})
}

// wantStatus waits until "cluster status" of a gateway's settings shows another gateway with programs in a state, and three servers.
func (s *flowsSite) wantStatus(t *testing.T, other *flowsSite, state string) {
	t.Helper()
	line := regexp.MustCompile(fmt.Sprintf(`(?m)^g-\w+ +\S+ +%d +[1-9]\d* +[1-9]\d* +0 +%s +\S`, other.cmd.Process.Pid, state))
	self := regexp.MustCompile(fmt.Sprintf(`(?m)^g-\w+ +\S+ +%d +.* alive +\S`, s.cmd.Process.Pid))
	server := regexp.MustCompile(`(?m)^\S+ +alive +[1-9]\d* +\d+ +0 +0$`)
	shown := ""
	defer func() {
		if t.Failed() {
			t.Log(shown)
		}
	}()
	testutil.Eventually(t, "cluster status shows a gateway that is "+state, lostPatience, func() bool {
		out, err := s.command("cluster", "status").CombinedOutput()
		shown = string(out)
		return err == nil && line.MatchString(shown) && self.MatchString(shown) && len(server.FindAllString(shown, -1)) == 3
	})
}

// killedGateway kills a gateway with programs before, between and in calls, and with a run of a workflow.
func killedGateway(t *testing.T, bank *workersBank, one, two *flowsSite) {
	t.Helper()
	lost := []<-chan executed{
		one.execute(t, strings.Replace(fmt.Sprintf(payment, "early"), `pay(key=key + "-one")`, "", 1)),
		one.execute(t, fmt.Sprintf(payment, "midway")),
		one.execute(t, "from servers.bank import pay\npay(key=\"stuck\")"),
	}
	var run workflow.Run
	one.api(t, http.MethodPost, "/workflows/pays/runs", "{}", &run)
	testutil.Eventually(t, "the programs run", lostPatience, func() bool {
		return bank.waitsFor("early") && bank.waitsFor("midway") && bank.waitsFor("flow") && bank.wasPaid("stuck") == 1
	})
	knownElsewhere(t, one, two)
	two.wantGateways(t, one, "alive")
	two.wantStatus(t, one, "alive")
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.cmd.Wait() // killed
	for _, answer := range lost {
		if e := <-answer; e.Status != "" {
			t.Errorf("an answer of a killed gateway: %s", e.raw)
		}
	}
	two.wantGateways(t, one, "lost")
	two.wantStatus(t, one, "lost")
	for _, key := range []string{"early", "midway", "flow"} {
		bank.pass(key)
	}
	for _, key := range []string{"early", "midway"} {
		record := two.interrupted(t, key)
		if resumed := two.resume(t, record.ID); resumed.Status != "ok" || string(resumed.Result) != `"`+key+` is paid"` {
			t.Errorf("%s is resumed: %s", key, resumed.raw)
		}
	}
	record := two.interrupted(t, "stuck")
	if len(record.Calls) != 1 || record.Calls[0].Outcome != "unfinished" || !strings.Contains(record.Error, "bank.pay") {
		t.Errorf("the record of a program that was killed in a call: %+v", record)
	}
	out, err := two.command("log", "--kind", "execution.taken", "--execution", record.ID).CombinedOutput()
	if err != nil || strings.Count(string(out), "execution.taken") != 1 || !strings.Contains(string(out), "lost=g-") || !strings.Contains(string(out), "may have been done, or not: bank.pay") {
		t.Errorf("the takeover in the audit log: %v\n%s", err, out)
	}
	if resumed := two.resume(t, record.ID); resumed.Status != "held" || !strings.Contains(resumed.raw, "may have been done") {
		t.Errorf("a program that was killed in a call is resumed: %s", resumed.raw)
	}
	testutil.Eventually(t, "the run ends", lostPatience, func() bool {
		now := two.run(t, run.ID)
		if now.Status == workflow.Failed {
			t.Fatalf("the run failed: %+v", now.Error)
		}
		return now.Status == workflow.OK
	})
	bank.wantPaid(t, "early-two", "midway-one", "midway-two", "stuck", "flow-one", "flow-two")
	one.serve(t)
	testutil.Eventually(t, "the gateway that was killed is ready", lostPatience, func() bool {
		status, _ := one.ask(t, http.MethodGet, "/readyz", "")
		return status == http.StatusOK
	})
	if again := one.resume(t, record.ID); !strings.Contains(again.raw, "was resumed by") {
		t.Errorf("resumed at the gateway that was killed: %s", again.raw)
	}
}

// pausedGateway stops a gateway with a program, and continues it when the other one has taken the program over.
func pausedGateway(t *testing.T, bank *workersBank, one, two *flowsSite) {
	t.Helper()
	answer := one.execute(t, fmt.Sprintf(payment, "paused"))
	testutil.Eventually(t, "the program runs", lostPatience, func() bool { return bank.waitsFor("paused") })
	knownElsewhere(t, one, two)
	if err := one.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	record := two.interrupted(t, "paused")
	bank.pass("paused")
	if err := one.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if late := <-answer; late.Status != "interrupted" || late.Resume != record.ID || !strings.Contains(late.raw, "another one has recorded the execution as interrupted") {
		t.Errorf("the answer of a gateway that was stopped: %s", late.raw)
	}
	if n := bank.wasPaid("paused-two"); n != 0 {
		t.Errorf("a gateway that was stopped paid %d times after the other one had taken over", n)
	}
	if resumed := two.resume(t, record.ID); resumed.Status != "ok" || string(resumed.Result) != `"paused is paid"` {
		t.Errorf("resumed: %s", resumed.raw)
	}
	bank.wantPaid(t, "paused-one", "paused-two")
	for _, s := range []*flowsSite{one, two} {
		if found := s.interrupted(t, "paused"); found.ID != record.ID || found.Made != record.Made {
			t.Errorf("the record is %+v now", found)
		}
	}
}
