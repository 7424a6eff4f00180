package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/httpapi"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// mill is an engine in memory: ada has the run r-ada, which waits for a form and is over after a minute.
type mill struct{ began time.Time }

func (*mill) Definitions() []workflow.Info {
	return []workflow.Info{{Name: "digest", Path: "/srv/secret/digest.yaml", Exposed: true, Inputs: json.RawMessage(`{}`), Outputs: json.RawMessage(`{}`), Steps: []workflow.Outline{{ID: "list", Kind: "tool"}}},
		{Name: "inner", Inputs: json.RawMessage(`{}`), Outputs: json.RawMessage(`{}`), Steps: []workflow.Outline{}}}
}

func (*mill) Plan(_ context.Context, name string, inputs json.RawMessage) (lint.Planned, error) {
	return lint.Planned{Workflow: name + string(inputs), Steps: []lint.PlannedStep{}}, nil
}

func (*mill) Start(ctx context.Context, s workflow.Start) (workflow.Run, error) {
	return workflow.Run{ID: "r-new", Workflow: s.Workflow, Status: workflow.Running, Inputs: s.Inputs, Trigger: s.Trigger + s.Key, Principal: tool.Principal(ctx)}, nil
}

func (m *mill) WaitSettled(ctx context.Context, id string) (workflow.Run, error) {
	select {
	case <-ctx.Done():
		return workflow.Run{}, ctx.Err()
	case <-time.After(5 * time.Second):
		return workflow.Run{ID: id, Status: workflow.Waiting}, nil
	}
}

func (*mill) Run(ctx context.Context, id string) (workflow.Run, error) {
	if id == "r-new" || id == "r-ada" && (tool.Operator(ctx) != "" || tool.Principal(ctx) == "ada") {
		return workflow.Run{ID: id, Workflow: "digest", Status: workflow.Running, Inputs: json.RawMessage(`{"a":1}`),
			Waiting: []workflow.Pending{{Step: "pause", For: "time"}, {Step: "ask", For: "form", Form: json.RawMessage(`{"title":"t"}`)}}}, nil
	}
	return workflow.Run{}, &tool.Error{Kind: tool.NotFound, Message: "there is no run " + id}
}

func (m *mill) Runs(ctx context.Context, f workflow.Filter) ([]workflow.Run, error) {
	run, err := m.Run(ctx, "r-ada")
	if err != nil {
		return nil, nil //nolint:nilerr // the others have none
	}
	run.Principal = fmt.Sprintf("%s %s %d", f.Workflow, f.Status, f.Limit)
	return []workflow.Run{run}, nil
}

// eventLog is what has happened in the run until now: a first event, and one more after a minute.
func (m *mill) eventLog() []workflow.Event {
	all := []workflow.Event{{Kind: runlog.Created}, {Kind: runlog.Began, Path: "ask"}}
	if m.began.IsZero() || time.Since(m.began) < time.Minute {
		return all
	}
	return append(all, workflow.Event{Kind: runlog.Ended, Path: "ask", Outcome: "ok"}, workflow.Event{Kind: runlog.Over, Status: workflow.OK})
}

func (m *mill) Events(_ context.Context, _ string, from int) iter.Seq2[workflow.Event, error] {
	return func(yield func(workflow.Event, error) bool) {
		for i, e := range m.eventLog() {
			if i >= from && !yield(e, nil) {
				return
			}
		}
	}
}

