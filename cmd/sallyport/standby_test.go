package main_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/httpapi"
	"sallyport/internal/testutil"
)

// TestStandby: when the process that has the records is killed, one of serve --share starts runs on a schedule in its place; it gives the
// records back to a serve without --share.
func TestStandby(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newFlowsSite(t)
	s.serve(t, "--share")
	owner := s.cmd
	s.serve(t, "--share")
	standby := s.cmd
	await(t, "the owner's clock starts a run", func() bool { return s.runsSince(t, time.Time{}) > 0 })
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed
	killed := time.Now()
	for end := killed.Add(60 * time.Second); s.runsSince(t, killed.Add(5*time.Second)) == 0; time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no run is started after the owner is gone")
		}
	}
	s.serve(t)
	began := time.Now()
	await(t, "the clock goes on where the records were given back", func() bool {
		var list httpapi.RunList
		s.api(t, http.MethodGet, "/runs?workflow=tick&status=ok", "", &list)
		return len(list.Runs) > 0 && list.Runs[0].Started.After(began)
	})
	for _, cmd := range []*exec.Cmd{s.cmd, standby} {
		if err := stop(cmd); err != nil {
			t.Error(err)
		}
	}
}

// runsSince counts the runs of the clock that were started after a time, according to the gateway that has the records.
func (s *flowsSite) runsSince(t *testing.T, since time.Time) (n int) {
	t.Helper()
	out, err := s.command("workflow", "runs", "--json").Output()
	if err != nil {
		return 0 // the records change hands
	}
	var list httpapi.RunList
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, run := range list.Runs {
		if run.Workflow == "tick" && run.Trigger == "schedule" && run.Started.After(since) {
			n++
		}
	}
	return n
}

// stop ends a process as a client does, and waits for it.
func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return cmd.Wait()
}
