package workflow_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/task"
	"sallyport/gateway/workflow"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/models/scripted"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

const taskFlow = `
inputs: {word: {type: string}}
steps:
  - id: ask
    task: Echo ${{ inputs.word }}
    with: {times: 2}
    only: [up]
    retry: {count: 1, wait: 1ms}
    returns: {type: object, required: [said], properties: {said: {type: string}}}
outputs: {said: {value: "${{ steps.ask.output.said }}"}}`

// stubTasks are tasks by hand: what was asked for, and what Run and Resume do.
type stubTasks struct {
	do func(ctx context.Context, what string, t task.Task) task.Task

	mu    sync.Mutex
	asked []string
	tasks map[string]task.Task
}

func (s *stubTasks) work(ctx context.Context, what string, t task.Task) (task.Task, error) {
	args, _ := json.Marshal(t.Args) // of raw JSON
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(what+" "+t.Task+" "+string(args)+" "+strings.Join(t.Only, " ")))
	s.mu.Unlock()
	t = s.do(ctx, what, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks[t.ID] = t
	return t, nil
}

func (s *stubTasks) Run(ctx context.Context, r task.Request, _ func(task.Task)) (task.Task, error) {
	return s.work(ctx, "run", task.Task{ID: r.ID, Task: r.Task, Args: r.Args, Only: r.Only, Output: r.Output})
}

func (s *stubTasks) Resume(ctx context.Context, id string, _ tool.Peer, _ func(task.Task)) (task.Task, error) {
	t, err := s.Show(ctx, id)
	if err != nil {
		return t, err
	}
	return s.work(ctx, "resume", t)
}

func (s *stubTasks) Show(_ context.Context, id string) (task.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, known := s.tasks[id]; known {
		return t, nil
	}
	return task.Task{}, &tool.Error{Kind: tool.NotFound, Message: "there is no task " + id}
}

func done(t task.Task, answer string) task.Task {
	t.Status, t.Answer, t.Error, t.Kind = task.Done, answer, "", ""
	return t
}

const askedOnce = `run Echo hi {"times":2} up`

// TestTaskStep: the output of a task is checked by its schema; a task that failed is resumed by a retry and by a resumed run,
// not begun again; what it needs to know is an error.
func TestTaskStep(t *testing.T) {
	t.Parallel()
	failed := func(t task.Task, kind tool.Kind) task.Task {
		t.Status, t.Kind, t.Error, t.Execution = task.Failed, string(kind), "no luck", "e-1"
		return t
	}
	for name, test := range map[string]struct {
		do     func(n int, t task.Task) task.Task
		asked  []string
		status workflow.Status
		says   string
	}{
		"done":         {func(_ int, t task.Task) task.Task { return done(t, `{"said": "hi hi"}`) }, []string{askedOnce}, workflow.OK, `{"said":"hi hi"}`},
		"wrong answer": {func(_ int, t task.Task) task.Task { return done(t, `{"say": "hi"}`) }, []string{askedOnce}, workflow.Failed, "said"},
		"no JSON":      {func(_ int, t task.Task) task.Task { return done(t, `hi`) }, []string{askedOnce}, workflow.Failed, "not JSON"},
		"retried": {func(n int, t task.Task) task.Task {
			if n == 1 {
				return failed(t, tool.Upstream)
			}
			return done(t, `{"said": "late"}`)
		}, []string{askedOnce, strings.Replace(askedOnce, "run", "resume", 1)}, workflow.OK, `{"said":"late"}`},
		"failed": {func(_ int, t task.Task) task.Task { return failed(t, tool.Failed) }, []string{askedOnce}, workflow.Failed, "no luck"},
		"asks": {func(_ int, t task.Task) task.Task {
			t.Status, t.Questions = task.Asked, []task.Question{{Name: "place", Text: "Where?"}}
			return t
		}, []string{askedOnce}, workflow.Failed, "needs to know: place"},
		"held without anybody": {func(_ int, t task.Task) task.Task {
			t.Status, t.Approvals = task.Held, []string{"a-1"}
			return t
		}, []string{askedOnce}, workflow.Failed, "nobody can be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			s := &stubTasks{tasks: map[string]task.Task{}, do: func(_ context.Context, _ string, t task.Task) task.Task { n++; return test.do(n, t) }}
			e := engine(t, &stubCaller{}, workflow.Options{Tasks: s}, map[string]string{"flow": taskFlow})
			r := run(t, e, workflow.Start{Workflow: "flow", Inputs: json.RawMessage(`{"word":"hi"}`)})
			said := string(r.Outputs)
			if r.Error != nil {
				said = r.Error.Message
			}
			if r.Status != test.status || !strings.Contains(said, test.says) || !slices.Equal(s.asked, test.asked) {
				t.Errorf("%s: %s; asked %q", r.Status, said, s.asked)
			}
			if name != "failed" {
				return
			}
			s.do = func(_ context.Context, _ string, t task.Task) task.Task { return done(t, `{"said": "at last"}`) }
			if _, err := e.Resume(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			if r, err := e.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK || !strings.HasPrefix(s.asked[1], "resume") || len(s.asked) != 2 {
				t.Errorf("%+v, %v; asked %q", r, err, s.asked)
			}
		})
	}
}

