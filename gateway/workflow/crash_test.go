package workflow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/task"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/approval"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// crashDir is the variable that makes the test binary a gateway that runs one workflow in its directory.
const crashDir = "WORKFLOW_CRASH_DIR"

func TestMain(m *testing.M) {
	upstreamtest.Main()
	natscluster.Serve()
	if dir := os.Getenv(crashDir); dir != "" {
		if err := crashChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(tlstest.M{Tests: m}.Run())
}

// crashing has every kind of step. What is interrupted is made again, but for "unsure", which may have been done.
const crashing = `
inputs: {list: {type: array}}
steps:
  - {id: first, tool: t.count, with: {n: 1}}
  - {id: skipped, tool: t.count, if: "false"}
  - id: each
    for_each: "${{ inputs.list }}"
    concurrency: 2
    steps: [{id: a, tool: t.count, with: {item: "${{ item }}"}}]
  - id: both
    parallel:
      left: [{id: l, tool: t.count, with: {left: 1}}]
      right: [{id: pause, wait: {for: 5ms}}, {id: r, tool: t.count, with: {right: 1}}]
  - id: pick
    switch: [{when: size(steps.each.output) == 2, steps: [{id: two, tool: t.count, with: {two: 2}}]}]
  - id: again
    while: index < 1
    max: 2
    steps: [{id: w, tool: t.count, with: {pass: "${{ index }}"}}]
  - id: flaky
    tool: t.flaky
    retry: {count: 2, wait: 1ms, on: [failed]}
  - {id: kept, tool: t.count, with: {kept: 1}, idempotency_key: "k", interrupted: retry}
  - id: program
    code: result = 1
  - {id: words, task: Count, returns: {type: integer}}
  - {id: sub, workflow: inner, with: {x: 3}}
  - {id: yes, wait: {approval: {message: go on}}}
  - {id: ask, form: {title: who, fields: {name: {type: string}}}}
  - id: guard
    try: [{id: unsure, tool: t.careful, with: {careful: 1}, interrupted: fail}]
    catch: [{id: mend, tool: t.count, with: {mended: 1}}]
    finally: [{id: last, tool: t.count, with: {last: 1}}]
outputs:
  all: {value: "${{ [steps.first.output.n, steps.each.output, steps.both.output.right.right, steps.pick.output.two, steps.again.output.pass, steps.flaky.output.ok, steps.program.output, steps.words.output, steps.sub.output.y, steps.ask.output.name] }}"}
  kept: {value: "${{ steps.kept.status }}"}
  guard: {value: "${{ has(steps.guard.output.careful) ? 'done' : 'unsure' }}"}
`

const crashInner = `
inputs: {x: {type: integer}}
steps: [{id: e, tool: t.count, with: {v: "${{ inputs.x * 2 }}"}}]
outputs: {y: {value: "${{ steps.e.output.v }}"}}`

// effectFile is a door whose deeds outlive the process: each is a line in a file, written before it is answered.
type effectFile struct{ dir string }

func (w effectFile) note(line string) error {
	f, err := os.OpenFile(filepath.Join(w.dir, "deeds"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func (w effectFile) effects() []string {
	data, err := os.ReadFile(filepath.Join(w.dir, "deeds"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (w effectFile) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	line := call.Tool.Name + " " + string(call.Args)
	before := slices.Contains(w.effects(), line)
	if err := w.note(line); err != nil {
		return tool.Result{}, err
	}
	if call.Tool.Name == "flaky" {
		if !before {
			return tool.Result{IsError: true}, nil
		}
		return tool.Result{Structured: []byte(`{"ok":true}`)}, nil
	}
	return tool.Result{Structured: call.Args}, nil
}

// Execute resumes as the gateway does: an execution that has begun has a journal, and its calls are not made again.
func (w effectFile) Execute(_ context.Context, p execution.Program) (execution.Result, error) {
	if p.Resume != "" && !slices.ContainsFunc(w.effects(), func(line string) bool { return strings.HasPrefix(line, "journal "+p.Resume) }) {
		return execution.Result{}, &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + p.Resume, Err: history.ErrNoExecution}
	}
	err := w.note("journal " + p.ID)
	if p.Resume == "" {
		err = errors.Join(err, w.note("program"))
	}
	return value(p.ID, "7"), err
}

// Run does a task, whose record is a file. With Show, a task that is done is known after a restart.
func (w effectFile) Run(ctx context.Context, r task.Request, _ func(task.Task)) (task.Task, error) {
	if err := errors.Join(w.note("task"), os.WriteFile(filepath.Join(w.dir, r.ID), nil, 0o600)); err != nil {
		return task.Task{}, err
	}
	return w.Show(ctx, r.ID)
}

func (w effectFile) Resume(context.Context, string, tool.Peer, func(task.Task)) (task.Task, error) {
	return task.Task{}, errors.New("a task that is done was resumed")
}

func (w effectFile) Show(_ context.Context, id string) (task.Task, error) {
	if _, err := os.Stat(filepath.Join(w.dir, id)); err != nil {
		return task.Task{}, &tool.Error{Kind: tool.NotFound, Message: "there is no task " + id}
	}
	return task.Task{ID: id, Status: task.Done, Answer: "8", Execution: "e-1"}, nil
}

// Tool and SkillLanguage make it a catalog: one tool says that a second call does no harm.
func (w effectFile) Tool(id tool.ID) (tool.Tool, bool) {
	yes := id.Name == "count" || id.Name == "flaky"
	return tool.Tool{ID: id, Annotations: tool.Annotations{Idempotent: &yes}}, true
}

func (w effectFile) SkillLanguage(context.Context, string) (string, error) { return "python", nil }

// autoApprover answers each question with yes.
type autoApprover struct{}

func (autoApprover) Inquire(_ context.Context, q approvals.Question) (approvals.Approval, error) {
	return approvals.Approval{ID: "a-" + q.Step, Expires: time.Now().Add(time.Hour)}, nil
}

func (autoApprover) Approval(_ context.Context, id string) (approvals.Approval, error) {
	return approvals.Approval{ID: id, State: approval.Allowed, By: "ann"}, nil
}
func (autoApprover) Withdraw(context.Context, string) error { return nil }
func (autoApprover) WatchApprovals(func()) func()           { return func() {} }

// crashChild runs the workflow, or goes on with it, and prints how it ended.
func crashChild(dir string) error {
	onWrite, made := storetest.Counter()
	if killer := storetest.Killer(); killer != nil {
		onWrite = killer
	}
	s, err := store.Open(filepath.Join(dir, "records"), &store.Options{OnWrite: onWrite})
	if err != nil {
		return err
	}
	outer, err := spec.Parse("crashing.yaml", []byte(crashing), nil)
	inner, err2 := spec.Parse("inner.yaml", []byte(crashInner), nil)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	w := effectFile{dir}
	e, err := workflow.Open(w, &workflow.Options{Records: s, Definitions: func() []*spec.Definition { return []*spec.Definition{outer, inner} }, Approvals: autoApprover{}, Catalog: w, Tasks: w})
	if err != nil {
		return err
	}
	r, err := crashRun(e)
	if err != nil {
		return err
	}
	if err := errors.Join(e.Close(), s.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(crashed{r.ID, r.Status, r.Outputs, r.Error, made()})
}

// crashed is what a child says at its end.
type crashed struct {
	ID      string
	Status  workflow.Status
	Outputs json.RawMessage
	Error   *workflow.Fault
	Writes  int
}

func crashRun(e *workflow.Engine) (workflow.Run, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	begun, err := e.Start(ctx, workflow.Start{Workflow: "crashing", Inputs: []byte(`{"list":["x","y"]}`), Key: "one"})
	if err != nil {
		return begun, err
	}
	r, err := e.WaitSettled(ctx, begun.ID)
	for ; err == nil && !r.Status.Over(); r, err = e.WaitSettled(ctx, begun.ID) {
		if slices.ContainsFunc(r.Waiting, func(p workflow.Pending) bool { return p.Step == "ask" }) {
			if _, err := e.Answer(ctx, begun.ID, "ask", []byte(`{"name":"ann"}`)); err != nil {
				return r, err
			}
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return r, err
	}
	return e.Run(ctx, begun.ID)
}

// The process is killed right before each of its writes, and started again. The run comes to
// the same end, no step that had ended is done again, and only what was interrupted, and may be, is done twice.
func TestKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a process for each write")
	}
	whole := newCrash(t)
	whole.child("")
	if whole.last.Status != workflow.OK || whole.last.Writes < 30 {
		t.Fatalf("undisturbed it is %+v", whole.last)
	}
	jobs := make(chan string)
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for at := range jobs {
				crashAt(t, at, whole)
			}
		})
	}
	for n := 1; n <= whole.last.Writes; n++ {
		jobs <- storetest.KillAt(n, false)
		if os.Getenv("SALLYPORT_TEST_EVERY_KILL") != "" { // what is on the disk is what it is before the next
			jobs <- storetest.KillAt(n, true)
		}
	}
	close(jobs)
	work.Wait()
}

// crashAt kills a process at one of its writes, has another go on, and compares.
func crashAt(t *testing.T, at string, whole *crash) {
	t.Helper()
	c := newCrash(t)
	if !c.child(at) {
		return // it made fewer writes this time: branches share them
	}
	c.child("")
	if c.last.Status != workflow.OK {
		t.Errorf("%s: it ends %s: %+v", at, c.last.Status, c.last.Error)
		return
	}
	unsure := strings.Contains(string(c.last.Outputs), `"unsure"`)
	same := strings.NewReplacer(`"kept":"cached"`, `"kept":"ok"`, `"unsure"`, `"done"`)
	if got, want := same.Replace(string(c.last.Outputs)), string(whole.last.Outputs); got != want {
		t.Errorf("%s: it comes to %s, not %s", at, got, want)
	}
	c.compare(at, whole, unsure)
}

// compare holds what was done against what an undisturbed run does.
func (c *crash) compare(at string, whole *crash, unsure bool) {
	c.t.Helper()
	want, got := counts(whole.effects()), counts(c.effects())
	if unsure {
		want[`count {"mended":1}`], want[`careful {"careful":1}`] = 1, got[`careful {"careful":1}`]
		if got[`careful {"careful":1}`] > 1 {
			c.t.Errorf("%s: what may be done once was done %d times", at, got[`careful {"careful":1}`])
		}
	}
	if got["task"] != 1 {
		c.t.Errorf("%s: the task was done %d times", at, got["task"])
	}
	more := 0
	for deed, n := range got {
		if n < want[deed] || n > want[deed]+1 {
			c.t.Errorf("%s: %q was done %d times, not %d", at, deed, n, want[deed])
		}
		more += n - want[deed]
	}
	for deed := range want {
		if got[deed] == 0 && want[deed] > 0 {
			c.t.Errorf("%s: %q was not done", at, deed)
		}
	}
	if more > 2 { // two branches may be interrupted at once
		c.t.Errorf("%s: %d deeds were done twice", at, more)
	}
}

// counts counts deeds; an execution's own journal is none.
func counts(deeds []string) map[string]int {
	all := map[string]int{}
	for _, deed := range deeds {
		if !strings.HasPrefix(deed, "journal ") {
			all[deed]++
		}
	}
	return all
}

// crash is a directory that processes run the workflow in.
type crash struct {
	t *testing.T
	effectFile
	last crashed // what the last that ended by itself said
}

func newCrash(t *testing.T) *crash {
	t.Helper()
	return &crash{t: t, effectFile: effectFile{t.TempDir()}}
}

// child runs a process, and reports whether it was killed.
func (c *crash) child(kill string) bool {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Error(err)
		return false
	}
	cmd := exec.CommandContext(c.t.Context(), self)
	cmd.Env = append(os.Environ(), crashDir+"="+c.dir, "GORACE=atexit_sleep_ms=0")
	if kill != "" {
		cmd.Env = append(cmd.Env, kill)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if kill != "" && err != nil && cmd.ProcessState.ExitCode() == -1 {
		return true
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &c.last)
	}
	if err != nil {
		c.t.Errorf("%s: %v: %s%s", kill, err, out.Bytes(), said.Bytes())
	}
	return false
}
