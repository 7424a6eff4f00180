package mcpserver_test

import (
	"context"
	"strings"
	"testing"

	"sallyport/gateway/mcpserver"
	"sallyport/gateway/task"
	"sallyport/internal/config"
)

// errands ends each task as told.
type errands struct {
	ends task.Task
	got  task.Request
}

func (e *errands) Run(_ context.Context, r task.Request, _ func(task.Task)) (task.Task, error) {
	e.got = r
	return e.ends, nil
}

// TestRunTask: the tool passes a task on, and says how it ended and what to do then.
func TestRunTask(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ends   task.Task
		says   string
		failed bool
	}{
		{task.Task{Status: task.Done, Answer: "3 orders"}, "3 orders", false},
		{task.Task{Status: task.Planned, Program: "print(3)"}, "print(3)", false},
		{task.Task{Status: task.Asked, Questions: []task.Question{{Name: "month", Text: "Which?", Choices: []string{"may"}}}}, "month: Which? One of may", true},
		{task.Task{Status: task.Refused, Error: "no tool", Program: "guess()"}, "guess()", true},
		{task.Task{Status: task.Held, Execution: "e-1"}, "e-1", true},
		{task.Task{Status: task.Failed, Error: "no answer after 16 turns"}, "16 turns", true},
	} {
		e := &errands{ends: test.ends}
		client := connectShop(t, &shop{}, mcpserver.Options{Tasks: e, Profiles: config.Profiles{config.ProfileTasks}})
		text, failed := call(t, client, "run_task", map[string]any{"task": "count", "only": []string{"shop"}, "args": map[string]any{"month": "may"}, "plan": true, "output": map[string]any{"type": "string"}})
		if !strings.Contains(text, test.says) || failed != test.failed {
			t.Errorf("%s: %v, %s", test.ends.Status, failed, text)
		}
		if e.got.Task != "count" || !e.got.Plan || string(e.got.Output) != `{"type":"string"}` || e.got.Only[0] != "shop" || string(e.got.Args["month"]) != `"may"` {
			t.Errorf("%+v", e.got)
		}
	}
}
