package httpapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/task"
	"sallyport/internal/models"
	"sallyport/internal/tool"
)

// clerk has one task, of ada.
type clerk struct{}

func (clerk) task() task.Task {
	begun := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	return task.Task{
		ID: "t-ada", Principal: "ada", Client: "curl", Task: "count the orders", Only: []string{"shop"}, Model: "fast", Status: task.Done, Begun: begun, Ended: begun.Add(time.Second),
		Answer: "6", Program: "print(6)", Language: "python", Execution: "e-k3vq7m2yhx4d", Notes: []string{"a note"}, Tokens: models.Usage{Input: 900, Cached: 700, Output: 40}, Price: 0.002,
		Questions: []task.Question{{Name: "month", Text: "Which month?", Choices: []string{"may"}}}, Error: "none", Kind: "failed",
		Turns: []task.Turn{{Kind: task.KindProgram, Text: "print(6)", Language: "python", Begun: begun, Duration: time.Second, Model: "small", Tokens: models.Usage{Input: 900, Output: 40}, Price: 0.002,
			Execution: "e-k3vq7m2yhx4d", Status: "ok", Calls: []string{"shop.list_orders ok"}, Found: []string{"shop.list_orders"}, Shown: 12, Error: "none"}},
	}
}

func (c clerk) Start(_ context.Context, r task.Request) (task.Task, error) {
	if slices.Contains(r.Only, "nobody") {
		return task.Task{}, &tool.Error{Kind: tool.NotFound, Message: "there is no upstream nobody"}
	}
	return c.task(), nil
}

func (c clerk) Show(ctx context.Context, id string) (task.Task, error) {
	if id != "t-ada" || tool.Operator(ctx) == "" && tool.Principal(ctx) != "ada" {
		return task.Task{}, &tool.Error{Kind: tool.NotFound, Message: "there is no task"}
	}
	return c.task(), nil
}

func (c clerk) StartResume(ctx context.Context, id string) (task.Task, error) { return c.Show(ctx, id) }

func (c clerk) Follow(ctx context.Context, id string, seen func(task.Task)) (task.Task, error) {
	one, err := c.Show(ctx, id)
	if seen != nil && err == nil {
		seen(one)
	}
	return one, err
}

func (c clerk) List(context.Context, int) ([]task.Task, error) { return []task.Task{c.task()}, nil }

func (c clerk) Cancel(ctx context.Context, id string) error {
	_, err := c.Show(ctx, id)
	return err
}

// TestTaskEvents: a client that accepts events gets the task, each turn once, and the result.
func TestTaskEvents(t *testing.T) {
	w := send(t, promise{who: "ada", route: "POST /tasks", body: `{"task":"count"}`, events: true})
	var names []string
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, name)
		}
	}
	if got := strings.Join(names, " "); got != "task turn result" || !strings.Contains(w.Body.String(), `"execution":"e-k3vq7m2yhx4d"`) {
		t.Errorf("%s: %s", got, w.Body)
	}
}
