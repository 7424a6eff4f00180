package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

const taskClient = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// laboratory is a gateway with a strict server of tasks, for two principals.
type laboratory struct {
	t      *testing.T
	server *upstreamtest.Tasks
	url    string
	rules  policy.Settings
	direct *mcpserver.Direct // of the last gateway
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	lab := &laboratory{t: t, server: &upstreamtest.Tasks{Modern: true}}
	web := tlstest.NewServer(t, lab.server)
	t.Cleanup(web.Close)
	lab.url = web.URL
	return lab
}

// open returns clients of ann and ben at a new gateway. The key is that of each gateway of the laboratory.
func (lab *laboratory) open() (ann, ben *dialogue) {
	lab.t.Helper()
	cfg := config.Default()
	cfg.Upstreams, cfg.Trust, cfg.Policy = []config.Upstream{upstream("lab", lab.url, "")}, config.TrustAllow, lab.rules
	g, err := gateway.Open(&cfg, &gateway.Options{PeerRequests: true})
	if err != nil {
		lab.t.Fatal(err)
	}
	g.Catalog.WaitConnected(lab.t.Context())
	face := mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{StateKey: []byte("the key of this gateway")})
	lab.direct = face
	lab.t.Cleanup(func() {
		face.Close()
		_ = g.Close()
	})
	tokens := config.Secrets{"ann": "a", "ben": "b"}
	url := serve(lab.t, face, &siteOptions{Settings: config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: tokens}}) + "/mcp"
	return &dialogue{t: lab.t, url: url, version: "2026-07-28", token: "a", can: taskClient}, &dialogue{t: lab.t, url: url, version: "2026-07-28", token: "b", can: taskClient}
}

// begin calls a tool that becomes a task, and returns the ID of the task.
func (c *dialogue) begin(as string) string {
	c.t.Helper()
	got := c.ask("tools/call", `{"name":"lab__work","arguments":{"as":"`+as+`"}}`)
	var task struct{ ResultType, TaskID, Status string }
	if err := json.Unmarshal([]byte(got), &task); err != nil || task.ResultType != "task" || task.TaskID == "" || strings.Contains(got, "t-"+as) {
		c.t.Fatalf("%s: %s, %v", as, got, err)
	}
	return task.TaskID
}

// about sends a request about a task.
func (c *dialogue) about(method, id, more string) string {
	c.t.Helper()
	return c.ask(method, fmt.Sprintf(`{"taskId":%q%s}`, id, more))
}

// TestClientsWithTasks get a task, its state, its questions and its result, and cancel it.
func TestClientsWithTasks(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	ann, _ := lab.open()
	if got := ann.ask("server/discover", `{}`); !strings.Contains(got, `"io.modelcontextprotocol/tasks":{}`) {
		t.Errorf("declared %s", got)
	}
	id := ann.begin("good")
	for range 2 {
		if got := ann.about("tasks/get", id, ""); !strings.Contains(got, `"status":"working"`) || !strings.Contains(got, `"taskId":"`+id+`"`) {
			t.Errorf("state %s", got)
		}
	}
	if got := ann.about("tasks/get", id, ""); !strings.Contains(got, `"status":"completed"`) || !strings.Contains(got, `"text":"done"`) || !strings.Contains(got, `9007199254740993`) || strings.Contains(got, "t-good") {
		t.Errorf("at its end: %s", got)
	}
	asks := ann.begin("early")
	if got := ann.about("tasks/get", asks, ""); !strings.Contains(got, `"status":"input_required"`) || !strings.Contains(got, `"message":"lab: Who?"`) {
		t.Errorf("a task that asks: %s", got)
	}
	if got := ann.about("tasks/update", asks, `,"inputResponses":{"q":{"action":"accept"}}`); got != `{"resultType":"complete"}` {
		t.Errorf("updated: %s", got)
	}
	if got := ann.about("tasks/cancel", asks, ""); got != `{"resultType":"complete"}` || !lab.server.Canceled("early") {
		t.Errorf("canceled: %s", got)
	}
	for _, method := range []string{"tasks/result", "tasks/list"} {
		if got := ann.about(method, id, ""); !strings.Contains(got, "-32601") {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// TestTasksOfOthers: an ID is of one principal, and cannot be guessed, changed or used for another endpoint of the protocol.
func TestTasksOfOthers(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	ann, ben := lab.open()
	id := ann.begin("held")
	if again := ann.begin("held"); again == id {
		t.Error("an ID says which task it is")
	}
	polls := lab.server.Polls("held")
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		for _, other := range []string{"t-held", "", id + "x", id[:len(id)-1] + "!", strings.ToUpper(id), strings.Repeat("A", 5000)} {
			if got := ann.about(method, other, ""); !strings.Contains(got, "-32602") {
				t.Errorf("%s of %.20s: %s", method, other, got)
			}
		}
		if got := ben.about(method, id, ""); !strings.Contains(got, "-32602") || !strings.Contains(got, "Task not found") {
			t.Errorf("%s by another principal: %s", method, got)
		}
	}
	if lab.server.Canceled("held") || lab.server.Polls("held") != polls {
		t.Error("the upstream heard of it")
	}
}

// TestTasksNeedNoRule: a rule about the tool decides about its tasks.
func TestTasksNeedNoRule(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	lab.rules = policy.Settings{On: true, Default: policy.Deny, Rules: []policy.Rule{{Tools: []string{"lab.work"}, Then: policy.Allow}}}
	ann, _ := lab.open()
	id := ann.begin("held")
	if got := ann.about("tasks/get", id, ""); !strings.Contains(got, `"status":"working"`) {
		t.Errorf("state %s", got)
	}
}

// TestTasksOutliveTheGateway, unless the policy has been changed to deny the tool.
func TestTasksOutliveTheGateway(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	ann, _ := lab.open()
	id := ann.begin("held")
	lab.server.Release()
	ann, _ = lab.open()
	if got := ann.about("tasks/get", id, ""); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("after a restart: %s", got)
	}
	lab.rules = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Tools: []string{"lab.work"}, Then: policy.Deny}}}
	ann, _ = lab.open()
	if got := ann.about("tasks/get", id, ""); !strings.Contains(got, "Task not found") {
		t.Errorf("of a denied tool: %s", got)
	}
}

