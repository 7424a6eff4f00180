package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

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
