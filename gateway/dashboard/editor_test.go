package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/executor"
	"sallyport/gateway/history"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/typecheck"
	"sallyport/internal/testutil/browser"
	"sallyport/internal/tool"
)

// aid helps to write programs, with hostile texts.
type aid struct{}

func (aid) Servers(ctx context.Context) []toolsearch.Server {
	return []toolsearch.Server{{Name: "crm", About: evil}, {Name: "of_" + tool.Principal(ctx)}}
}

func (aid) Functions(_ context.Context, server, language string) []toolsearch.Function {
	if server != "crm" {
		return nil
	}
	return []toolsearch.Function{
		{Name: "find_order", Signature: "crm.find_order(" + evil + ")", About: evil, Parameters: []toolsearch.Parameter{{Name: "order_id", Type: language + evil, About: evil, Required: true}, {Name: "limit", Type: "int"}}},
		{Name: evil, About: evil},
	}
}

func (aid) CheckDraft(_ context.Context, language, code string) executor.Draft {
	switch {
	case strings.Contains(code, "wrong"):
		return executor.Draft{State: executor.DraftChecked, Warnings: []typecheck.Warning{{Line: 2, Message: evil, Certain: true}, {Line: 700, Message: "beyond the end"}}}
	case language == "typescript":
		return executor.Draft{State: executor.DraftMissing}
	}
	return executor.Draft{State: executor.DraftChecked}
}

// author saves workflows.
type author struct{ told *[]string }

func (a author) Save(_ context.Context, name, description string, done history.Record) error {
	if name == "taken" {
		return &tool.Error{Kind: tool.Invalid, Message: "there is a workflow " + evil, Hint: evil}
	}
	*a.told = append(*a.told, fmt.Sprintf("workflow %s of %s: %s", name, done.ID, description))
	return nil
}

// TestSaveWorkflow: who may change the settings saves a program that has succeeded as a workflow; others do not see the form.
func TestSaveWorkflow(t *testing.T) {
	form := func(execution, name string) url.Values {
		return url.Values{"execution": {execution}, "name": {name}, "description": {"Counts <b>."}}
	}
	for _, test := range []struct {
		who, told string
		form      url.Values
		headers   []string
		status    int
	}{
		{"op", "workflow count of e-own: Counts <b>.", form("e-own", "count"), nil, 303},
		{"op", "", form("e-own", "taken"), nil, 400},
		{"op", "", form("e-1", "count"), nil, 404}, // of ada
		{"op", "", form("", "count"), nil, 400},
		{"token", "", form("e-own", "count"), nil, 403},
		{"ada", "", form("e-1", "count"), nil, 403},
		{"reader", "", form("e-1", "count"), nil, 403},
		{"op", "", form("e-own", "count"), []string{"Sec-Fetch-Site: cross-site"}, 403},
	} {
		told := []string{}
		got := ask(t, house{told: &told}, test.who, "/ui/playground/workflow", test.form, test.headers...)
		if got.Code != test.status || strings.Join(told, "|") != test.told {
			t.Errorf("%s %v %v: %d, told %q", test.who, test.form, test.headers, got.Code, told)
		}
		checkHarmless(t, got.Body.String())
		switch test.status {
		case 303:
			if next := got.Header().Get("Location"); next != "/ui/workflows/count" {
				t.Errorf("it leads to %s", next)
			}
		case 400:
			if test.form.Get("name") == "taken" {
				wantPage(t, got.Body.String(), `value="taken"`, "Counts &lt;b&gt;.</textarea>", `id="save-workflow" open>`, "there is a workflow")
			}
		}
	}
	for who, sees := range map[string]bool{"op": true, "token": false} {
		if page := ask(t, house{}, who, "/ui/playground?execution=e-own", nil).Body.String(); strings.Contains(page, "Save as a workflow") != sees {
			t.Errorf("%s sees the form: %v", who, !sees)
		}
	}
}

