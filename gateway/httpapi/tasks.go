package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"sallyport/gateway/task"
	"sallyport/internal/tool"
)

// Tasks works on tasks in words.
type Tasks interface {
	TaskRuns
	// Show returns a task of the caller, or of any principal for an operator; List the last ones, the newest first.
	Show(ctx context.Context, id string) (task.Task, error)
	List(ctx context.Context, limit int) ([]task.Task, error)
	Cancel(ctx context.Context, id string) error
}

// TaskRuns starts tasks and waits for them.
type TaskRuns interface {
	// Start begins a task, which continues after the request.
	Start(ctx context.Context, r task.Request) (task.Task, error)
	// StartResume continues a held or failed one.
	StartResume(ctx context.Context, id string) (task.Task, error)
	// Follow calls seen with each state until the task is over.
	Follow(ctx context.Context, id string, seen func(task.Task)) (task.Task, error)
}

// taskRoutes are the routes of tasks.
type taskRoutes struct{ service Tasks }

const (
	defaultTasks, maxTasks = 20, 200
	// maxTaskBody bounds a request for a task, in bytes.
	maxTaskBody = 512 << 10
)

// The events of tasks, in addition to those of programs.
const (
	eventTask = "task"
	eventTurn = "turn"
)

func (t taskRoutes) routes() []route {
	all := []route{
		post(tool.ScopeExecute, "/tasks", "begin a task in words; with Accept: text/event-stream follow it to its end", t.start).withName("start_task").withMaxBody(maxTaskBody).
			withStream(t.startStream, events{eventTask: typeOf[TaskState](), eventTurn: typeOf[TaskTurn](), eventResult: typeOf[TaskState](), eventError: typeOf[Problem]()}).
			failsWith(http.StatusNotFound),
		get("/tasks", "the last tasks, the newest first, without their turns", t.list).withName("list_tasks").failsWith(http.StatusNotFound).withParams(limit(defaultTasks, maxTasks)),
		get("/tasks/{id}", "one task with its turns", t.show).withName("get_task").withParams(number("wait", 1, maxWait, 0, "seconds to wait until it is over")),
		post(tool.ScopeExecute, "/tasks/{id}/cancel", "stop it", t.cancel).withName("cancel_task"),
		post(tool.ScopeExecute, "/tasks/{id}/resume", "go on with one that is held or failed, at its last program", t.resume).withName("resume_task"),
	}
	for i := range all {
		all[i].tasks = true
	}
	return all
}

// NewTask is the body of POST /tasks.
type NewTask struct {
	// Task describes in words what is to be done.
	Task string `json:"task"`
	// Model is the name of a model in the settings; without it the default one.
	Model string `json:"model,omitempty"`
	// NoModel uses rules.
	NoModel bool `json:"no_model,omitempty"`
	// Plan stops with the first program, which does not run.
	Plan bool `json:"plan,omitempty"`
	// Only are the upstreams that its programs may call; without it all.
	Only []string `json:"only,omitempty"`
	// Args are values for parameters, by name.
	Args map[string]json.RawMessage `json:"args,omitempty"`
	// Output is the JSON Schema of the answer; without it the answer is text.
	Output json.RawMessage `json:"output,omitempty"`
	// Workspace is the workspace of its programs.
	Workspace string `json:"workspace,omitempty"`
	// Environment is the environment of its programs.
	Environment string `json:"environment,omitempty"`
}

func (n NewTask) request() task.Request {
	return task.Request{Task: n.Task, Model: n.Model, NoModel: n.NoModel, Plan: n.Plan, Only: n.Only, Args: n.Args, Output: n.Output, Workspace: n.Workspace, Environment: n.Environment}
}

// TaskState is a task.
type TaskState struct {
	// ID is its id.
	ID string `json:"id"`
	// Principal asked for it.
	Principal string `json:"principal,omitempty"`
	// Client is the client's name.
	Client string `json:"client,omitempty"`
	// Task is what is to be done.
	Task string `json:"task"`
	// Model is the name of the model in the settings, "rules" without one.
	Model string `json:"model"`
	// Only are the only upstreams that it may use; none means all.
	Only []string `json:"only,omitempty"`
	// Status is running, done, planned, asked, refused, failed, held or canceled.
	Status string `json:"status"`
	// Begun is when it began.
	Begun time.Time `json:"begun"`
	// Ended is when it ended.
	Ended time.Time `json:"ended,omitzero"`
	// Answer is the answer; JSON if the request has a schema.
	Answer string `json:"answer,omitempty"`
	// Questions are the values that it needs, with status asked.
	Questions []TaskQuestion `json:"questions,omitempty"`
	// Program is the last program: the one that worked, the planned one, or a guess.
	Program string `json:"program,omitempty"`
	// Language is the language of Program.
	Language string `json:"language,omitempty"`
	// Execution is the execution that ran it.
	Execution string `json:"execution,omitempty"`
	// Error is why it failed or was refused.
	Error string `json:"error,omitempty"`
	// Kind is the kind of the error.
	Kind string `json:"kind,omitempty"`
	// Notes are further remarks.
	Notes []string `json:"notes,omitempty"`
	// Tokens are the tokens of the model.
	Tokens TaskTokens `json:"tokens"`
	// Price is their price in the currency of the settings.
	Price float64 `json:"price,omitempty"`
	// TurnCount is the number of turns.
	TurnCount int `json:"turn_count"`
	// Turns are the steps so far. Lists and events omit them.
	Turns []TaskTurn `json:"turns,omitempty"`
}

// TaskQuestion is a value that a task needs.
type TaskQuestion struct {
	// Name is its name for args.
	Name string `json:"name"`
	// Text is the question.
	Text string `json:"text"`
	// Choices are the possible values, if they are a fixed set.
	Choices []string `json:"choices,omitempty"`
}

