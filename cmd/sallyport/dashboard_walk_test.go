package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil/browser"
)

// TestDashboardWalked: a person logs in and walks through every page of a gateway that serves, with upstreams of npm: what
// runs is seen while it runs, what waits is answered, and none of it breaks a rule of accessibility or of its own policy.
func TestDashboardWalked(t *testing.T) {
	s := newSite(t, ", operators: [test]}\npolicy:\n  default: allow\n  rules: [{name: a person looks, tools: [everything.echo], then: ask}]\nprivacy: {mode: \"off\"")
	p := browser.Open(t).Page(t)
	home := strings.TrimSuffix(s.url, "/mcp")
	walk := &walker{t: t, p: p, home: home}

	if p.Go(home+"/login") != http.StatusOK {
		t.Fatal("no login")
	}
	p.Fill("#token", "a-token-for-a-test")
	if status := p.Follow("main button.primary"); status != http.StatusOK || !strings.Contains(p.Text("header"), "operator") {
		t.Fatalf("%d %s", status, p.Text("header"))
	}
	walk.checkPage("overview", "upstreams available")

	inside := s.post(t, "from servers.gate import enter\nprint('before the gate', flush=True)\nprint(enter(), flush=True)\nfrom servers.everything import echo\necho(message='<b>hello</b>')")
	<-s.gate.inside
	walk.follow("Executions")
	p.WaitText("main", "running")
	p.Follow("main a[href^='/ui/executions/e-']")
	p.WaitText("main", "before the gate")
	walk.checkPage("execution that runs", "gate.enter")
	close(s.gate.open)
	p.WaitText("main", "it is open") // as it is printed, without a reload

	walk.follow("Approvals")
	p.WaitText("main", "a person looks")
	walk.checkPage("approvals", "<b>hello</b>", "everything.echo")
	p.Follow("main .ask button[value=once]")
	if got := <-inside; !strings.Contains(got, `"status":"ok"`) || !strings.Contains(got, "hello") {
		t.Errorf("what was allowed came to %s", got)
	}
	walk.checkPage("approvals that were answered", "used once", "token:test")

	for _, page := range []struct{ label, says string }{
		{"Upstreams", "gate"}, {"Catalogue", "everything"}, {"Quarantine", ""}, {"Executions", "ok"}, {"Workflows", ""}, {"Runs", ""},
		{"Skills", ""}, {"Savings", "tokens"}, {"Audit", "everything.echo"},
	} {
		walk.follow(page.label)
		walk.checkPage(page.label, page.says)
	}
	walk.follow("Overview")
	walk.checkPage("overview over time", "Most called tools", "everything.echo", "Failures by kind")
	p.Follow("main a[href='/?range=7d']")
	walk.checkPage("overview over 7 days", "gate.enter")
	walk.follow("Executions")
	p.Follow("main a[href^='/ui/executions/e-']")
	walk.checkPage("an execution that is over", "gate.enter", "everything.echo", "before the gate")
	walk.follow("Catalogue")
	p.Fill("main input[name=q]", "echo a message")
	p.Follow("main form button.primary")
	p.WaitText("main", "everything.echo")
	walk.checkPage("what a search finds", "everything.echo", "tokens")
	walk.checkSearch(s)
	walk.tryTools()
	walk.playground()
	walk.policyRead()

	p.Follow("header form button") // log out
	walk.logInLocally(s)
	walk.upstreamEdit(s)
	walk.policyEdit(s)
	p.Follow("header form button")
	p.Go(home + "/ui/audit")
	if text := p.Text("body"); strings.Contains(text, "token:test") {
		t.Errorf("who has logged out sees the record: %.300s", text)
	}
	p.Complaints() // of the status
	s.terminate(t)
	s.waitStopped(t)
}

// checkSearch compares what the page shows as the answer of search_tools with that answer.
func (w *walker) checkSearch(s *site) {
	w.t.Helper()
	session := dialHTTP(w.t, s.url, "2025-11-25")
	defer session.Close()
	for _, args := range []map[string]any{{"query": "echo a message, add two numbers"}, {"query": "sum", "upstream": "everything", "detail": "full", "language": "typescript", "limit": 2}, {}} {
		want, err := callHTTP(w.t.Context(), session, &mcp.CallToolParams{Name: "search_tools", Arguments: args})
		if err != nil {
			w.t.Fatal(err)
		}
		form := url.Values{}
		for name, value := range args {
			form.Set(strings.Replace(name, "query", "q", 1), fmt.Sprint(value))
		}
		w.p.Go(w.home + "/ui/catalogue?" + form.Encode())
		if got := browser.Eval[string](w.p, `document.querySelector("pre[aria-label='The answer of search_tools']").textContent`); got != want {
			w.t.Errorf("a search for %v shows\n%s\nbut a model reads\n%s", args, got, want)
		}
	}
}

