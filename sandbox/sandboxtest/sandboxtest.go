// Package sandboxtest is the conformance suite for sandboxes: it runs hostile and
// faulty programs and checks the outcome from inside and outside. IDs such as A01
// in the names of cases are rows of docs/explanation/attacks.md.
package sandboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// Runner is a sandbox under test.
type Runner interface {
	Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error)
}

// Case is one program and its expected outcome.
type Case struct {
	Name   string
	Python string
	Node   string // used where Python is empty
	// Limit changes the default limits.
	Limit func(l *sandbox.Limits)
	// Status is OK if empty.
	Status sandbox.Status
	// Value is the program's value as JSON; "" is not checked, "-" means none.
	Value string
	// Check checks the rest of the outcome.
	Check func(t *testing.T, o sandbox.Outcome)
	// Within is the time limit beyond the start of a sandbox; 0 is 10 s.
	Within time.Duration

	session string
}

// Tree returns the required content of /servers while the suite runs.
func Tree() map[string][]byte {
	return map[string][]byte{
		"__init__.py":      nil,
		"test/__init__.py": []byte("from sallyport import package\npackage(__name__, {'echo': 'echo', 'open_issue': 'open_issue', 'resources': 'resources'})\n"),
		"test/open_issue.py": []byte("from sallyport import async_call, call\ndef open_issue(title, *, labels=()):\n    return call('test.open_issue', {'title': title}, SPEC)\n" +
			"async def aio(title): return await async_call('test.open_issue', {'title': title})\nopen_issue.aio = aio\n" +
			`SPEC = '{"sig":"test.open_issue(title: str, *, labels: list[str] = ...)","args":{"o":{"title":"s","labels?":{"l":"s"}}}}'` + "\n"),
		"test/open_issue.ts": nil,
		"test/echo.ts":       nil,
		"test/resources.py":  []byte("from sallyport import call\ndef read(uri): return call('test.resources/read', {'uri': uri})\n"),
		"test/echo.py":       []byte("from sallyport import call\ndef echo(x, *, times=1):\n    return call('test.echo', {'x': x, 'times': times})['args']['x']\n"),
	}
}

// group is a named list of cases.
type group struct {
	name  string
	cases []Case
}

// Run runs the whole suite. Tree must have been published.
func Run(t *testing.T, runner Runner) {
	runGroups(t, runner, allGroups())
	t.Run("printed", func(t *testing.T) { LiveOutput(t, runner) })
	t.Run("workspaces-apart", func(t *testing.T) { checkSeparateWorkspaces(t, runner) })
	t.Run("benign-after-all", func(t *testing.T) { // the runner still does its job
		Case{Python: "6 * 7", Value: "42"}.run(t, runner)
	})
}

func allGroups() []group {
	return []group{{"isolation", isolationCases}, {"limits", limitCases}, {"faults", faultCases}, {"values", valueCases}, {"bridge", bridgeCases}, {"functions", functionCases}, {"emit", emitCases}, {"mistakes", mistakeCases}}
}

// RunNamed runs the cases of [Run] with these names, all of which must exist. It is for transports to a sandbox
// that is tested elsewhere.
func RunNamed(t *testing.T, runner Runner, names ...string) {
	t.Helper()
	groups, found := allGroups(), 0
	for i, g := range groups {
		groups[i].cases = slices.DeleteFunc(slices.Clone(g.cases), func(c Case) bool { return !slices.Contains(names, c.Name) })
		found += len(groups[i].cases)
	}
	if found < len(names) {
		t.Fatalf("only %d of %d cases were found", found, len(names))
	}
	runGroups(t, runner, groups)
}

