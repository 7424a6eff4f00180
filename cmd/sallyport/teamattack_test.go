package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/webhook"
)

// request is a request of an attacker, with NAME in place of what it names.
type request struct{ method, path, body string }

// sameAnswers makes bob's requests about a thing of alice's and about one that does not exist: he must not be able to tell which is
// which. The answers hold none of the secrets of alice.
func (c *teamCase) sameAnswers(name, nothing string, requests ...request) {
	c.t.Helper()
	for _, g := range []*teamGateway{c.one, c.two} {
		for _, r := range requests {
			answer := func(name string) string {
				status, text := c.bob.ask(c.t, g, r.method, strings.ReplaceAll(r.path, "NAME", name), strings.ReplaceAll(r.body, "NAME", name))
				return strings.ReplaceAll(fmt.Sprint(status, " ", text), name, "NAME")
			}
			if got, want := answer(name), answer(nothing); got != want || strings.Contains(got, "alice") {
				c.t.Errorf("%s %s of alice's %s answers bob\n%s\nand for %s\n%s", r.method, r.path, name, got, nothing, want)
			}
		}
	}
}

// other returns a name of the same form that nothing has.
func other(id string) string {
	kind, rest, _ := strings.Cut(id, "-")
	if rest[0] == rest[len(rest)-1] {
		return kind + "-" + rest[1:] + "z"
	}
	return kind + "-" + rest[len(rest)-1:] + rest[1:len(rest)-1] + rest[:1]
}

// callbackOf has bob use the address that the authorization server sent alice's browser to, and alice that of a login of bob.
func (c *teamCase) callbackOf(callback string) {
	c.t.Helper()
	shown := func(state string) string {
		finish := strings.NewReplacer("/ui/callback", "/ui/finish-login", "state=", "state="+state).Replace(callback)
		status := c.bobPage.Go(finish)
		got := testutil.Request(c.t, http.MethodGet, finish, "", "Authorization: Bearer "+c.bob.token)
		return fmt.Sprint(status, c.bobPage.Text("main"), got.Status, strings.Contains(string(got.Body), "Connected"))
	}
	if got, want := shown(""), shown("x"); got != want || !strings.HasPrefix(got, "400") || !strings.HasSuffix(got, "400 false") {
		c.t.Errorf("alice's callback shows bob\n%s\nand an unknown one\n%s", got, want)
	}
	c.bobPage.Go(c.one.url + "/ui/connections/tickets")
	c.alicePage.Go(strings.Replace(c.consents(c.bobPage, "bob"), "/ui/callback", "/ui/finish-login", 1))
	if text := c.alicePage.Text("main"); strings.Contains(text, "Connected") {
		c.t.Errorf("alice finishes a login of bob: %s", text)
	}
	c.bobPage.Complaints() // of the status
	c.alicePage.Complaints()
	c.want("bob after alice's callback", c.langchain.runs(whoami), "bob")
}

// approvalOf has bob answer the approval of an alert.
func (c *teamCase) approvalOf(alert string) {
	t := c.t
	t.Helper()
	var sent struct {
		Data struct {
			Events []struct{ Approval, Execution string }
		}
	}
	if err := json.Unmarshal([]byte(alert), &sent); err != nil || len(sent.Data.Events) != 1 {
		t.Fatalf("%v: %s", err, alert)
	}
	id, execution := sent.Data.Events[0].Approval, sent.Data.Events[0].Execution
	c.sameAnswers(id, other(id), request{"GET", "/api/approvals/NAME", ""}, request{"POST", "/api/approvals/NAME", `{"decision":"allow"}`}, request{"POST", "/api/approvals/NAME/reply", `{"approval":"NAME","decision":"allow"}`})
	c.sameAnswers(execution, other(execution), executionRequests...)
	c.bobPage.Go(c.one.url + "/ui/approvals")
	if text := c.bobPage.Text("main"); strings.Contains(text, "wages") {
		t.Errorf("bob sees alice's approval: %s", text)
	}
	body := fmt.Sprintf(`{"approval":%q,"decision":"allow"}`, id)
	signed := http.Header{}
	webhook.Sign(signed, "a-guess-of-the-secret-by-bob", "reply-1", time.Now(), []byte(body))
	var forged []string
	for name := range signed {
		forged = append(forged, name+": "+signed.Get(name))
	}
	if got := testutil.Request(t, http.MethodPost, c.one.url+"/api/approvals/"+id+"/reply", body, forged...); got.Status != http.StatusUnauthorized {
		t.Errorf("an answer with a forged signature: %d %s", got.Status, got.Body)
	}
	c.want("bob resumes alice's program that waits", c.langchain.runs("1", "resume", execution), "error")
}

