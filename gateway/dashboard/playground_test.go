package dashboard_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"sallyport/gateway/dashboard"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/history"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/typecheck"
	"sallyport/gateway/workspaces"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

func environments() map[string]config.Environment {
	return maps.Clone(map[string]config.Environment{"default": {}, "data": {}, evil: {}})
}

func (h house) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	*h.told = append(*h.told, fmt.Sprintf("%s of %s runs %q in %s, environment %q, workspace %q, resume %q", tool.Client(ctx), tool.Principal(ctx), p.Code, p.Language, p.Environment, p.Workspace, p.Resume))
	return execution.Result{}, &tool.Error{Kind: tool.Invalid, Message: "there is no environment " + evil, Hint: evil}
}

func (h house) SaveSkill(_ context.Context, d skills.SkillDraft) (string, error) {
	if d.Name == "bad" {
		return "", &tool.Error{Kind: tool.Invalid, Message: evil, Hint: evil}
	}
	*h.told = append(*h.told, fmt.Sprintf("save %s of %s: %s", d.Name, d.From[:2], d.Description))
	return "saved", nil
}

func (house) ListWorkspaces(context.Context) ([]workspaces.WorkspaceInfo, error) {
	return []workspaces.WorkspaceInfo{{Name: "reports"}, {Name: evil}}, nil
}

// playgroundPages are those of this file, with what must be on each for an operator.
var playgroundPages = map[string][]string{
	"/ui/playground":                  {`<textarea class="mono program"`, "<option>data</option>", `<option value="reports">`, "typescript"},
	"/ui/playground?execution=e-live": {"there is no execution e-live"}, // of another principal
	"/ui/playground?execution=e-own":  {"print(7)", "kept output", "Save as a skill", "crm.find"},
}

// lab is a house that runs programs.
type lab struct {
	house
	// open lets programs end that wait for it.
	open chan struct{}

	mu      sync.Mutex
	records map[string]history.Record
	live    map[string]executor.Live
}

func (l *lab) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := history.Record{ID: p.ID, Principal: tool.Principal(ctx), Language: p.Language, Code: p.Code, Status: "ok", Started: noon, Made: 1, Calls: []toolcall.RecordedCall{{Tool: tool.ID{Upstream: "crm", Name: "find"}, Outcome: "ok"}}}
	e := execution.Result{ID: p.ID}
	e.Status, e.Stdout.Text = "ok", evil+"\nprinted"
	switch {
	case l.open != nil:
		l.live[p.ID] = executor.Live{ID: p.ID, Principal: r.Principal, Language: "python", Code: p.Code, State: executor.LiveRunning, Started: noon, Output: []execution.Printed{{Stream: "stdout", Text: evil + " so far"}}}
		l.mu.Unlock()
		<-l.open
		l.mu.Lock()
		delete(l.live, p.ID)
	case strings.Contains(p.Code, "wrong"):
		r.Status, e.Status = "failed", "failed"
		e.Fault, e.Warnings = &bridge.Fault{Type: "TypeError", Message: evil}, []typecheck.Warning{{Line: 3, Message: "\"nme\" is no parameter"}}
	case strings.Contains(p.Code, "boss"):
		r.Status, e.Status = execution.Held, execution.Held
	}
	l.records[p.ID] = r
	return e, nil
}

func (l *lab) Record(ctx context.Context, id string) (history.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.records[id]; ok && (r.Principal == tool.Principal(ctx) || tool.Operator(ctx) != "") {
		return r, nil
	}
	return l.house.Record(ctx, id)
}

func (l *lab) LiveOf(_ context.Context, id string) (executor.Live, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live, ok := l.live[id]
	return live, ok
}

func newLab() *lab {
	return &lab{house: house{told: &[]string{}}, records: map[string]history.Record{}, live: map[string]executor.Live{}}
}