// TestTaskRequestsAreChecked: capability, headers, and what the upstream says.
func TestTaskRequestsAreChecked(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	ann, _ := lab.open()
	id := ann.begin("good")
	params := fmt.Sprintf(`{"taskId":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}`, id, taskClient)
	for _, name := range []string{"", "t-good"} {
		status, got := ann.post(`{"jsonrpc":"2.0","id":9,"method":"tasks/get","params":`+params+`}`, "tasks/get", name)
		if !strings.Contains(got, "-32020") {
			t.Errorf("with the header %q: %d, %s", name, status, got)
		}
	}
	for as, says := range map[string]string{"other": "the state of another task", "gone": "Task not found"} {
		if got := ann.about("tasks/get", ann.begin(as), ""); !strings.Contains(got, says) {
			t.Errorf("%s: %s", as, got)
		}
	}
	if got := ann.ask("tools/call", `{"name":"lab__work","arguments":{"as":"long"}}`); !strings.Contains(got, "invalid task") || !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("with a long ID: %s", got)
	}
	ann.can = `{"elicitation":{}}`
	if got := ann.about("tasks/get", id, ""); !strings.Contains(got, "-32021") || !strings.Contains(got, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
		t.Errorf("without the capability: %s", got)
	}
	for _, as := range []string{"fine", "instant"} {
		if got := ann.ask("tools/call", `{"name":"lab__work","arguments":{"as":"`+as+`"}}`); !strings.Contains(got, `"text":"done"`) || strings.Contains(got, "taskId") {
			t.Errorf("a client without tasks: %s: %s", as, got)
		}
	}
	if got := ann.ask("server/discover", `{}`); strings.Contains(got, "io.modelcontextprotocol/tasks") {
		t.Errorf("declared to it: %s", got)
	}
}

// TestTaskMethodsAreForClients: nothing but a client that was given a task can ask for one.
func TestTaskMethodsAreForClients(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	cfg := config.Default()
	cfg.Upstreams, cfg.Trust = []config.Upstream{upstream("lab", lab.url, "")}, config.TrustAllow
	g, err := gateway.Open(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	if _, err := tool.ParseID("lab.tasks/get"); err == nil {
		t.Error("a program can name the method")
	}
	_, err = g.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "lab", Name: tool.GetTask}, Args: []byte(`{"taskId":"t-held"}`)})
	if err == nil || !strings.Contains(err.Error(), "no method") {
		t.Errorf("a call without the right to: %v", err)
	}
}