// RunCore runs the cases that depend on how a sandbox is created and limited: the attacks among the cases of isolation,
// limits and bridge, and [Residue]. It is for configurations without a full [Run]. Without languages it runs both.
func RunCore(t *testing.T, runner Runner, languages ...sandbox.Interpreter) {
	if len(languages) == 0 {
		languages = []sandbox.Interpreter{sandbox.Python, sandbox.Node}
	}
	attack := func(c Case) bool {
		return len(c.Name) > 2 && c.Name[1] >= '0' && c.Name[1] <= '9' && slices.Contains(languages, c.job().Interpreter)
	}
	groups := []group{{"isolation", isolationCases}, {"limits", limitCases}, {"bridge", bridgeCases}}
	for i, g := range groups {
		groups[i].cases = slices.DeleteFunc(slices.Clone(g.cases), func(c Case) bool { return !attack(c) })
	}
	runGroups(t, runner, groups)
	Residue(t, runner, languages...)
}

func runGroups(t *testing.T, runner Runner, groups []group) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(strings.ReplaceAll(c.Name, " ", "-"), func(t *testing.T) { c.run(t, runner) })
			}
		})
	}
}

var executions atomic.Int64

// Job makes a job with an id of its own and default limits.
func Job(interpreter sandbox.Interpreter, code string) sandbox.Job {
	return sandbox.Job{ID: fmt.Sprintf("case-%d", executions.Add(1)), Interpreter: interpreter, Code: code, Limits: sandbox.DefaultLimits()}
}

func (c Case) job() sandbox.Job {
	job := Job(sandbox.Python, c.Python)
	if c.Python == "" {
		job = Job(sandbox.Node, c.Node)
	}
	job.Session = c.session
	job.Limits.Timeout = time.Minute
	if c.Limit != nil {
		c.Limit(&job.Limits)
	}
	return job
}

func (c Case) run(t *testing.T, runner Runner) {
	t.Helper()
	start := time.Now()
	outcome, err := runner.Run(t.Context(), c.job(), Echo{})
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	want := c.Status
	if want == "" {
		want = sandbox.OK
	}
	if outcome.Status != want {
		t.Fatalf("status %s, want %s: %s", outcome.Status, want, show(outcome))
	}
	if got := value(outcome); c.Value != "" && got != c.Value {
		t.Errorf("value %s, want %s; %s", got, c.Value, show(outcome))
	}
	if c.Check != nil {
		c.Check(t, outcome)
	}
	within := c.Within
	if within == 0 {
		within = 10 * time.Second
	}
	if took := time.Since(start); took > within+time.Minute { // a slow machine is no fault; hanging is
		t.Errorf("took %s, want at most %s", took, within)
	}
}

func value(o sandbox.Outcome) string {
	if o.Value == nil {
		return "-"
	}
	return o.Value.Text
}

func show(o sandbox.Outcome) string {
	o.Stdout.Text, o.Stderr.Text = head(o.Stdout.Text), head(o.Stderr.Text)
	data, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func head(s string) string { return s[:min(len(s), 600)] }

// Echo answers every tool call with what it was called with; "test.raw" does it
// as a text. "test.fail" reports an error, "test.busy" one that passes, "test.blob" an image, "test.deep"
// and "test.binary" what is hard to read, and "test.slow" waits until it is
// cancelled; "test.far" tells of its progress, "test.flood" does so ten thousand
// times, and "test.ask" wants a person's answer; "test.person" waits for one for 3.5 s. There are two resources, and prompts.
type Echo struct{}

// Call is one call.
func (Echo) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	switch call.Tool.String() {
	case "test.fail":
		return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: "no such thing"}}}, nil
	case "test.deny":
		return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "not allowed", Hint: "ask first"}
	case "test.busy":
		return tool.Result{}, &tool.Error{Kind: tool.Upstream, Message: "busy", Retryable: true}
	case "test.blob":
		return tool.Result{Content: []tool.Content{{Type: "image", Data: []byte{0, 1, 254, 255}, MIME: "image/png"}}}, nil
	case "test.text":
		return tool.Result{Content: []tool.Content{{Type: "text", Text: "007"}}}, nil
	case "test.mixed":
		return tool.Result{Content: []tool.Content{{Type: "text", Text: `{"a": [1, 9007199254740993]}`}, {Type: "text", Text: "plain"}}}, nil
	case "test.raw":
		return tool.Result{Content: []tool.Content{{Type: "text", Text: "args: " + string(call.Args)}}}, nil
	case "test.deep":
		return tool.Result{Structured: []byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))}, nil
	case "test.binary":
		return tool.Result{Structured: []byte("[\"a\xffb\"]")}, nil
	case "test.slow":
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return answer(ctx, call)
}