// run sends a program, and returns the address of its page.
func run(t *testing.T, d *dashboard.Dashboard, who string, form url.Values) string {
	t.Helper()
	got := send(t, d, who, "/ui/playground", form)
	next := got.Header().Get("Location")
	if got.Code != 303 || !strings.HasPrefix(next, "/ui/playground?execution=e-") {
		t.Fatalf("%d to %q: %s", got.Code, next, got.Body)
	}
	return strings.TrimSuffix(next, "#run")
}

// wantPage sees to it that a page has texts, and does nothing.
func wantPage(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("no %q in %s", text, page)
		}
	}
	checkHarmless(t, page)
}

// TestPlayground: a program runs as the user; the form keeps it, and shows what a model would read.
func TestPlayground(t *testing.T) {
	l := newLab()
	d := newDashboard(t, l, l.told)
	at := run(t, d, "ada", url.Values{"code": {"\r\n  print(1)\r\nx = '\u202e'"}, "language": {"python"}, "environment": {"data"}, "workspace": {"reports"}})
	wantPage(t, send(t, d, "ada", at, nil).Body.String(), "\n\n  print(1)\nx = &#39;&#39;</textarea>", "<option selected>data</option>", `value="reports"`, "printed", "crm.find", "Save as a skill")
	for _, who := range []string{"bob", "op"} { // an operator sees the execution, and does not run what others wrote
		if got := send(t, d, who, at, nil); got.Code != 404 || strings.Contains(got.Body.String(), "print(1)") {
			t.Errorf("%s sees the program of ada: %d %s", who, got.Code, got.Body)
		}
	}
	at = run(t, d, "ada", url.Values{"code": {"wrong"}})
	wantPage(t, send(t, d, "ada", at, nil).Body.String(), "TypeError", "types: line 3: &#34;nme&#34; is no parameter", ">failed<")
	at = run(t, d, "ada", url.Values{"code": {"boss"}})
	wantPage(t, send(t, d, "ada", at, nil).Body.String(), "It is held", `name="resume" value="e-`, `href="/ui/approvals"`)
	page := send(t, newDashboard(t, l, l.told), "ada", at, nil).Body.String() // after a restart
	wantPage(t, page, "boss</textarea>", "Its output is not kept")
}

