package deferred

import (
	"bytes"
	"encoding/json"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// Extension is the extension of MCP 2026-07-28 for tasks. Revision 2025-11-25 has tasks in another form, without it.
	Extension = "io.modelcontextprotocol/tasks"
	// keepResult is how long beyond the time limit of the call the upstream is asked to keep the result of a task, for a program
	// that is resumed.
	keepResult = time.Hour

	// clientCapabilities is the member of _meta with the client's capabilities.
	clientCapabilities = "io.modelcontextprotocol/clientCapabilities"

	maxID = 512
	// defaultPoll, minPoll and maxPoll are the time between two polls of a task: if the upstream does not say, at least and at most.
	defaultPoll = time.Second
	minPoll     = 100 * time.Millisecond
	maxPoll     = time.Minute
	// maxMessage bounds a message about the status of a task, in bytes.
	maxMessage = 1 << 10
)

// Supported reports whether a server with those capabilities answers tool calls with tasks, in the form of the revision.
func Supported(capabilities map[string]json.RawMessage, modern bool) bool {
	if modern {
		return member(capabilities["extensions"], Extension) != nil
	}
	return member(member(member(capabilities["tasks"], "requests"), "tools"), "call") != nil
}

// Required reports whether a tool's definition requires that its calls request a task.
func Required(definition json.RawMessage) bool {
	if !bytes.Contains(definition, []byte("taskSupport")) {
		return false // the common case
	}
	var t struct {
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	return json.Unmarshal(definition, &t) == nil && t.Execution.TaskSupport == "required"
}

// Request returns the member of a call's params that requests a task; timeout is the time limit of the call.
func Request(timeout time.Duration) json.RawMessage {
	request, _ := json.Marshal(map[string]int64{"ttl": (timeout + keepResult).Milliseconds()}) // cannot fail
	return request
}

// Declare returns the capabilities of a client with the extension.
func Declare(capabilities json.RawMessage) json.RawMessage {
	declared := members(capabilities)
	if declared == nil {
		return capabilities
	}
	extensions := members(declared["extensions"])
	if extensions == nil {
		extensions = map[string]json.RawMessage{}
	}
	extensions[Extension] = json.RawMessage("{}")
	declared["extensions"], _ = json.Marshal(extensions) // cannot fail: its parts are valid
	all, _ := json.Marshal(declared)
	return all
}

// RelatedTask returns the id of the task that a request of the upstream belongs to, "" for none.
func RelatedTask(params json.RawMessage) string {
	var of struct {
		ID string `json:"taskId"`
	}
	_ = json.Unmarshal(member(member(params, "_meta"), relatedTask), &of) // an invalid one has no id
	return of.ID
}

// DeclareIn declares the extension in the client's capabilities of a request's _meta, if it has any.
func DeclareIn(meta map[string]json.RawMessage) {
	if declared := meta[clientCapabilities]; declared != nil {
		meta[clientCapabilities] = Declare(declared)
	}
}

// Task is the state of a task.
type Task struct {
	ID      string   `json:"taskId"`
	Status  string   `json:"status"` // "" if it is not known
	Message string   `json:"statusMessage"`
	Poll    *float64 `json:"pollInterval"` // in milliseconds
	// Only in the extension's form:
	PollMS *float64                   `json:"pollIntervalMs"`
	Result json.RawMessage            `json:"result"`
	Error  struct{ Message string }   `json:"error"`
	Input  map[string]json.RawMessage `json:"inputRequests"`
}

// ParseTask returns the task that a call became; nil if raw is the result of the call.
func ParseTask(raw json.RawMessage, modern bool) (*Task, error) {
	if !bytes.Contains(raw, []byte(`"task"`)) {
		return nil, nil // the common case
	}
	if modern {
		if typeOf(raw) != "task" {
			return nil, nil
		}
		return parse(raw)
	}
	fields := members(raw)
	if fields["task"] == nil || fields["content"] != nil {
		return nil, nil // the upstream did not make it a task
	}
	return parse(fields["task"])
}

func parse(raw json.RawMessage) (*Task, error) {
	var t Task
	if !isObject(raw) || json.Unmarshal(raw, &t) != nil || t.ID == "" || len(t.ID) > maxID {
		return nil, &TaskError{Kind: tool.Upstream, What: "the upstream sent an invalid task"}
	}
	t.Message = sanitize.Head(t.Message, maxMessage)
	return &t, nil
}

// interval returns the time until the next poll.
func (t *Task) interval() time.Duration {
	ms := t.Poll
	if t.PollMS != nil {
		ms = t.PollMS
	}
	if ms == nil {
		return defaultPoll
	}
	bounded := min(max(*ms, float64(minPoll.Milliseconds())), float64(maxPoll.Milliseconds()))
	return time.Duration(bounded) * time.Millisecond
}

// TaskError is the error of a task without a result.
type TaskError struct {
	Kind tool.Kind
	What string
	// Text is the upstream's, "" for none; it must be cleaned before it is shown.
	Text string
	Err  error
}

func (e *TaskError) Error() string { return e.What }
func (e *TaskError) Unwrap() error { return e.Err }

func members(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func member(raw json.RawMessage, name string) json.RawMessage { return members(raw)[name] }
