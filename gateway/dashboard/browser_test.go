package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/dashboard"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/internal/access"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
	"sallyport/internal/tool"
)

// startServer serves a house to an operator.
func startServer(t *testing.T, h dashboard.Service) string {
	t.Helper()
	var tasks dashboard.Tasks = duties{}
	if good, ok := h.(dashboard.Tasks); ok {
		tasks = good
	}
	var members dashboard.Cluster
	if _, hostile := h.(house); hostile {
		members = site{}
	}
	d := dashboard.New(h, &dashboard.Options{Version: "1.2.3", Endpoint: dashboard.Endpoint{URL: "https://tools.example.com/mcp", Token: true}, Workflows: flows{}, Tasks: tasks, Connections: logins{}, Completions: aid{}, Drafts: aid{}, Author: author{}, Cluster: members, Environments: environments, Policy: rules, Editor: editor{}, Adder: adder{}, Rehearse: rehearse, Disabled: disabled, Isolation: isolated, Logger: testutil.Logger(t)})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.ServeHTTP(w, r.WithContext(access.Caller{Principal: "token:somebody", Operator: "op", Scopes: tool.Scopes(), Local: true}.NewContext(r.Context())))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// missing are pages of what is not there.
var missing = []string{"/ui/nothing", "/ui/executions/e-2", "/ui/workflows/digets", "/ui/playground?execution=e-live", "/ui/add-upstream?server=nothing"}

// dense are the pages that have everything the style has: they are judged in the dark, too.
var dense = []string{"/", "/ui/quarantine", "/ui/tasks/t-evil", "/ui/add-upstream?server=io.github.evil%2Fserver"}

// TestInBrowser opens every page, hostile as its texts are: none does anything, breaks a rule of accessibility or of its
// policy, or is wider than a phone.
func TestInBrowser(t *testing.T) {
	at, p := startServer(t, house{}), browser.Open(t).Page(t)
	all := allPages()
	for path := range all {
		plain, _, asked := strings.Cut(path, "?")
		if _, twice := all[plain]; asked && twice && !strings.Contains(path, "execution=") && !strings.Contains(path, "server=") || slices.Contains(missing, path) {
			continue // one that is here already, or whose status is what a browser complains of
		}
		p.Size(360, 720)
		p.Scheme("light")
		p.Go(at + path)
		p.Wait("main h1")
		if over := p.Overflows(); over > 0 {
			t.Errorf("%s is %d pixels wider than a phone", path, over)
		}
		judge(t, p, path)
		if slices.Contains(dense, path) {
			p.Scheme("dark")
			judge(t, p, path+" in the dark")
		}
	}
}

func judge(t *testing.T, p *browser.Page, path string) {
	t.Helper()
	for _, v := range p.Violations() {
		t.Errorf("%s: %s", path, v)
	}
}

// TestAnswerInBrowser answers once without script, and once with Enter in the reason, which denies and never allows.
func TestAnswerInBrowser(t *testing.T) {
	var told []string
	p := browser.Open(t).Page(t)
	at := startServer(t, house{told: &told})
	p.NoScript(true)
	p.Go(at + "/ui/approvals")
	p.Follow(`#a-1 button[value="session"]`)
	p.NoScript(false)
	p.Go(at + "/ui/approvals")
	p.Fill(`#a-1 input[name="reason"]`, "not today")
	p.Press("Enter")
	p.WaitText(`.notice[role="status"]`, "Denied: crm.delete.")
	if want := "a-1 allow=true session by op: |a-1 allow=false  by op: not today"; strings.Join(told, "|") != want {
		t.Errorf("told %q", told)
	}
}

// TestRejectInBrowser rejects a definition, once without script and once with Enter in the reason, which never approves it.
func TestRejectInBrowser(t *testing.T) {
	var told []string
	p := browser.Open(t).Page(t)
	at := startServer(t, house{told: &told})
	reason := `section[aria-labelledby="h-` + strings.Repeat("cd", 6) + `"] input[name="reason"]`
	p.NoScript(true)
	p.Go(at + "/ui/quarantine")
	p.Fill(reason, "<b>asks</b> for keys")
	p.Follow(`section[aria-labelledby="h-` + strings.Repeat("cd", 6) + `"] button[value="reject"]`)
	p.NoScript(false)
	p.Go(at + "/ui/quarantine")
	p.Fill(reason, "again")
	p.Press("Enter")
	p.WaitText(`.notice[role="status"]`, "Rejected: programs cannot call this definition of crm.add.")
	if want := "reject crm.add: <b>asks</b> for keys|reject crm.add: again"; strings.Join(told, "|") != want {
		t.Errorf("told %q", told)
	}
}

// LiveOf returns a program that runs, for its picture.
func (fair) LiveOf(_ context.Context, id string) (executor.Live, bool) {
	begun := time.Now().Add(-3 * time.Second)
	call := func(upstream, name string, from, took time.Duration, outcome string) executor.LiveCall {
		return executor.LiveCall{Tool: tool.ID{Upstream: upstream, Name: name}, Begun: begun.Add(from * time.Millisecond), Duration: took * time.Millisecond, Outcome: outcome}
	}
	return executor.Live{
		ID: id, Principal: "token:ada", Language: "python", State: "running", Started: begun, Made: 4, Bytes: 31,
		Code:   "from servers.github import list_issues\nfrom servers.postgres import query\n\nissues = list_issues(\"acme\", \"billing\", state=\"open\")\nprint(len(issues), \"open issues\")\nfor issue in issues:\n    print(query(f\"select plan from customers where id = {issue['customer']}\"))\n",
		Output: []execution.Printed{{Stream: "stdout", Text: "17 open issues\n"}, {Stream: "stdout", Text: "team\n"}, {Stream: "stdout", Text: "enterprise\n"}},
		Calls: []executor.LiveCall{
			call("github", "list_issues", 140, 720, "ok"), call("postgres", "query", 890, 310, "ok"),
			call("postgres", "query", 1210, 540, "ok"), call("postgres", "query", 1760, 0, ""),
		},
	}, true
}

// TestScreenshots makes the pictures of docs/how-to/dashboard.md, in both schemes: `make pictures`.
func TestScreenshots(t *testing.T) {
	p := browser.Open(t).Page(t)
	at := startServer(t, fair{})
	for _, shot := range []struct {
		name, path    string
		width, height int64
	}{
		{"overview", "/", 1120, 790},
		{"approvals", "/ui/approvals", 400, 720},
		{"catalogue", "/ui/catalogue?q=open+issues", 1120, 560},
		{"execution", "/ui/executions/e-7hq4tmnbw2x5", 1120, 940},
		{"quarantine", "/ui/quarantine", 1120, 1090},
	} {
		for scheme, end := range map[string]string{"light": "", "dark": "-dark"} {
			p.Size(shot.width, shot.height)
			p.Scheme(scheme)
			p.Go(at + shot.path)
			p.Wait("main h1")
			p.Screenshot(filepath.Join(t.ArtifactDir(), shot.name+end+".png"))
		}
	}
}