// answer knows the rest of what can be called.
func answer(ctx context.Context, call tool.Call) (tool.Result, error) {
	switch call.Tool.String() {
	case "test.person":
		defer tool.Pause(ctx)()
		time.Sleep(3500 * time.Millisecond)
	case "test.far":
		return tellProgress(ctx, call, 3, 250*time.Millisecond)
	case "test.flood":
		return tellProgress(ctx, call, 10_000, 0)
	case "test.ask":
		_, err := call.Peer.Ask(ctx, "elicitation/create", []byte(`{}`))
		return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: "no answer: " + err.Error()}}}, nil
	case "test.resources/read":
		return readResource(call)
	case "test.resources/list":
		return tool.Result{Structured: []byte(`{"resources":[{"uri":"test:a"}]}`)}, nil
	case "test.prompts/get":
		return tool.Result{Structured: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":` + string(call.Args) + `}}]}`)}, nil
	}
	answer, err := json.Marshal(map[string]any{"tool": call.Tool, "args": call.Args, "execution": call.Execution})
	return tool.Result{Structured: answer}, err
}

func tellProgress(ctx context.Context, call tool.Call, n int, every time.Duration) (tool.Result, error) {
	for i := range n {
		call.Peer.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":1,"progress":%d,"total":%d,"message":"step \u001b %d"}`, i+1, n, i+1))
		call.Peer.Notify("notifications/message", []byte(`{"level":"info","data":"not for programs"}`))
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
	return tool.Result{Structured: []byte(`"done"`)}, nil
}

func readResource(call tool.Call) (tool.Result, error) {
	var in struct{ URI string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	text := tool.Content{Type: "resource", URI: in.URI, Text: `{"a": 1}`}
	blob := tool.Content{Type: "resource", URI: in.URI, Data: []byte{0, 255}, MIME: "image/png"}
	switch in.URI {
	case "test:a":
		return tool.Result{Content: []tool.Content{text}}, nil
	case "test:b":
		return tool.Result{Content: []tool.Content{blob, text}}, nil
	}
	return tool.Result{}, &tool.Error{Kind: tool.NotFound, Message: "no such resource"}
}

// checkSeparateWorkspaces runs two programs at once, each of which looks for what the other writes.
func checkSeparateWorkspaces(t *testing.T, runner Runner) {
	const code = `import os, time
open("/workspace/mine", "w").write("NAME")
open("/tmp/mine-NAME", "w").write("x")
time.sleep(1)
(sorted(os.listdir("/workspace")), open("/workspace/mine").read(), [f for f in os.listdir("/tmp") if f.startswith("mine-")])`
	done := make(chan string, 2)
	for _, name := range []string{"one", "two"} {
		go func() {
			outcome, err := runner.Run(t.Context(), Job(sandbox.Python, strings.ReplaceAll(code, "NAME", name)), Echo{})
			if want := fmt.Sprintf(`[["mine"],"%s",["mine-%s"]]`, name, name); err != nil || value(outcome) != want {
				done <- fmt.Sprintf("%s saw %s, %v; want %s", name, show(outcome), err, want)
				return
			}
			done <- ""
		}()
	}
	for range 2 {
		if wrong := <-done; wrong != "" {
			t.Error(wrong)
		}
	}
	Case{Python: `import os; (os.listdir("/workspace"), os.path.exists("/tmp/mine-one"))`, Value: "[[],false]"}.run(t, runner)
}
