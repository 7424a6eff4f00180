package sandboxtest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/sandbox"
)

// Attack is one row of docs/explanation/attacks.md, or a variant of one: a hostile program in one
// language or both, and its exact expected outcome.
type Attack struct {
	// ID is the row's, such as "A01". Several attacks may have the same.
	ID, Name     string
	Python, Node string
	// Limit changes the default limits.
	Limit func(l *sandbox.Limits)
	// Status is OK if empty, NodeStatus is Status if empty.
	Status, NodeStatus sandbox.Status
	// Value is the program's value as JSON, NodeValue that of node's where it differs; "" is not looked at.
	Value, NodeValue string
	// Check looks at the rest.
	Check func(t *testing.T, o sandbox.Outcome)
	// Soft says that runsc's version may answer in several safe ways: Value is not compared, but nothing in it may be "ok".
	Soft bool
}

// Attacks are all of them, by group.
func Attacks() []Attack {
	var all []Attack
	for _, group := range [][]Attack{hostAttacks, kernelAttacks, runtimeAttacks, networkAttacks, memoryAttacks, resourceAttacks, bridgeAttacks} {
		all = append(all, group...)
	}
	return all
}

// cases are the programs of an attack.
func (a Attack) cases() []Case {
	var all []Case
	check := a.Check
	if a.Soft {
		check = func(t *testing.T, o sandbox.Outcome) { checkNoneSucceeded(t, o); callIf(a.Check, t, o) }
	}
	if a.Python != "" {
		all = append(all, Case{Name: "python", Python: a.Python, Limit: a.Limit, Status: a.Status, Value: a.Value, Check: check})
	}
	if a.Node != "" {
		node := Case{Name: "node", Node: a.Node, Limit: a.Limit, Status: a.NodeStatus, Value: a.NodeValue, Check: check}
		if node.Status == "" {
			node.Status = a.Status
		}
		if node.Value == "" {
			node.Value = a.Value
		}
		all = append(all, node)
	}
	return all
}

func callIf(check func(*testing.T, sandbox.Outcome), t *testing.T, o sandbox.Outcome) {
	if check != nil {
		check(t, o)
	}
}

// checkNoneSucceeded fails the test if an attempt succeeded.
func checkNoneSucceeded(t *testing.T, o sandbox.Outcome) {
	if got := value(o); strings.Contains(got, `"ok"`) || got == "-" {
		t.Errorf("an attempt came off: %s", got)
	}
}

// run runs the programs of an attack concurrently, and then checks the oracles.
func (a Attack) run(t *testing.T, r *Testbed) {
	t.Helper()
	before := r.snapshot()
	var jobs []string
	var all sync.WaitGroup
	for _, c := range a.cases() {
		c.Python, c.Node = r.placeholders.Replace(c.Python), r.placeholders.Replace(c.Node)
		c.Value = r.placeholders.Replace(c.Value)
		job := c.job()
		jobs = append(jobs, job.ID)
		all.Go(func() {
			outcome, err := r.run(t, job)
			if err != nil {
				t.Errorf("%s: run: %v", c.Name, err)
				return
			}
			t.Logf("%s: %s", c.Name, show(outcome))
			c.check(t, outcome)
			r.checkNoSecret(t, c.Name+"'s outcome", show(outcome)+outcome.Stdout.Text+outcome.Stderr.Text+value(outcome))
		})
	}
	all.Wait()
	r.checkOracles(t, before, jobs)
}

// check compares an outcome with the expectations of the case.
func (c Case) check(t *testing.T, outcome sandbox.Outcome) {
	t.Helper()
	want := c.Status
	if want == "" {
		want = sandbox.OK
	}
	if outcome.Status != want && want != anyStatus {
		t.Errorf("%s: status %s, want %s: %s", c.Name, outcome.Status, want, show(outcome))
		return
	}
	if got := value(outcome); c.Value != "" && got != c.Value {
		t.Errorf("%s: value %s, want %s; %s", c.Name, got, c.Value, show(outcome))
	}
	callIf(c.Check, t, outcome)
}

// anyStatus accepts any status.
const anyStatus sandbox.Status = "any"

// shortTimeout sets a short timeout, for programs that run until they are stopped.
func shortTimeout(l *sandbox.Limits) { l.Timeout = 1500 * time.Millisecond }