func (m *mill) Follow(ctx context.Context, _ string, from int, do func(workflow.Event) error) error {
	for {
		for _, e := range m.eventLog()[from:] {
			if err := do(e); err != nil || e.Kind == runlog.Over {
				return err
			}
			from++
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (m *mill) Cancel(ctx context.Context, id string) error { _, err := m.Run(ctx, id); return err }
func (m *mill) Resume(ctx context.Context, id string) (workflow.Run, error) {
	return m.Run(ctx, id)
}

func (m *mill) Replay(ctx context.Context, id, step string) (workflow.Run, error) {
	run, err := m.Run(ctx, id)
	run.ID, run.Of = "r-again", id+" "+step
	return run, err
}

func (m *mill) Answer(ctx context.Context, id, step string, values json.RawMessage) (workflow.Run, error) {
	run, err := m.Run(ctx, id)
	run.Outputs, _ = json.Marshal(step + string(values))
	return run, err
}

// TestWorkflowRoutes: who is no operator sees and starts what is exposed; whose a run is the engine knows.
func TestWorkflowRoutes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		who, method, path, body string
		status                  int
		says                    string
	}{
		{"op", "GET", "/workflows", "", 200, "digest inner"},
		{"ada", "GET", "/workflows", "", 200, "digest"},
		{"ada", "GET", "/workflows/digest", "", 200, `"exposed":true`},
		{"ada", "GET", "/workflows/digest", "", 200, `"path":"digest.yaml"`},
		{"op", "GET", "/workflows/digest", "", 200, `"path":"/srv/secret/digest.yaml"`},
		{"ada", "GET", "/workflows/inner", "", 404, "there is no workflow inner"},
		{"ada", "POST", "/workflows/inner/runs", `{}`, 404, "there is no workflow inner"},
		{"ada", "POST", "/workflows/digest/runs", `{"inputs":{"a":[1]},"key":"k"}`, 200, `"inputs":{"a":[1]},"principal":"ada","started":"0001-01-01T00:00:00Z","status":"running","steps":0,"trigger":"httpk"`},
		{"ada", "POST", "/workflows/digest/runs", `{"wait":61}`, 400, "wait must be 0 to 60"},
		{"ada", "POST", "/workflows/digest/runs", `{"key":"` + strings.Repeat("k", 101) + `"}`, 400, "key must be at most 100 bytes"},
		{"ada", "POST", "/workflows/digest/runs", `{"inputs":{"a":"` + strings.Repeat("k", 100<<10) + `"}}`, 200, "kkkk"},
		{"ada", "POST", "/workflows/digest/runs", `{"inputs":{"a":"` + strings.Repeat("k", 1<<20) + `"}}`, 413, "too large"},
		{"ada", "POST", "/workflows/digest/plan", `{"inputs":{"a":1}}`, 200, `"workflow":"digest{\"a\":1}"`},
		{"ada", "POST", "/workflows/inner/plan", `{}`, 404, "there is no workflow inner"},
		{"ada", "GET", "/runs?workflow=digest&status=waiting&limit=3", "", 200, `digest waiting 3`},
		{"ada", "GET", "/runs", "", 200, `"principal":"  50"`},
		{"bob", "GET", "/runs", "", 200, `{"runs":[]}`},
		{"ada", "GET", "/runs?status=done", "", 400, "status must be one of queued, running"},
		{"ada", "GET", "/runs?workflow=a&workflow=b", "", 400, "workflow must be there once"},
		{"ada", "GET", "/runs/r-ada", "", 200, `"form":{"title":"t"}`},
		{"bob", "GET", "/runs/r-ada", "", 404, "there is no run"},
		{"bob", "GET", "/runs/r-ada/events", "", 404, "there is no run"},
		{"ada", "GET", "/runs/r-ada/events?after=0", "", 200, `"next":2,"over":false`},
		{"ada", "GET", "/runs/r-ada/events?after=1", "", 200, `[{"kind":"began","path":"ask"`},
		{"ada", "GET", "/runs/r-ada/events?after=-1", "", 400, "after must be one number"},
		{"ada", "GET", "/runs/r-ada/events?limit=1&values=none", "", 200, `"next":1,"over":false`},
		{"ada", "GET", "/runs/r-ada/events?limit=1001", "", 400, "limit must be one number, 1 to 1000"},
		{"op", "POST", "/runs/r-ada/cancel", `{}`, 200, "r-ada"},
		{"bob", "POST", "/runs/r-ada/cancel", `{}`, 404, "there is no run"},
		{"op", "POST", "/runs/r-ada/cancel", `{"why":"x"}`, 400, "the body has no why"},
		{"ada", "POST", "/runs/r-ada/resume", `{}`, 200, "r-ada"},
		{"ada", "POST", "/runs/r-ada/resume", `{"id":"r-ada"}`, 200, "r-ada"},
		{"ada", "POST", "/runs/r-ada/resume", `{"id":"r-bob"}`, 400, "the body has no id"},
		{"ada", "POST", "/runs/r-ada/replay", `{"step":"x.y"}`, 200, "r-ada x.y"},
		{"ada", "POST", "/runs/r-ada/replay", `{}`, 400, "the body needs step"},
		{"ada", "POST", "/runs/r-ada/answer", `{"step":"ask","values":{"name":"x"}}`, 200, `ask{\"name\":\"x\"}`},
		{"bob", "POST", "/runs/r-ada/answer", `{"values":{}}`, 404, "there is no run"},
	} {
		status, _, got := ask(t, test.who, test.method, test.path, test.body)
		if list, ok := got["workflows"].([]any); ok {
			var names []string
			for _, one := range list {
				names = append(names, one.(map[string]any)["name"].(string))
			}
			got["names"] = strings.Join(names, " ")
			if got["names"] != test.says {
				t.Errorf("%s sees the workflows %v", test.who, got["names"])
			}
		}
		all, err := json.Marshal(got)
		if err != nil || status != test.status || !strings.Contains(string(all), test.says) {
			t.Errorf("%s %s %s %.60s: %d %.400s", test.who, test.method, test.path, test.body, status, all)
		}
	}
	if _, _, got := ask(t, "op", "GET", "/runs", ""); strings.Contains(fmt.Sprint(got), "title") || strings.Contains(fmt.Sprint(got), "inputs") {
		t.Errorf("a list has more of a run than it needs: %v", got)
	}
	for who, want := range map[string]string{"op": "cli", "ada": "http"} {
		if _, _, got := ask(t, who, "POST", "/workflows/digest/runs", `{}`, httpapi.TriggerHeader+": cli"); got["trigger"] != want {
			t.Errorf("%s says that the trigger is %v", who, got["trigger"])
		}
	}
}

// TestNoEngine: a process without one says so, and its health does.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/runs": `"kind":"not_found"`, "/workflows/x": "this process runs no workflows", "/health": `"workflows":false`} {
		w := httptest.NewRecorder()
		httpapi.New(house{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// silentMill cannot read its runs, because the store does not answer.
type silentMill struct{ mill }

func (*silentMill) WaitSettled(context.Context, string) (workflow.Run, error) {
	return workflow.Run{}, toolcall.Unavailable(fmt.Errorf("read: %w", store.ErrUnreachable))
}

// TestLaunchOutage: a run that was started is the answer also if it cannot be waited for: an error that says that nothing was done would have
// the client start another one.
func TestLaunchOutage(t *testing.T) {
	t.Parallel()
	api := httpapi.New(house{}, &httpapi.Options{Workflows: &silentMill{}})
	send := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(tool.WithOperator(t.Context(), "test"), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		api.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, text := send(http.MethodPost, "/workflows/digest/runs", `{"wait":5}`); code != http.StatusOK || !strings.Contains(text, `"id":"r-new"`) {
		t.Errorf("started: %d %s", code, text)
	}
	if code, text := send(http.MethodGet, "/runs/r-new?wait=5", ""); code != http.StatusServiceUnavailable || !strings.Contains(text, "does not answer") {
		t.Errorf("asked for: %d %s", code, text)
	}
}

// TestLongPoll: an answer comes with the first event, or when the time that was asked for is over.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		api := httpapi.New(house{}, &httpapi.Options{Workflows: &mill{began: began}})
		get := func(path string) (text string, took time.Duration) {
			asked := time.Now()
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequestWithContext(tool.WithOperator(t.Context(), "test"), http.MethodGet, path, nil))
			return w.Body.String(), time.Since(asked)
		}
		if text, took := get("/runs/r-ada/events?after=2&wait=30"); took != 30*time.Second || !strings.Contains(text, `{"events":[],"next":2,"over":false}`) {
			t.Errorf("nothing happens: %v %s", took, text)
		}
		if text, took := get("/runs/r-ada/events?after=2&wait=60"); took > 31*time.Second || !strings.Contains(text, `"next":4,"over":true`) || !strings.Contains(text, `"ended"`) {
			t.Errorf("the rest comes: %v %s", took, text)
		}
		if text, took := get("/runs/r-ada?wait=3"); took != 3*time.Second || !strings.Contains(text, `"status":"running"`) {
			t.Errorf("it is not over yet: %v %s", took, text)
		}
		if text, took := get("/runs/r-ada?wait=10"); took != 5*time.Second || !strings.Contains(text, `"status":"waiting"`) {
			t.Errorf("it waits for a person: %v %s", took, text)
		}
	})
}