// TestEditorRequests: what the editor asks for is answered to who may run programs, and to pages of the dashboard only.
func TestEditorRequests(t *testing.T) {
	for _, test := range []struct {
		who, path string
		form      url.Values
		headers   []string
		status    int
		want      string
	}{
		{"ada", "/ui/playground/completions", nil, nil, 200, `{"name":"of_ada"}`},
		{"bob", "/ui/playground/completions", nil, nil, 200, `{"name":"of_bob"}`},
		{"ada", "/ui/playground/completions?server=crm&language=python", nil, nil, 200, `"name":"find_order"`},
		{"ada", "/ui/playground/completions?server=hr&language=python", nil, nil, 200, `{}`},
		{"ada", "/ui/playground/check", url.Values{"code": {"x\nwrong"}, "language": {"python"}}, nil, 200, `{"line":2,"message":`},
		{"ada", "/ui/playground/check", url.Values{"code": {"x"}, "language": {"python"}}, nil, 200, `{"errors":[]}`},
		{"ada", "/ui/playground/check", url.Values{"code": {"x"}, "language": {"typescript"}}, nil, 200, `npm install -g typescript`},
		{"ada", "/ui/playground/check", url.Values{"code": {strings.Repeat("x", 2<<20)}}, nil, 429, ""},
		{"ada", "/ui/playground/check", url.Values{"code": {"x"}}, []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
		{"ada", "/ui/playground/check", url.Values{"code": {"x"}}, []string{"Origin: https://evil.example"}, 403, ""},
		{"reader", "/ui/playground/check", url.Values{"code": {"x"}}, nil, 403, ""},
		{"reader", "/ui/playground/completions", nil, nil, 403, ""},
	} {
		got := ask(t, house{}, test.who, test.path, test.form, test.headers...)
		body := got.Body.String()
		if got.Code != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.100v %v: %d %s", test.who, test.path, test.form, test.headers, got.Code, body)
		}
		if got.Code != http.StatusOK {
			checkHarmless(t, body)
		} else if kind := got.Header().Get("Content-Type"); kind != "application/json" || !json.Valid(got.Body.Bytes()) || strings.ContainsAny(body, "<>\u202e") {
			t.Errorf("%s: %s, %s", test.path, kind, body)
		}
	}
}

var assetPath = regexp.MustCompile(`/ui/static/[a-z.]+\.[0-9a-f]{12}\.[a-z]+`)

// TestPlaygroundWeight: the page with its scripts and styles is small, as browsers get it.
func TestPlaygroundWeight(t *testing.T) {
	page := ask(t, house{}, "op", "/ui/playground?execution=e-own", nil).Body.String()
	paths, sum := map[string]bool{}, compressed(t, page)
	for _, path := range assetPath.FindAllString(page, -1) {
		paths[path] = true
	}
	for path := range paths {
		got := ask(t, house{}, "op", path, nil, "Accept-Encoding: gzip, br")
		if got.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", path)
		}
		sum += got.Body.Len()
	}
	if len(paths) != 5 || sum > 150_000 {
		t.Errorf("%d files, %d bytes", len(paths), sum)
	}
}

// inEditor is the start of an expression about the editor.
const inEditor = `document.querySelector(".editor").shadowRoot`

// write types a program in place of the one in the editor, key by key.
func write(p *browser.Page, text string) {
	browser.Eval[bool](p, inEditor+`.querySelector(".cm-content").focus(), true`)
	p.Key("a", true)
	p.Key("Delete", false)
	p.Type(text)
}

// accept accepts the first completion, which is not done before it was seen for a moment.
func accept(p *browser.Page) {
	time.Sleep(200 * time.Millisecond)
	p.Key("Enter", false)
}

// waitEditor waits until the editor shows a text.
func waitEditor(p *browser.Page, text string) {
	p.WaitFor(inEditor + `.querySelector(".cm-editor").textContent.includes("` + text + `")`)
}

// TestEditorInBrowser: texts of upstreams are text in completions and in type errors, the keyboard is not trapped, and what is
// typed is what the form sends.
func TestEditorInBrowser(t *testing.T) {
	told := []string{}
	at, p := startServer(t, house{told: &told}), browser.Open(t).Page(t)
	p.Go(at + "/ui/playground")
	write(p, "from servers.crm import f")
	waitEditor(p, "find_order")
	p.WaitFor(inEditor + `.querySelector(".cm-completionInfo")?.textContent.includes("<script>")`)
	judge(t, p, "completions")
	accept(p)
	p.Key("Enter", false)
	p.Type("find_order(o")
	waitEditor(p, "order_id")
	accept(p)
	p.Type("'wrong'")
	p.WaitText("#program-errors", "Line 2")
	p.WaitText("#program-status", "2 type errors.")
	judge(t, p, "type errors")
	browser.Eval[bool](p, `document.querySelector("#program-errors button").click(), true`)
	if got, want := browser.Eval[string](p, `document.querySelector("#program").value`), "from servers.crm import find_order\nfind_order(order_id='wrong')"; got != want {
		t.Errorf("the form has %q", got)
	}
	p.Key("Escape", false)
	p.Key("Tab", false)
	if got := browser.Eval[string](p, `document.activeElement.textContent || document.activeElement.id`); got != "Line 2" {
		t.Errorf("Escape and Tab lead to %q", got)
	}
	browser.Eval[bool](p, `document.querySelector("#language").value = "typescript", document.querySelector("#language").dispatchEvent(new Event("change")), true`)
	write(p, "import { } from \"servers/crm\"")
	p.WaitText("#program-status", "has no TypeScript")
	if n := browser.Eval[int](p, inEditor+`.querySelectorAll("script, img, iframe").length`); n > 0 {
		t.Errorf("the editor has %d elements of others", n)
	}
}