// TestPlaygroundLive: a program that runs is seen while it runs; then the same part of the page shows its result, and is not asked for again.
func TestPlaygroundLive(t *testing.T) {
	l := newLab()
	l.open = make(chan struct{})
	d := newDashboard(t, l, l.told)
	ctx, left := context.WithCancel(tool.WithPrincipal(t.Context(), "ada"))
	left() // the page is left at once
	r := httptest.NewRequestWithContext(ctx, "POST", "/ui/playground", strings.NewReader(url.Values{"code": {"loop"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	at := strings.TrimSuffix(w.Header().Get("Location"), "#run")
	if page := send(t, d, "ada", at, nil).Body.String(); !strings.Contains(page, "Starting.") && !strings.Contains(page, "so far") {
		t.Error(page)
	}
	close(l.open)
	var part string
	for !strings.Contains(part, "Result") {
		part = send(t, d, "ada", at+"&live=playground-run&seen=0", nil).Body.String()
	}
	if !strings.HasPrefix(part, `<div id="live-playground-run">`) || strings.Contains(part, "hx-get") {
		t.Error(part)
	}
	wantPage(t, part, "printed", "Save as a skill")
}

// TestPlaygroundForms: errors are shown next to the form, and only a user with the rights runs anything.
func TestPlaygroundForms(t *testing.T) {
	code := url.Values{"code": {"print(1)"}, "language": {"typescript"}, "environment": {"none"}, "workspace": {" w "}}
	const ran = `dashboard of ada runs "print(1)" in typescript, environment "none", workspace "w", resume ""`
	for _, test := range []struct {
		who, path string
		form      url.Values
		headers   []string
		status    int
		told      string
	}{
		{"ada", "/ui/playground", code, nil, 303, ran},
		{"ada", "/ui/playground", url.Values{"resume": {"e-1"}}, nil, 303, `dashboard of ada runs "" in , environment "", workspace "", resume "e-1"`},
		{"ada", "/ui/playground", url.Values{"code": {strings.Repeat("x", 200<<10)}}, nil, 429, ""},
		{"ada", "/ui/playground", url.Values{"code": {strings.Repeat("x", 2<<20)}}, nil, 429, ""},
		{"reader", "/ui/playground", code, nil, 403, ""},
		{"ada", "/ui/playground", code, []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
		{"ada", "/ui/playground", code, []string{"Origin: https://evil.example"}, 403, ""},
		{"op", "/ui/playground/skill", url.Values{"execution": {"e-own"}, "name": {"count it"}, "description": {"Counts."}}, nil, 303, "save count it of e-: Counts."},
		{"op", "/ui/playground/skill", url.Values{"execution": {"e-own"}, "name": {"bad"}, "description": {"kept <b>"}}, nil, 400, ""},
		{"op", "/ui/playground/skill", url.Values{"execution": {"e-1"}, "name": {"a"}}, nil, 404, ""},  // of ada
		{"ada", "/ui/playground/skill", url.Values{"execution": {"e-1"}, "name": {"a"}}, nil, 400, ""}, // it failed
		{"ada", "/ui/playground/skill", url.Values{"name": {"a"}}, nil, 400, ""},
		{"reader", "/ui/playground/skill", url.Values{"execution": {"e-1"}, "name": {"a"}}, nil, 403, ""},
		{"op", "/ui/playground/skill", url.Values{"execution": {"e-own"}, "name": {"a"}}, []string{"Sec-Fetch-Site: same-site"}, 403, ""},
	} {
		told := []string{}
		d := newDashboard(t, house{told: &told}, &told)
		got := send(t, d, test.who, test.path, test.form, test.headers...)
		if got.Code != test.status || strings.Join(told, "|") != test.told {
			t.Errorf("%s %s %.200v %v: %d, told %q; want %d, %q", test.who, test.path, test.form, test.headers, got.Code, told, test.status, test.told)
		}
		checkHarmless(t, got.Body.String())
		if test.told == ran {
			page := send(t, d, "ada", strings.TrimSuffix(got.Header().Get("Location"), "#run"), nil)
			wantPage(t, page.Body.String(), "It was not run: there is no environment", "print(1)</textarea>", "<option selected>typescript</option>", `value="w"`)
		}
		if test.status == 400 && test.who == "op" {
			wantPage(t, got.Body.String(), `value="bad"`, "kept &lt;b&gt;</textarea>", `<details class="card" id="save-skill" open>`)
		}
	}
}

// TestPlaygroundHidden: who may not run programs sees nothing of the playground.
func TestPlaygroundHidden(t *testing.T) {
	for _, path := range []string{"/", "/ui/executions/e-1"} {
		ctx := access.Caller{Principal: "ada"}.WithRole(access.Viewer).NewContext(t.Context())
		w := httptest.NewRecorder()
		newDashboard(t, house{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", path, nil))
		if page := w.Body.String(); w.Code != 200 || strings.Contains(page, "/ui/playground") {
			t.Errorf("a viewer sees the playground at %s", path)
		}
		if page := ask(t, house{}, "ada", path, nil).Body.String(); !strings.Contains(page, "/ui/playground") {
			t.Errorf("a user does not see the playground at %s", path)
		}
	}
	if page := ask(t, house{}, "reader", "/", nil).Body.String(); strings.Contains(page, "/ui/playground") {
		t.Error("a reader sees the playground in the navigation")
	}
	if got := ask(t, house{}, "reader", "/ui/playground", nil); got.Code != 403 {
		t.Errorf("a reader sees the playground: %d", got.Code)
	}
}
