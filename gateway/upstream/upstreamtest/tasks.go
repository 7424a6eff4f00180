package upstreamtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tasks is a server over HTTP with a tool "work" that requires a task, as strict as real ones. The argument "as" of a call says how
// its task behaves. Its zero value is the form of MCP 2025-11-25; it is safe for concurrent use.
type Tasks struct {
	// Modern selects the extension of MCP 2026-07-28.
	Modern bool
	// Pushes sends the status of a task that is released: with Modern to subscriptions/listen, otherwise on the stream of a GET.
	Pushes bool

	mu       sync.Mutex
	calls    int
	listens  int
	released bool
	canceled []string
	tasks    map[string]*taskState
	answers  chan json.RawMessage // to the question of a task
}

// taskState is one task.
type taskState struct {
	as     string
	polls  int
	answer json.RawMessage
}

// Calls returns how many tasks were made.
func (s *Tasks) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Release ends the tasks that are held.
func (s *Tasks) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = true
}

// Polls returns how often a task was polled.
func (s *Tasks) Polls(as string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks["t-"+as]; t != nil {
		return t.polls
	}
	return 0
}

// Canceled reports whether a task was canceled.
func (s *Tasks) Canceled(as string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.canceled, "t-"+as)
}

// Listens returns how many streams wait for the status of tasks.
func (s *Tasks) Listens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listens
}

// push sends the status of the task "told" when it is released, or when it is asked for again after that, and keeps the stream open.
func (s *Tasks) push(w http.ResponseWriter, r *http.Request, method, first string) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(data string) {
		fmt.Fprintf(w, "data: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
	}
	if first != "" {
		send(first)
	}
	s.count(1)
	defer s.count(-1)
	for r.Context().Err() == nil && !s.isReleased() {
		time.Sleep(10 * time.Millisecond)
	}
	send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"taskId":"t-else","status":"completed"}}`, method))
	send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"taskId":"t-told","status":"completed"}}`, method))
	<-r.Context().Done()
}

func (s *Tasks) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listens += n
}

func (s *Tasks) isReleased() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released
}

// listen answers subscriptions/listen.
func (s *Tasks) listen(w http.ResponseWriter, r *http.Request, m taskMessage) {
	_, declared := m.Params.Meta.Can.Extensions[taskExtension]
	if !declared || !s.Pushes || len(m.Params.Notifications.TaskIDs) != 1 {
		fmt.Fprint(w, response(m, "", &taskFailure{-32021, "missing required client capability"}))
		return
	}
	s.push(w, r, "notifications/tasks", `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["t-told"]}}}`)
}

type taskMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params struct {
		Name      string              `json:"name"`
		Arguments struct{ As string } `json:"arguments"`
		Task      json.RawMessage     `json:"task"`
		TaskID    string              `json:"taskId"`
		// Notifications are those of subscriptions/listen.
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
		} `json:"notifications"`
		Responses struct {
			Q json.RawMessage `json:"q"`
		} `json:"inputResponses"`
		Meta struct {
			Can struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	} `json:"params"`
}

type taskFailure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ServeHTTP implements [http.Handler].
func (s *Tasks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && s.Pushes && !s.Modern {
		s.push(w, r, "notifications/tasks/status", "")
		return
	}
	var m taskMessage
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.Method == "" {
		s.answers <- m.Result
	}
	if m.Method == "" || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "tasks/result" && m.Params.TaskID == "t-ask" {
		s.ask(w, m)
		return
	}
	if m.Method == "subscriptions/listen" {
		s.listen(w, r, m)
		return
	}
	s.mu.Lock()
	result, failed := s.handle(r, m)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, response(m, result, failed))
}

func response(m taskMessage, result string, failed *taskFailure) string {
	if failed != nil {
		said, _ := json.Marshal(failed)
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, said)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// ask sends a question before the result.
func (s *Tasks) ask(w http.ResponseWriter, m taskMessage) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":%s}\n\n", taskQuestion)
	_ = http.NewResponseController(w).Flush()
	said := <-s.answers
	fmt.Fprintf(w, "data: %s\n\n", response(m, taskResult(string(said)), nil))
}

const (
	taskExtension = "io.modelcontextprotocol/tasks"
	taskQuestion  = `{"message":"Who?","requestedSchema":{"type":"object"}}`
	taskTools     = `{"resultType":"complete","tools":[{"name":"work","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
		`{"name":"plain","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}`
)

func taskResult(text string) string {
	said, _ := json.Marshal(text)
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%s}],"_meta":{"n":9007199254740993,"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`, said)
}

// handle is called with mu held.
func (s *Tasks) handle(r *http.Request, m taskMessage) (string, *taskFailure) {
	switch m.Method {
	case "server/discover":
		if s.Modern {
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"` + taskExtension + `":{}}}}`, nil
		}
	case "initialize":
		s.answers, s.tasks = make(chan json.RawMessage, 9), map[string]*taskState{}
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`, nil
	case "tools/list":
		return taskTools, nil
	case "tools/call":
		return s.call(m)
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
		return s.task(r, m)
	}
	return "", &taskFailure{-32601, "no method " + m.Method}
}

