package dashboard_test

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/task"
	"sallyport/internal/models"
	"sallyport/internal/tool"
)

// duties are the tasks of the house.
type duties struct{ told *[]string }

func (duties) List(ctx context.Context, _ int) ([]task.Task, error) {
	turn := task.Turn{Kind: task.KindProgram, Text: evil, Language: evil, Begun: noon, Duration: time.Second, Model: evil, Execution: evilID, Status: evil, Calls: []string{evil}, Found: []string{evil}, Error: evil, Tokens: models.Usage{Input: 9}, Shown: 10}
	search := turn
	search.Kind = task.KindSearch
	all := []task.Task{
		{ID: "t-1", Principal: "ada", Task: "Count the orders", Model: "default", Status: task.Running, Begun: noon, Turns: []task.Turn{{Kind: task.KindSearch, Text: "orders", Found: []string{"shop.list_orders"}, Duration: time.Second}}, Tokens: models.Usage{Input: 1200, Output: 34}, Price: 0.0123},
		{ID: "t-2", Principal: "op", Task: "Delete it", Model: "rules", Status: task.Held, Begun: noon, Execution: "e-1", Program: "x", Approvals: []string{"a-1"}},
		{ID: "t-evil", Principal: evil, Client: evil, Task: strings.Repeat(evil, 100), Args: map[string]json.RawMessage{evil: json.RawMessage(quote(evil))}, Only: []string{evil}, Output: json.RawMessage(quote(evil)), Workspace: evil, Environment: evil, Model: evil,
			Status: task.Failed, Begun: noon, Ended: noon, Turns: []task.Turn{turn, search}, Answer: evil, Questions: []task.Question{{Name: evil, Text: evil, Choices: []string{evil}}}, Program: evil, Execution: evilID, Error: evil, Notes: []string{evil}},
	}
	return slices.DeleteFunc(all, func(t task.Task) bool { return tool.Operator(ctx) == "" && t.Principal != tool.Principal(ctx) }), nil
}

func (d duties) Show(ctx context.Context, id string) (task.Task, error) {
	all, _ := d.List(ctx, 10)
	if i := slices.IndexFunc(all, func(t task.Task) bool { return t.ID == id }); i >= 0 {
		return all[i], nil
	}
	return task.Task{}, &tool.Error{Kind: tool.NotFound, Message: "there is no task " + id}
}

func (d duties) Cancel(ctx context.Context, id string) error {
	t, err := d.Show(ctx, id)
	if err == nil && t.Status != task.Running {
		err = &tool.Error{Kind: tool.Invalid, Message: "the task has ended"}
	}
	if err == nil {
		*d.told = append(*d.told, "cancel "+id)
	}
	return err
}

func (d duties) StartResume(ctx context.Context, id string) (task.Task, error) {
	t, err := d.Show(ctx, id)
	if err == nil {
		*d.told = append(*d.told, "resume "+id)
	}
	return t, err
}

// taskPages are those of this file, with what must be on each for an operator.
var taskPages = map[string][]string{
	"/ui/tasks":             {"t-1", "Count the orders", "1,234", "0.0123", "held"},
	"/ui/tasks?status=done": {"No task matches."},
	"/ui/tasks/t-1":         {"1. search", "shop.list_orders", "1,234 tokens", "price 0.0123", "Cancel"},
	"/ui/tasks/t-2":         {"an approval", "Resume", "There is none so far"},
	"/ui/tasks/t-evil":      {"Program of turn 1", "Needs to know", "Answer", "/ui/executions/e-evil"},
}

// TestTasks: who is no operator sees their own tasks; a task is canceled and resumed by who may.
func TestTasks(t *testing.T) {
	if page := ask(t, house{}, "ada", "/ui/tasks", nil).Body.String(); !strings.Contains(page, "t-1") || strings.Contains(page, "t-2") {
		t.Error("tasks of ada:", page)
	}
	if page := ask(t, house{}, "op", "/ui/tasks/t-evil", nil).Body.String(); strings.Contains(page, "/resume") {
		t.Error("the task of another can be resumed:", page)
	}
	for _, test := range []struct {
		who, path string
		status    int
		told      string
	}{
		{"op", "/ui/tasks/t-1/cancel", 303, "cancel t-1"},
		{"op", "/ui/tasks/t-2/cancel", 303, ""},
		{"op", "/ui/tasks/t-2/resume", 303, "resume t-2"},
		{"op", "/ui/tasks/t-9/resume", 404, ""},
		{"ada", "/ui/tasks/t-2/resume", 404, ""},
		{"reader", "/ui/tasks/t-1/cancel", 403, ""},
	} {
		var told []string
		got := ask(t, house{told: &told}, test.who, test.path, url.Values{})
		if got.Code != test.status || strings.Join(told, "|") != test.told {
			t.Errorf("%s %s: %d, told %q", test.who, test.path, got.Code, told)
		}
	}
}

func (fair) List(ctx context.Context, _ int) ([]task.Task, error) {
	t, err := fair{}.Show(ctx, "t-fairfairfair")
	return []task.Task{t}, err
}

// Show returns a task, for its picture.
func (fair) Show(_ context.Context, id string) (task.Task, error) {
	at := time.Now().Add(-2 * time.Minute)
	turn := func(kind, text string, took time.Duration, in, out int) task.Turn {
		u := models.Usage{Input: in, Output: out}
		return task.Turn{Kind: kind, Text: text, Begun: at, Duration: took * time.Millisecond, Tokens: u, Price: float64(in)*4e-7 + float64(out)*1.6e-6}
	}
	search := turn(task.KindSearch, "list tickets of the support desk", 1240, 310, 22)
	search.Found, search.Shown = []string{"crm.list_tickets", "crm.list_contacts", "crm.get_contact"}, 940
	wrong := turn(task.KindProgram, "from servers.crm import list_tickets\n\nlate = [t for t in list_tickets(status=\"open\")[\"tickets\"] if t[\"severity\"] == \"high\"]\nworst = max(late, key=lambda t: t[\"hours\"])\nprint(len(late), worst[\"id\"])", 2810, 590, 96)
	wrong.Execution, wrong.Status, wrong.Error, wrong.Calls = "e-7hq4tmnbw2x5", "failed", "KeyError: 'hours'; did you mean \"hours_open\"?", []string{"crm.list_tickets ok"}
	right := turn(task.KindProgram, strings.Replace(wrong.Text, "\"hours\"", "\"hours_open\"", 1), 2430, 770, 98)
	right.Execution, right.Status, right.Calls, right.Shown = "e-9xwd2f6qdmnh", "ok", wrong.Calls, 61
	answer := turn(task.KindAnswer, "t-012 waits longest, 143 hours.", 900, 910, 18)
	return task.Task{
		ID: id, Principal: "token:ada", Task: "Which open ticket of severity high waits longest?", Only: []string{"crm"}, Model: "default", Status: task.Done, Begun: at, Ended: at.Add(7380 * time.Millisecond),
		Turns: []task.Turn{search, wrong, right, answer}, Answer: answer.Text, Program: right.Text, Execution: right.Execution, Tokens: models.Usage{Input: 2580, Output: 234}, Price: 0.001406,
	}, nil
}

func (fair) Cancel(context.Context, string) error { return nil }

func (fair) StartResume(ctx context.Context, id string) (task.Task, error) {
	return fair{}.Show(ctx, id)
}
