package main_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/browser"
)

// TestTeam: two people and an operator share two gateways on one store, with MCP clients of npm and with browsers. Alice logs in at
// an upstream in the middle of a program, has a payment approved, resumes what failed at the other gateway, loses her login, her
// budget and her role; bob works on. At each step bob tries to use what is alice's, and learns nothing.
func TestTeam(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newTeamSite(t)
	c := &teamCase{teamSite: s, t: t, alice: s.member(t, "alice", teamGroups["alice"]...), bob: s.member(t, "bob", teamGroups["bob"]...)}
	c.sdk, c.langchain = c.alice.connects(t, "sdk", s.one), c.bob.connects(t, "langchain", s.one)
	c.alicePage, c.bobPage = s.browses(t, "alice", s.one.url+"/ui/connections/tickets"), s.browses(t, "bob", s.one.url+"/ui/connections/tickets")
	c.olgaPage = s.browses(t, "olga", s.two.url+"/ui/approvals")

	c.logins()
	c.payment()
	c.resumed()
	c.sessions()
	c.skills()
	c.operatorSees()
	c.logout()
	c.budget()
	c.roleLost()
	for _, p := range s.pages {
		p.Go("about:blank") // a page follows its gateway
	}
	s.one.stop(t)
	s.two.stop(t)
}

// teamCase is the state of the scenario.
type teamCase struct {
	*teamSite
	t                            *testing.T
	alice, bob                   member
	sdk, langchain               *npmClient // of alice and of bob
	alicePage, bobPage, olgaPage *browser.Page
}

// want checks the answer of a program.
func (c *teamCase) want(what, got string, texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			c.t.Errorf("%s: %q is not in %s", what, text, got)
		}
	}
}

// consents begins a login at the page of a connection, and returns where the authorization server sends the browser to.
func (c *teamCase) consents(p *browser.Page, user string) (callback string) {
	c.t.Helper()
	p.Follow("main button[value=connect]")
	page := browser.Eval[string](p, `document.querySelector("main a.button.primary").href`)
	consent := authserver.Browser{User: user, Stop: true}
	if err := consent.Open(context.Background(), page); err != nil {
		c.t.Fatal(err)
	}
	return consent.Back
}

const whoami = "from servers.tickets import whoami\nwhoami()"

// logins has bob log in at the dashboard while his first program waits, and alice in the middle of a program, which goes on and makes each call once.
func (c *teamCase) logins() {
	t := c.t
	first := c.langchain.begin("execute_code", map[string]any{"code": whoami}) // nobody has seen the tools yet
	c.bobPage.Go(c.consents(c.bobPage, "bob"))
	c.bobPage.WaitText("body", "Connected to tickets")
	c.want("bob's first program", c.langchain.wait(first), "bob")
	before := c.langchain.searches("who am i in tickets")

	answer := c.sdk.begin("execute_code", map[string]any{"code": "from servers.tickets import note, whoami\nfirst = note()\nopen('/workspace/secret.txt', 'w').write('of alice')\n[first, whoami(), note()]"})
	var page string
	select {
	case page = <-c.sdk.opened:
	case got := <-answer:
		t.Fatalf("alice's client opens no page: %s", got)
	}
	c.alicePage.Go(page)
	callback := c.consents(c.alicePage, "alice")
	c.callbackOf(callback)
	c.alicePage.Go(callback)
	c.alicePage.WaitText("body", "Connected to tickets")
	c.want("alice's program", c.sdk.wait(answer), `["1","alice","2"]`)
	c.want("bob", c.langchain.runs(whoami), "bob")
	if n := c.tickets.Notes.Load(); n != 2 {
		t.Errorf("note was called %d times, want 2", n)
	}
	if after := c.langchain.searches("who am i in tickets"); after != before || strings.Contains(after, "alice") {
		t.Errorf("a search of bob found\n%s\nand finds, after the calls of alice,\n%s", before, after)
	}
}

// payment has a call of alice at one gateway approved by the operator at the other. The pager is told.
func (c *teamCase) payment() {
	answer := c.sdk.begin("execute_code", map[string]any{"code": "from servers.toy import pay\npay(text='wages of alice')"})
	alert := c.pager.gets(c.t, "approval.pending", `"tool":"toy.pay"`, "wages of alice", `"principal":"oauth:alice"`)
	c.approvalOf(alert)
	c.olgaPage.Go(c.two.url + "/ui/approvals")
	c.olgaPage.WaitText("main", "wages of alice")
	c.olgaPage.Follow("main .ask button[value=once]")
	c.want("alice's payment", c.sdk.wait(answer), "toy got wages of alice")
}