// TestTaskDoneOnce: of a gateway that ends after a task is done and before its step, the next one takes the answer.
func TestTaskDoneOnce(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	s := &stubTasks{tasks: map[string]task.Task{}, do: func(ctx context.Context, _ string, t task.Task) task.Task {
		close(begun)
		<-ctx.Done()
		return done(t, `{"said": "once"}`)
	}}
	opts := workflow.Options{Tasks: s, Records: store.Memory()}
	e := engine(t, &stubCaller{}, opts, map[string]string{"flow": taskFlow})
	started, err := e.Start(t.Context(), workflow.Start{Workflow: "flow", Inputs: json.RawMessage(`{"word":"hi"}`)})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = engine(t, &stubCaller{}, opts, map[string]string{"flow": taskFlow})
	r, err := e.Wait(t.Context(), started.ID)
	if err != nil || r.Status != workflow.OK || string(r.Outputs) != `{"said":"once"}` || !slices.Equal(s.asked, []string{askedOnce}) {
		t.Errorf("%+v, %v; asked %q", r, err, s.asked)
	}
}

// TestRealTask: a task of a step, in a real gateway whose policy asks about each call: the run waits for the person, also over
// a restart, and the model is not asked again for what it has written.
func TestRealTask(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	h := newTestGateway(t)
	model := &scripted.Model{API: models.OpenAI, Reply: scripted.Script("```python\nfrom servers.up import echo\nprint(echo(text=\"one\")[\"text\"], echo(text=\"two\")[\"text\"])\n```", "```json\n{\"said\": \"one two\"}\n```")}
	server := httptest.NewServer(model)
	defer server.Close()
	h.cfg.Models = map[string]config.LanguageModel{"default": {API: "openai", URL: server.URL, Model: scripted.Name, Key: scripted.Key, Answer: 500, Timeout: time.Minute}}
	open := func() (close func()) {
		h.open()
		tasks, err := task.Open(task.Options{Gateway: h.gateway.Service(), Catalog: h.gateway.Catalog, Settings: h.gateway.Reloader.Current(), Records: h.records})
		if err != nil {
			t.Fatal(err)
		}
		_ = h.Close() // this one does no tasks
		h.Engine = engine(t, h.gateway.Service(), workflow.Options{Records: h.records, Approvals: h.gateway.Approver, Catalog: h.gateway.Service(), Labels: h.gateway.Guard, Tasks: tasks}, map[string]string{"flow": taskFlow})
		return func() { _ = h.Close(); _ = tasks.Close(); h.close() }
	}
	end := open()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	begun, err := h.Start(ctx, workflow.Start{Workflow: "flow", Inputs: json.RawMessage(`{"word":"one and two"}`)})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for {
		r, err := h.WaitSettled(ctx, begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != workflow.Waiting {
			if r.Status != workflow.OK || string(r.Outputs) != `{"said":"one two"}` {
				t.Errorf("%+v", r)
			}
			break
		}
		asked[r.Waiting[0].Approval] = true
		end()
		end = open()
		if r, err = h.WaitSettled(ctx, begun.ID); err != nil {
			t.Fatal(err)
		}
		h.answer(r)
		waitForChange(t, h, r)
	}
	defer end()
	if turns := model.Turns(); len(asked) != 2 || len(turns) != 2 || !strings.Contains(turns[1].Last(), "one two") || !strings.Contains(turns[0].Last(), "times = 2") {
		t.Errorf("%d questions, %d turns: %+v", len(asked), len(turns), turns)
	}
}