// streamed is one message of a stream.
type streamed struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		TaskID        string `json:"taskId"`
		Status        string `json:"status"`
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
			Tools   bool     `json:"toolsListChanged"`
		} `json:"notifications"`
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// statuses returns the messages of a stream in short.
func statuses(t *testing.T, lines []string) (all []string) {
	t.Helper()
	for _, line := range lines {
		var m streamed
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(line, err)
		}
		switch {
		case m.Method == "notifications/tasks":
			if string(m.Params.Meta["io.modelcontextprotocol/subscriptionId"]) != "7" || strings.Contains(line, "resultType\":\"complete\",\"status") || strings.Contains(line, "sallyport/task") || strings.Contains(line, `"t-`) {
				t.Errorf("notified %s", line)
			}
			all = append(all, m.Params.TaskID+" "+m.Params.Status)
			if m.Params.Status == "completed" && !strings.Contains(line, `"text":"done"`) {
				t.Errorf("without a result: %s", line)
			}
		case m.Method != "":
			all = append(all, fmt.Sprint(m.Method, m.Params.Notifications.TaskIDs, m.Params.Notifications.Tools))
		case m.Error != nil:
			all = append(all, string(m.Error))
		default:
			all = append(all, "result")
		}
	}
	return all
}

// listen sends subscriptions/listen and returns what comes until the stream ends, or until the last message is one that ends with until.
func (c *dialogue) listen(notifications, until string) []string {
	c.t.Helper()
	body := `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":` + notifications + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.capabilities() + `}}}`
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen", "Authorization": "Bearer " + c.token} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var lines []string
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if line := strings.TrimPrefix(s.Text(), "data: "); strings.HasPrefix(line, "{") {
			lines = append(lines, line)
			if got := statuses(c.t, lines[len(lines)-1:]); until != "" && strings.HasSuffix(got[0], until) {
				break
			}
		}
	}
	return statuses(c.t, lines)
}

// TestTaskStatus: a client that names its tasks in subscriptions/listen is notified of each state of them, until they have ended, and
// of nothing of others.
func TestTaskStatus(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	ann, ben := lab.open()
	good, held := ann.begin("good"), ann.begin("held")
	list := func(ids ...string) string { return `{"taskIds":` + string(must(json.Marshal(ids))) + `}` }
	want := fmt.Sprint([]string{"notifications/subscriptions/acknowledged[" + good + "] false", good + " working", good + " working", good + " completed", "result"})
	if got := fmt.Sprint(ann.listen(list(good, "unknown"), "")); got != want {
		t.Errorf("told %s, not %s", got, want)
	}
	if got := fmt.Sprint(ben.listen(list(good, held), "")); got != "[notifications/subscriptions/acknowledged[] false result]" {
		t.Errorf("another principal is told %s", got)
	}
	if got := ann.listen(`{"toolsListChanged":true,"taskIds":["`+good+`"]}`, "completed"); len(got) != 2 || got[0] != "notifications/subscriptions/acknowledged["+good+"] true" {
		t.Errorf("with the list of tools: %q", got)
	}
	time.AfterFunc(time.Second, lab.server.Release)
	if got := ann.listen(list(held), ""); len(got) != 4 || got[1] != held+" working" || got[2] != held+" completed" {
		t.Errorf("a task that ends later: %q", got)
	}
	ann.can = `{}`
	if got := ann.listen(list(good), ""); len(got) != 1 || !strings.Contains(got[0], "-32021") {
		t.Errorf("without the extension: %q", got)
	}
}

// TestTaskStatusOnOneConnection: as on stdio, where the notifications name their subscription.
func TestTaskStatusOnOneConnection(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	lab.open()
	near, far := mcp.NewInMemoryTransports()
	session, err := lab.direct.Connect(t.Context(), far)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := near.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = session.Wait()
	})
	next := func() string {
		msg, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(must(jsonrpc.EncodeMessage(msg)))
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + taskClient + `}`
	send := func(id float64, method, params string) {
		number, _ := jsonrpc.MakeID(id)
		if err := conn.Write(t.Context(), &jsonrpc.Request{ID: number, Method: method, Params: json.RawMessage(`{` + params + `,` + meta + `}`)}); err != nil {
			t.Fatal(err)
		}
	}
	send(1, "tools/call", `"name":"lab__work","arguments":{"as":"good"}`)
	var called struct{ Result struct{ TaskID string } }
	if err := json.Unmarshal([]byte(next()), &called); err != nil || called.Result.TaskID == "" {
		t.Fatal(called, err)
	}
	send(7, "subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, called.Result.TaskID))
	var lines []string
	for len(lines) < 5 {
		lines = append(lines, next())
	}
	if got := statuses(t, lines); len(got) != 5 || got[3] != called.Result.TaskID+" completed" || got[4] != "result" {
		t.Errorf("told %q", got)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