// tryTools calls tools from their pages, with and without an approval.
func (w *walker) tryTools() {
	w.t.Helper()
	p := w.p
	p.Go(w.home + "/ui/catalogue/everything/get_sum")
	p.Fill("#try [name='in.a']", "40")
	p.Fill("#try [name='in.b']", "2")
	p.Follow("#try button.primary")
	p.WaitText("#try", "is 42")
	w.checkPage("a call that was made", "is 42")
	p.NoScript(true)
	p.Go(w.home + "/ui/catalogue/everything/echo")
	p.Fill("#try [name='in.message']", "<i>once</i>")
	p.Follow("#try button.primary")
	p.NoScript(false)
	p.Go(w.home + "/ui/approvals")
	w.checkPage("a call from a page that waits", "<i>once</i>")
	p.Follow("main .ask button[value=once]")
	p.Go(w.home + "/ui/catalogue/everything/echo")
	p.Fill("#try [name='in.message']", "<i>once</i>")
	p.Follow("#try button.primary")
	p.WaitText("#try", "Echo: <i>once</i>")
	p.Fill("#try [name='in.message']", "<i>twice</i>")
	p.Follow("#try button.primary")
	w.checkPage("a call that is held", "needs approval first")
	if typed := browser.Eval[string](p, `document.querySelector("#try textarea").value`); typed != "<i>twice</i>" {
		w.t.Errorf("what was typed is %q now", typed)
	}
	p.Go(w.home + "/ui/approvals")
	p.Fill("main .ask input[name=reason]", "not <i>twice</i>")
	p.Press("Enter")
	p.WaitText("main", "Denied: everything.echo.")
	w.checkPage("a call that Enter has denied", "not <i>twice</i>")
}

// playground runs programs from the page: without scripts and with them, one that is wrong and one that takes its time.
func (w *walker) playground() {
	w.t.Helper()
	p := w.p
	p.NoScript(true)
	p.Go(w.home + "/ui/playground")
	p.Fill("#program", "from servers.everything import get_sum\nprint(get_sum(a=40, b=2), '<b>')")
	p.Follow("main button.primary")
	p.NoScript(false)
	p.Go(p.URL())
	p.WaitText("#run", "The sum of 40 and 2 is 42. <b>")
	w.checkPage("playground", "everything.get_sum", "Save as a skill")
	w.saveAs("skill", "Adds 40 and 2.", "Sum of two!", "sum-of-two", "What it does")
	w.checkPage("skill from the playground", "Saved as a skill.", "Adds 40 and 2.", "get_sum")

	w.follow("Playground")
	w.write("from servers.everything import get_sum\nget_sum(a=40, c=2)")
	p.Follow("main button.primary")
	p.WaitText("#run", "failed")
	w.checkPage("playground with a fault", "line 2", "did you mean b?")

	p.Go(w.home + "/ui/playground")
	w.write("import time\nfor i in range(600): time.sleep(0.1); print('step', i, flush=True)")
	p.Follow("main button.primary")
	p.WaitText("#run", "step 3")
	w.checkPage("playground while a program runs", "Cancel")
	p.Follow("#run button.danger")
	p.WaitText("#run", "canceled")
}

// walker looks at pages as people with different eyes and devices do.
type walker struct {
	t    *testing.T
	p    *browser.Page
	home string
}

// follow goes to a page by the navigation.
func (w *walker) follow(label string) {
	w.t.Helper()
	path := browser.Eval[string](w.p, `[...document.querySelectorAll("nav a")].find(a => a.textContent.trim().startsWith(`+quoteJSON(label)+`))?.getAttribute("href") ?? ""`)
	if path == "" {
		w.t.Fatalf("the navigation has no %s: %s", label, w.p.Text("nav"))
	}
	if status := w.p.Follow(`nav a[href="` + path + `"]`); status != http.StatusOK {
		w.t.Fatalf("%s: %d", label, status)
	}
}

// checkPage sees to it that a page says what it should, on a desk and on a phone, by day and by night.
func (w *walker) checkPage(what string, says ...string) {
	w.t.Helper()
	w.p.Wait("main h1")
	text := w.p.Text("main")
	for _, want := range says {
		if !strings.Contains(text, want) {
			w.t.Errorf("%s: no %q in %.1500s", what, want, text)
		}
	}
	for _, look := range []struct {
		scheme        string
		width, height int64
	}{{"dark", 360, 720}, {"light", 1280, 800}} {
		w.p.Size(look.width, look.height)
		w.p.Scheme(look.scheme)
		for _, v := range w.p.Violations() {
			w.t.Errorf("%s, %s: %s", what, look.scheme, v)
		}
		if over := w.p.Overflows(); over > 0 {
			w.t.Errorf("%s is %d pixels wider than %d", what, over, look.width)
		}
		w.shoot(what + " " + look.scheme)
	}
}

// shoot leaves a picture for who wants to see: SALLYPORT_TEST_PICTURES is a folder.
func (w *walker) shoot(name string) {
	w.t.Helper()
	if dir := os.Getenv("SALLYPORT_TEST_PICTURES"); dir != "" {
		w.p.Screenshot(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"))
	}
}

// post has the API run a program, and sends its answer when it comes.
func (s *site) post(t *testing.T, code string) <-chan string {
	t.Helper()
	answer := make(chan string, 1)
	body, err := json.Marshal(map[string]any{"code": code, "timeout": 60})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(s.url, "/mcp")+"/execute", strings.NewReader(string(body)))
		if err != nil {
			answer <- err.Error()
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer a-token-for-a-test")
		answer <- responseText(http.DefaultClient.Do(r))
	}()
	return answer
}

// responseText is an answer's body.
func responseText(resp *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		return err.Error()
	}
	return text.String()
}

func quoteJSON(text string) string {
	data, err := json.Marshal(text)
	if err != nil { // a text
		return `""`
	}
	return string(data)
}
