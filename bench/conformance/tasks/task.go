package main

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// server has the tasks. It is safe for concurrent use.
type server struct {
	mu    sync.Mutex
	tasks map[string]*task
}

// task is a task. It ends when all its questions are answered and its time is over.
type task struct {
	id       string
	created  time.Time
	updated  time.Time
	ends     time.Time
	canceled bool
	pending  object // questions by key
	result   object // nil if it fails
}

// ttl is how long a task is kept, in milliseconds.
const ttl = 600_000

// tools returns the definitions of the tools that the scenarios call.
func tools() []object {
	var all []object
	for _, name := range []string{"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"} {
		all = append(all, object{"name": name, "description": "A tool of the suite.", "inputSchema": object{"type": "object"}})
	}
	return all
}

// call handles a call of a tool.
func (s *server) call(req *request) (object, *failure) {
	name := req.Params.Name
	asked, required := req.Params.Responses["user_name"], name != "greet" && name != "slow_compute"
	switch {
	case required && !req.keepsTasks():
		return nil, missingTasks()
	case name == "greet":
		return text("Hello, "+req.Params.Arguments.Name+"!", false), nil
	case name == "slow_compute" && !req.keepsTasks():
		time.Sleep(seconds(req))
		return text("computed", false), nil
	case name == "test_tool_with_task" && asked.Action == "":
		return object{"resultType": "input_required", "inputRequests": object{"user_name": question("Who?")}, "requestState": "round-1"}, nil
	case name == "test_tool_with_task" && req.Params.State != "round-1":
		return nil, &failure{Code: codeParams, Message: "unknown requestState"}
	}
	t := newTask(req, asked.Content.Name)
	if t == nil {
		return nil, &failure{Code: codeParams, Message: "unknown tool " + name}
	}
	return s.add(t), nil
}

// newTask returns the task that a call becomes, nil for an unknown tool. user is the response to the question of an earlier round.
func newTask(req *request, user string) *task {
	t := &task{result: text("done for "+user, false)}
	switch req.Params.Name {
	case "slow_compute":
		t.ends = time.Now().Add(seconds(req))
	case "failing_job":
		t.ends, t.result = time.Now().Add(time.Second), text("the job failed", true)
	case "protocol_error_job":
		t.result = nil
	case "confirm_delete":
		t.pending = object{"confirm": question("Delete?")}
	case "multi_input":
		t.pending = object{"first": question("First?"), "second": question("Second?")}
	case "test_tool_with_task":
	default:
		return nil
	}
	return t
}

func missingTasks() *failure {
	return &failure{Code: codeCapability, Message: "missing required client capability",
		Data: object{"requiredCapabilities": object{"extensions": object{extension: object{}}}}}
}

func seconds(req *request) time.Duration {
	return time.Duration(req.Params.Arguments.Seconds * float64(time.Second))
}

func text(said string, failed bool) object {
	return object{"resultType": "complete", "content": []object{{"type": "text", "text": said}}, "isError": failed}
}

func question(message string) object {
	return object{"method": "elicitation/create", "params": object{"mode": "form", "message": message, "requestedSchema": object{"type": "object",
		"properties": object{"name": object{"type": "string"}, "confirm": object{"type": "boolean"}}}}}
}

// add stores a task and returns the result of the call that it is for.
func (s *server) add(t *task) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.id, t.created, t.updated = rand.Text(), time.Now(), time.Now()
	s.tasks[t.id] = t
	return t.state("task")
}

// about handles a request about a task.
func (s *server) about(req *request) (object, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[req.Params.TaskID]
	switch {
	case !req.keepsTasks():
		return nil, missingTasks()
	case t == nil:
		return nil, &failure{Code: codeParams, Message: "unknown task"}
	case req.Method == "tasks/get":
		return t.details(), nil
	case req.Method == "tasks/cancel":
		t.cancel()
	default:
		t.answer(req.Params.Responses)
	}
	return object{"resultType": "complete"}, nil
}

// status returns the status of the task now.
func (t *task) status() string {
	switch {
	case t.canceled:
		return "cancelled"
	case len(t.pending) > 0:
		return "input_required"
	case time.Now().Before(t.ends):
		return "working"
	case t.result == nil:
		return "failed"
	}
	return "completed"
}

// state returns what every message about the task has.
func (t *task) state(resultType string) object {
	return object{"resultType": resultType, "taskId": t.id, "status": t.status(), "createdAt": t.created.UTC().Format(time.RFC3339Nano),
		"lastUpdatedAt": t.updated.UTC().Format(time.RFC3339Nano), "ttlMs": ttl, "pollIntervalMs": 100}
}

// details returns the state with the questions, the result or the error.
func (t *task) details() object {
	all := t.state("complete")
	switch all["status"] {
	case "input_required":
		all["inputRequests"] = t.pending
	case "completed":
		all["result"] = t.result
	case "failed":
		all["error"] = failure{Code: -32603, Message: fmt.Sprintf("task %s broke", t.id)}
	}
	return all
}

// cancel cancels the task, unless it has ended.
func (t *task) cancel() {
	switch t.status() {
	case "working", "input_required":
		t.canceled, t.updated = true, time.Now()
	}
}

// answer takes responses to questions; others are ignored.
func (t *task) answer(responses map[string]response) {
	for key := range responses {
		delete(t.pending, key)
	}
	t.updated = time.Now()
}