// executionRequests are what can be asked of an execution.
var executionRequests = []request{
	{"GET", "/api/executions/NAME", ""}, {"GET", "/api/executions/NAME/calls", ""}, {"GET", "/api/executions/NAME/output", ""}, {"POST", "/api/executions/NAME/cancel", "{}"}, {"POST", "/ui/executions/NAME/cancel", ""},
	{"POST", "/api/execute", `{"code":"1","resume":"NAME"}`}, {"GET", "/ui/executions/NAME", ""},
	{"GET", "/api/executions?text=NAME", ""}, {"GET", "/api/executions?principal=oauth:alice", ""}, {"GET", "/api/executions/live", ""},
}

// anyID matches the ids of executions.
var anyID = regexp.MustCompile(`\be-[0-9a-z]+`)

// executionOf has bob use the id of alice's failed execution.
func (c *teamCase) executionOf(id string) {
	c.t.Helper()
	c.sameAnswers(id, other(id), executionRequests...)
	made := func(id string) string {
		return anyID.ReplaceAllString(strings.ReplaceAll(c.langchain.runs("1", "resume", id)+c.langchain.runs("from sallyport import save_skill\nsave_skill('stolen', from_execution='"+id+"', description='d')"), id, "NAME"), "ID")
	}
	if got, want := made(id), made(other(id)); got != want {
		c.t.Errorf("bob resumes alice's execution: %s\nand one that is not there: %s", got, want)
	}
	if got := c.langchain.runs("import os\nsorted(os.listdir('/workspace'))"); strings.Contains(got, "secret.txt") {
		c.t.Errorf("bob's workspace has a file of alice: %s", got)
	}
}

// sessions has bob use the names and ids of alice's sessions.
func (c *teamCase) sessions() {
	c.want("alice's session", c.sdk.runs("number = 4711\nnumber", "session", "books"), "4711")
	c.want("bob's session of that name", c.langchain.runs("number", "session", "books"), "NameError")
	c.want("alice's session later", c.sdk.runs("number + 1", "session", "books"), "4712")
	if c.sdk.session == "" {
		c.t.Fatal("alice's client has no session")
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		enter := func(session string) string {
			got := testutil.Request(c.t, method, c.one.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization: Bearer "+c.bob.token,
				"Accept: application/json, text/event-stream", "Mcp-Session-Id: "+session, "Mcp-Protocol-Version: 2025-11-25")
			return strings.ReplaceAll(fmt.Sprint(got.Status, " ", string(got.Body)), session, "NAME")
		}
		if got, want := enter(c.sdk.session), enter(strings.Repeat("Z", len(c.sdk.session))); got != want || strings.HasPrefix(got, "200") {
			c.t.Errorf("%s: alice's MCP session answers bob\n%s\nand one that is not there\n%s", method, got, want)
		}
	}
	c.want("alice's client", c.sdk.runs("number", "session", "books"), "4711")
	c.requestState()
}

// requestState has bob answer the question that a call of alice without a session returned, a payment.
func (c *teamCase) requestState() {
	call := func(p member, more string) string {
		const params = `"name":"execute_code","arguments":{"code":"from servers.toy import pay\npay(text='rent')"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
		got := testutil.Request(c.t, http.MethodPost, c.one.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+more+`}}`, "Authorization: Bearer "+p.token,
			"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: execute_code")
		return string(got.Body)
	}
	state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(call(c.alice, ""))
	if state == nil {
		c.t.Fatal("alice is not asked")
	}
	answer := `,"requestState":"` + state[1] + `","inputResponses":{"q1":{"action":"accept","content":{"decision":"once"}}}`
	if got := call(c.bob, answer); !strings.Contains(got, "invalid requestState") || strings.Contains(got, "rent") {
		c.t.Errorf("bob answers for alice: %s", got)
	}
	c.want("alice's rent", call(c.alice, answer), "toy got rent")
}

// skills has alice share a skill with her group, which bob is not in.
func (c *teamCase) skills() {
	const use = "from skills.payroll import payroll\npayroll()"
	c.want("alice's skill", c.sdk.runs("from sallyport import save_skill\nsave_skill('payroll', 'def payroll(): return \"ultramarine wages\"', 'Pays wages.', scope='shared', groups=['finance'])"), "shared with the groups finance")
	c.want("alice", c.sdk.runs(use), "ultramarine wages")
	c.want("bob", c.langchain.runs(use), "there is no skill payroll")
	c.sameAnswers("payroll", "pyjamas", request{"GET", "/api/skills/NAME", ""}, request{"GET", "/api/skills", ""}, request{"GET", "/ui/skills/NAME", ""})
	if got := c.langchain.searches("payroll pays ultramarine wages"); strings.Contains(got, "payroll") {
		c.t.Errorf("bob finds %s", got)
	}
}