// executionIDs are the executions that a person sees at a gateway, the newest first.
func (c *teamCase) executionIDs(p member, g *teamGateway) (ids []string) {
	c.t.Helper()
	var list struct {
		Executions []struct{ ID, Principal string }
	}
	p.get(c.t, g, "/executions?limit=100", &list)
	for _, e := range list.Executions {
		if e.Principal != "oauth:"+p.name {
			c.t.Errorf("%s sees an execution of %s", p.name, e.Principal)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// resumed has alice resume a failed program at the other gateway: the call that it made is not repeated.
func (c *teamCase) resumed() {
	t := c.t
	c.want("alice's failure", c.sdk.runs("from servers.tickets import note\nraise ValueError(note())"), "ValueError: 3")
	var id string
	await(t, "both gateways show alice's executions", func() bool {
		one, two := c.executionIDs(c.alice, c.one), c.executionIDs(c.alice, c.two)
		if len(one) > 0 {
			id = one[0]
		}
		return len(one) == 3 && strings.Join(one, " ") == strings.Join(two, " ")
	})
	c.executionOf(id)
	again := `{"code": "from servers.tickets import note\nnote() + ' again'", "resume": "` + id + `"}`
	_, text := c.alice.ask(t, c.two, http.MethodPost, "/api/execute", `{"code": "from servers.tickets import note\nnote()"}`)
	c.want("alice at a gateway where nobody has logged in", text, "logs in at the page /ui/connections/tickets")
	page := c.browses(t, "alice", c.two.url+"/ui/connections/tickets")
	page.Go(c.consents(page, "alice"))
	page.WaitText("body", "Connected to tickets")
	status, text := c.alice.ask(t, c.two, http.MethodPost, "/api/execute", again)
	if status != http.StatusOK || !strings.Contains(text, "3 again") {
		t.Errorf("resumed at the other gateway: %d %s", status, text)
	}
	if n := c.tickets.Notes.Load(); n != 3 {
		t.Errorf("note was called %d times, want 3", n)
	}
}

// operatorSees has the operator see the programs of both people at the other gateway.
func (c *teamCase) operatorSees() {
	c.olgaPage.Go(c.two.url + "/ui/executions")
	c.want("the operator's page", c.olgaPage.Text("main"), "oauth:alice", "oauth:bob")
	c.olgaPage.Go(c.two.url + "/ui/users")
	c.want("the page of users", c.olgaPage.Text("main"), "oauth:alice", "oauth:bob", "tickets connected")
	if status, text := c.bob.ask(c.t, c.two, http.MethodGet, "/ui/users", ""); status != http.StatusForbidden || strings.Contains(text, "alice") {
		c.t.Errorf("bob gets the page of users: %d %s", status, text)
	}
}

// logout has an operator end alice's login at the upstream. Her calls wait for another one; bob has his.
func (c *teamCase) logout() {
	t := c.t
	if out, err := c.one.command("auth", "logout", "tickets", "--principal", "oauth:alice").CombinedOutput(); err != nil {
		t.Fatalf("logout: %v\n%s", err, out)
	}
	before := c.tickets.Notes.Load()
	answer := c.sdk.begin("execute_code", map[string]any{"code": "from servers.tickets import note\nnote()"})
	select {
	case <-c.sdk.opened:
	case got := <-answer:
		t.Errorf("alice without a login: %s", got)
	}
	c.want("bob", c.langchain.runs(whoami), "bob")
	if n := c.tickets.Notes.Load(); n != before {
		t.Errorf("note was called %d times without a login", n-before)
	}
	c.alicePage.Go(c.one.url + "/ui/connections/tickets")
	c.alicePage.Go(c.consents(c.alicePage, "alice"))
	c.alicePage.WaitText("body", "Connected to tickets")
	c.want("alice with another login", c.sdk.wait(answer), fmt.Sprint(before+1))
}

// budget has alice use her calls of the day, at both gateways; bob has none of her limit.
func (c *teamCase) budget() {
	const say = "from servers.toy import say\nfor i in range(20): print(say(text=str(i)))"
	got := c.sdk.runs(say)
	c.want("alice's last calls", got, "toy got 0", `budget "small" is used up: 12 of 12 calls today`)
	if n := strings.Count(got, "toy got "); n != 12-c.callsOfAlice() {
		c.t.Errorf("alice made %d more calls of 12, after %d", n, c.callsOfAlice())
	}
	if status, text := c.alice.ask(c.t, c.two, http.MethodPost, "/api/tools/call/toy/say", `{"arguments": {"text": "x"}}`); status != http.StatusTooManyRequests || !strings.Contains(text, "is used up") {
		c.t.Errorf("alice at the other gateway: %d %s", status, text)
	}
	c.want("bob's calls", c.langchain.runs(say), "toy got 19")
	if status, text := c.bob.ask(c.t, c.two, http.MethodPost, "/api/tools/call/toy/say", `{"arguments": {"text": "x"}}`); status != http.StatusOK {
		c.t.Errorf("bob at the other gateway: %d %s", status, text)
	}
	c.pager.gets(c.t, "budget.used_up", "oauth:alice", "small")
	if _, text := c.bob.ask(c.t, c.one, http.MethodGet, "/api/budgets", ""); strings.Contains(text, "alice") {
		c.t.Errorf("bob reads of alice's budget: %s", text)
	}
}

// callsOfAlice is how many calls alice has made before the budget is tested: two notes, whoami, two payments, a note that failed, and
// one after the logout.
func (c *teamCase) callsOfAlice() int { return 7 }

// roleLost has alice lose her groups at the provider: neither gateway lets her in, and bob works on.
func (c *teamCase) roleLost() {
	alone := c.member(c.t, "alice", "nobody")
	for name, g := range map[string]*teamGateway{"one": c.one, "two": c.two} {
		for _, path := range []string{"/mcp", "/api/executions"} {
			if status, text := alone.ask(c.t, g, http.MethodGet, path, ""); status != http.StatusForbidden || strings.Contains(text, "finance") {
				c.t.Errorf("alice without a role at %s%s: %d %s", name, path, status, text)
			}
		}
	}
	c.want("bob", c.langchain.runs(whoami), "bob")
}
