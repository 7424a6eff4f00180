package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// addedJob is one that adds packages to an environment.
func addedJob() sandbox.Job {
	return sandbox.Job{ID: "e-1", Interpreter: sandbox.Python, Environment: "data-1", Added: &sandbox.Added{Environment: "data", Packages: map[sandbox.Interpreter][]string{sandbox.Python: {"alpha"}}}}
}

// TestChooseAdded: a program with added packages runs on workers that have the environment and can add them, those that did first while they
// have a free seat. Without any, the error says what to update.
func TestChooseAdded(t *testing.T) {
	t.Parallel()
	p := &Pool{opened: time.Now().Add(-time.Hour), members: map[string]*member{}, troubles: map[string]trouble{}, sessions: map[string]place{}, counts: map[string][verdicts]int64{}}
	has := map[string]string{"data": ""}
	for name, beat := range map[string]Beat{
		"a": {Environments: has, Speaks: remote.Here(), Seats: 8}, "b": {Environments: has, Speaks: remote.Here(), Seats: 2},
		"lacks": {Speaks: remote.Here(), Seats: 64}, "old": {Environments: has, Speaks: remote.Compat{Oldest: 2, Newest: 4, Host: 1}, Seats: 64},
	} {
		p.members[name] = &member{Worker: Worker{Name: name, Instance: name, Seen: time.Now(), Beat: beat}}
	}
	chosen := func() string {
		m, err := p.choose(addedJob(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.Name
	}
	if got := chosen(); got != "a" {
		t.Errorf("it is on %s, not where most seats are free", got)
	}
	p.noteAdded(p.members["b"], addedJob(), nil)
	if got := chosen() + chosen(); got != "bb" {
		t.Errorf("it is on %s, not where the packages are", got)
	}
	if got := chosen(); got != "a" {
		t.Errorf("it is on %s, which has no free seat", got)
	}
	for _, name := range []string{"a", "b"} {
		p.members[name].Lacks = []sandbox.Interpreter{sandbox.Python}
	}
	if m, err := p.choose(sandbox.Job{Interpreter: sandbox.Python, Environment: "data"}, nil); err != nil || m.Name != "old" {
		t.Errorf("without packages: %+v, %v", m, err)
	}
	if p.usable(p.members["old"], addedJob(), nil) {
		t.Error("a worker of an older build gets a program with packages")
	}
	if err := olderError([]string{"old", "old", "older"}); !isFinal(err) || !strings.Contains(err.Error(), "the sallyport of old, older is older than the gateway's: update it there") {
		t.Errorf("%v", err)
	}
}

// TestAddedVerdicts: packages that cannot be added are no fault of a worker.
func TestAddedVerdicts(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]verdict{&remote.AddError{Text: "no alpha", Final: true}: unknown, &remote.AddError{Text: "not here"}: unknown, errors.New("broken"): refused} {
		if got := verdictOf(sandbox.Outcome{}, err); got != want {
			t.Errorf("%v: %d", err, got)
		}
	}
	if isFinal(errors.New("broken")) || isFinal(&remote.AddError{}) || !isFinal(&remote.AddError{Final: true}) {
		t.Error("only an error that is final is")
	}
}

// TestAddPackages has a program with added packages on the one of two workers that adds them. The other one has the environment too, and does
// not count as one that fails.
func TestAddPackages(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	dir := testutil.ShortDir(t)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "alpha.py"), []byte("NAME = 'alpha is here'\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	withAlpha := sandbox.Environment{Layers: map[string]string{"/opt/packages/python": dir}, PythonPath: []string{"/opt/packages/python"}, Digest: "1"}
	has := func(o *remote.WorkerOptions) { o.Host.Environments = map[string]sandbox.Environment{"data": {}} }
	joinChanged(t, c, "w1", 64, has) // most seats are free there
	joinChanged(t, c, "w2", 2, func(o *remote.WorkerOptions) {
		has(o)
		o.Extend = func(_ context.Context, added sandbox.Added) (remote.Extended, error) {
			if added.Environment != "data" || len(added.Packages[sandbox.Python]) != 1 || added.Packages[sandbox.Python][0] != "alpha" {
				return remote.Extended{}, &remote.AddError{Text: fmt.Sprintf("there is no %v", added), Final: true}
			}
			return remote.Extended{Environment: withAlpha, Folders: map[sandbox.Interpreter][]string{sandbox.Python: {dir}}}, nil
		}
	})
	p := newPool(t, c, sandbox.Pool{})
	testutil.Eventually(t, "both have joined", eventually, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.members) == 2
	})
	var job sandbox.Job
	for range 2 {
		job = sandboxtest.Job(sandbox.Python, "import alpha\nalpha.NAME")
		job.Environment, job.Added = addedJob().Environment, addedJob().Added
		if o, err := p.Run(t.Context(), job, sandboxtest.Echo{}); err != nil || o.Value == nil || o.Value.Text != `"alpha is here"` {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if found, err := p.Packages(t.Context(), job); err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	job.Added = &sandbox.Added{Environment: "data", Packages: map[sandbox.Interpreter][]string{sandbox.Python: {"beta"}}}
	job.Environment = "data-2"
	if o, err := p.Run(t.Context(), job, sandboxtest.Echo{}); !isFinal(err) || !strings.Contains(err.Error(), "worker w2: there is no") {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := p.Packages(t.Context(), job); !isFinal(err) {
		t.Errorf("%v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.troubles) != 0 {
		t.Errorf("workers count as failing: %+v", p.troubles)
	}
	for _, m := range p.members {
		if m.running != 0 || m.added["data-1"] != (m.Name == "w2") || m.added["data-2"] {
			t.Errorf("%s: %d run, %v", m.Name, m.running, m.added)
		}
	}
}

// TestPackagesHang: after a worker that does not answer about packages, another one is asked.
func TestPackagesHang(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	has := func(o *remote.WorkerOptions) { o.Host.Environments = map[string]sandbox.Environment{"data": {}} }
	asked := make(chan struct{}, 10)
	joinChanged(t, c, "w1", 64, func(o *remote.WorkerOptions) { // most seats are free there
		has(o)
		o.Extend = func(ctx context.Context, _ sandbox.Added) (remote.Extended, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return remote.Extended{}, ctx.Err()
		}
	})
	joinChanged(t, c, "w2", 2, func(o *remote.WorkerOptions) {
		has(o)
		o.Extend = func(context.Context, sandbox.Added) (remote.Extended, error) { return remote.Extended{}, nil }
	})
	p := newPool(t, c, sandbox.Pool{})
	testutil.Eventually(t, "both have joined", eventually, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.members) == 2
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(0, func() {
		<-asked
		cancel() // of a caller that has left, which says nothing about the worker
	})
	if _, err := p.Packages(ctx, addedJob()); err == nil {
		t.Error("a worker that does not answer has packages")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := p.Packages(ctx, addedJob()); err == nil || len(asked) != 1 {
		t.Errorf("%v; asked again: %d", err, len(asked))
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := p.Packages(ctx, addedJob()); err != nil || len(asked) != 1 {
		t.Errorf("%v; asked again: %d", err, len(asked))
	}
}