func (s *Tasks) call(m taskMessage) (string, *taskFailure) {
	_, declared := m.Params.Meta.Can.Extensions[taskExtension]
	as := m.Params.Arguments.As
	switch {
	case s.Modern && !declared:
		return "", &taskFailure{-32021, "missing required client capability"}
	case m.Params.Name == "plain" && m.Params.Task != nil:
		return "", &taskFailure{-32601, "it takes no task"}
	case m.Params.Name == "plain", as == "plain":
		return taskResult("plain"), nil
	case !s.Modern && m.Params.Task == nil:
		return "", &taskFailure{-32601, "it requires task augmentation"}
	}
	if s.tasks == nil {
		s.tasks = map[string]*taskState{}
	}
	s.calls++
	id := "t-" + as
	s.tasks[id] = &taskState{as: as}
	switch as {
	case "long":
		id = strings.Repeat("t", 600)
	case "odd":
		return `{"resultType":"task","task":7}`, nil
	case "instant": // the state in the result of a call has no result of the task
		return fmt.Sprintf(`{"resultType":"task","taskId":%q,"status":"completed"}`, id), nil
	}
	poll := map[string]string{"told": "60000"}[as]
	if s.Modern {
		return fmt.Sprintf(`{"resultType":"task","taskId":%q,"status":"working","pollIntervalMs":%s}`, id, cmp.Or(poll, "-1e300")), nil
	}
	return fmt.Sprintf(`{"task":{"taskId":%q,"status":"working","pollInterval":%s}}`, id, cmp.Or(poll, "0")), nil
}

// task handles a request about a task.
func (s *Tasks) task(r *http.Request, m taskMessage) (string, *taskFailure) {
	t := s.tasks[m.Params.TaskID]
	_, declared := m.Params.Meta.Can.Extensions[taskExtension]
	switch {
	case s.Modern && (!declared || r.Header.Get("Mcp-Name") != m.Params.TaskID):
		return "", &taskFailure{-32021, "missing required client capability or header"}
	case t == nil:
		return "", &taskFailure{-32602, "Task not found"}
	}
	switch m.Method {
	case "tasks/get":
		t.polls++
		return s.get(t)
	case "tasks/cancel":
		s.canceled = append(s.canceled, m.Params.TaskID)
		return `{"resultType":"complete"}`, nil
	case "tasks/update":
		t.answer = m.Params.Responses.Q
		return `{"resultType":"complete"}`, nil
	}
	return t.result()
}

// get returns the state of a task.
func (s *Tasks) get(t *taskState) (string, *taskFailure) {
	id, status, message, more := "t-"+t.as, "completed", "", ""
	switch t.as {
	case "gone":
		return "", &taskFailure{-32602, "Task not found"}
	case "other":
		id = "t-else"
	case "unknown":
		status = "sl\x1b[31meeping"
	case "failed":
		status, message = "failed", "disk full"
	case "refused":
		status = "failed"
	case "canceled":
		status, message = "cancelled", "by an operator"
	case "endless":
		status, message = "working", fmt.Sprint("step ", t.polls, strings.Repeat("!", 5000))
	case "held", "told":
		if !s.released {
			status = "working"
		}
	case "early":
		status = "input_required"
	case "late", "ask":
		if t.polls < 3 {
			status = "input_required"
		}
	default:
		if t.polls < 3 {
			status, message = "working", fmt.Sprint("step ", t.polls)
		}
	}
	if s.Modern {
		more = t.inline(status)
	}
	said, _ := json.Marshal(map[string]any{"taskId": id, "status": status, "statusMessage": message, "pollInterval": 1, "resultType": "complete"})
	return strings.TrimSuffix(string(said), "}") + more + "}", nil
}

// inline returns what the extension has in a task.
func (t *taskState) inline(status string) string {
	switch {
	case status == "input_required":
		return `,"inputRequests":{"q":{"method":"elicitation/create","params":` + taskQuestion + `}}`
	case status == "failed":
		return `,"error":{"code":-32603,"message":"disk full"}`
	case status != "completed":
		return ""
	}
	result, failed := t.result()
	if failed != nil {
		return ""
	}
	return `,"result":` + result
}

// result returns the result of a task.
func (t *taskState) result() (string, *taskFailure) {
	switch t.as {
	case "none", "failed":
		return "", &taskFailure{-32603, "no result stored"}
	case "refused":
		return "", &taskFailure{-32602, "no such topic"}
	case "bad":
		return `{"content":[{"type":"text","text":"no luck"}],"isError":true}`, nil
	case "late":
		if t.polls < 3 {
			return "", &taskFailure{-32603, "not yet"}
		}
	case "ask":
		return taskResult(string(t.answer)), nil
	}
	return taskResult("done"), nil
}
