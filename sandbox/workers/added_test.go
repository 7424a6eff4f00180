package workers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/remote"
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