// TaskTokens are the tokens of a model.
type TaskTokens struct {
	// Input are the tokens that it read.
	Input int `json:"input"`
	// Cached are those of them that were read from a cache.
	Cached int `json:"cached,omitempty"`
	// Output are the tokens that it wrote.
	Output int `json:"output"`
	// Estimated is set if the model's server did not count them.
	Estimated bool `json:"estimated,omitempty"`
}

// TaskTurn is a step of a task.
type TaskTurn struct {
	// Kind is search, program, answer or invalid.
	Kind string `json:"kind"`
	// Text is the query, the program, the answer, or the reply that was none of these.
	Text string `json:"text"`
	// Language is that of a program.
	Language string `json:"language,omitempty"`
	// Begun is when it began.
	Begun time.Time `json:"begun"`
	// DurationMS is how long it took, in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// WaitedMS is the part of it in which the model's server was busy, in milliseconds.
	WaitedMS int64 `json:"waited_ms,omitempty"`
	// Model is the model's name as its server reports it.
	Model string `json:"model,omitempty"`
	// Tokens are the tokens of the turn.
	Tokens TaskTokens `json:"tokens"`
	// Price is their price.
	Price float64 `json:"price,omitempty"`
	// Execution is the execution that ran the program.
	Execution string `json:"execution,omitempty"`
	// Status is how the program ended.
	Status string `json:"status,omitempty"`
	// Calls are the program's first calls, as "upstream.tool outcome".
	Calls []string `json:"calls,omitempty"`
	// Found are the tools that a search showed.
	Found []string `json:"found,omitempty"`
	// Shown is the size of what the model read of it, in bytes.
	Shown int `json:"shown,omitempty"`
	// Error is what was wrong.
	Error string `json:"error,omitempty"`
}

// TaskList is what GET /tasks gives.
type TaskList struct {
	// Tasks are the last tasks, the newest first.
	Tasks []TaskState `json:"tasks"`
}

// StateOf returns the state of a task with its turns.
func StateOf(t task.Task) TaskState { return stateOf(t, true) }

func turnOf(t task.Turn) TaskTurn {
	return TaskTurn{
		Kind: t.Kind, Text: t.Text, Language: t.Language, Begun: t.Begun, DurationMS: t.Duration.Milliseconds(), WaitedMS: t.Waited.Milliseconds(), Model: t.Model, Tokens: TaskTokens(t.Tokens), Price: t.Price,
		Execution: t.Execution, Status: t.Status, Calls: t.Calls, Found: t.Found, Shown: t.Shown, Error: t.Error,
	}
}

func stateOf(t task.Task, withTurns bool) TaskState {
	s := TaskState{
		ID: t.ID, Principal: t.Principal, Client: t.Client, Task: t.Task, Model: t.Model, Only: t.Only, Status: string(t.Status), Begun: t.Begun, Ended: t.Ended, Answer: t.Answer,
		Program: t.Program, Language: t.Language, Execution: t.Execution, Error: t.Error, Kind: t.Kind, Notes: t.Notes, Tokens: TaskTokens(t.Tokens), Price: t.Price, TurnCount: len(t.Turns),
	}
	for _, q := range t.Questions {
		s.Questions = append(s.Questions, TaskQuestion(q))
	}
	if withTurns {
		for _, one := range t.Turns {
			s.Turns = append(s.Turns, turnOf(one))
		}
	}
	return s
}

func (t taskRoutes) start(r *http.Request, in NewTask) (TaskState, error) {
	now, err := t.service.Start(r.Context(), in.request())
	return StateOf(now), err
}

// startStream begins a task and streams its turns until it is over. It continues if the client disconnects.
func (t taskRoutes) startStream(w http.ResponseWriter, r *http.Request) error {
	var in NewTask
	if err := readBody(r, &in); err != nil {
		return err
	}
	now, err := t.service.Start(r.Context(), in.request())
	if err != nil {
		return err
	}
	s := newStream(w)
	s.send(eventTask, stateOf(now, false))
	shown := 0
	last, err := t.service.Follow(r.Context(), now.ID, func(state task.Task) {
		for _, one := range state.Turns[min(shown, len(state.Turns)):] {
			s.send(eventTurn, turnOf(one))
		}
		shown = len(state.Turns)
	})
	if err != nil {
		s.send(eventError, problem(r, statusOf(err), tool.AsError(err)))
		return nil
	}
	s.send(eventResult, stateOf(last, false))
	return nil
}

func (t taskRoutes) list(r *http.Request) (TaskList, error) {
	all, err := t.service.List(r.Context(), queryOf(r).number("limit"))
	out := TaskList{}
	for _, one := range all {
		out.Tasks = append(out.Tasks, stateOf(one, false))
	}
	return out, err
}

func (t taskRoutes) show(r *http.Request) (TaskState, error) {
	id, ctx := r.PathValue("id"), r.Context()
	if seconds := queryOf(r).number("wait"); seconds > 0 {
		waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
		now, err := t.service.Follow(waiting, id, nil)
		return StateOf(now), err
	}
	now, err := t.service.Show(ctx, id)
	return StateOf(now), err
}

func (t taskRoutes) cancel(r *http.Request, _ Nothing) (TaskState, error) {
	if err := t.service.Cancel(r.Context(), r.PathValue("id")); err != nil {
		return TaskState{}, err
	}
	now, err := t.service.Follow(r.Context(), r.PathValue("id"), nil)
	return StateOf(now), err
}

func (t taskRoutes) resume(r *http.Request, _ Nothing) (TaskState, error) {
	now, err := t.service.StartResume(r.Context(), r.PathValue("id"))
	return StateOf(now), err
}
