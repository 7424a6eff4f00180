package plugin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sallyport/gateway/dashboard"
	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

const staffPython = `
import re

def staff() -> dict:
    return {"id": "EMP-0042", "note": "ask EMP-0007 (EMP-0042)", "mail": "a@b.example"}

def rows() -> list[dict]:
    return [{"id": "<script>alert(1)</script>\u202e"}]

def find(text):
    return re.findall(r"EMP-\d{4}", text)

def careful(code, language):
    if "rm -rf" in code:
        return {"deny": "it deletes files"}
    if "oops" in code:
        raise ValueError("oops")

def join(left: list[str], right: list[str] = ["z"]) -> list[str]:
    return sorted(left + right)

def show(tool, result):
    if result == "text":
        return "<b>text</b>\x1b[31m"
    if result == "bad":
        return 7
    return {"columns": ["id", "<script>"], "rows": [[r["id"], r] for r in result]}
`

const staffManifest = `name: staff
version: 1.0.0
tools: [staff, rows]
recognizers:
  - kind: employee
    run: find
checks:
  - run: careful
steps: [join]
renderers:
  - tools: [shop.*, staff.rows]
    run: show
`

func TestKinds(t *testing.T) {
	t.Parallel()
	h := open(t, "privacy: {mode: tokenize}\n", files{"staff/plugin.yaml": staffManifest, "staff/main.py": staffPython})
	h.await("staff.staff")
	h.want("staff.staff", `{}`, `{"id":"[EMPLOYEE_1]","note":"ask [EMPLOYEE_2] ([EMPLOYEE_1])","mail":"[EMAIL_1]"}`)

	run := func(code string) (execution.Result, error) {
		return h.Execute(execution.Program{Code: code, Language: "python"})
	}
	if r, err := run("print(6 * 7)"); err != nil || !strings.Contains(r.Stdout.Text, "42") {
		t.Errorf("a harmless program: %+v, %v", r.Outcome, err)
	}
	for code, want := range map[string]string{"'rm -rf /'": "plugin staff refuses the program: it deletes files", "oops": "plugin staff could not check the program: ValueError: oops"} {
		if _, err := run(code); err == nil || !strings.Contains(err.Error(), want) || tool.AsError(err).Kind != tool.Denied {
			t.Errorf("%s: %v", code, err)
		}
	}

	if got, err := h.Plugins.Step(context.Background(), "staff", "join", json.RawMessage(`{"left":["b","a"]}`)); err != nil || string(got) != `["a","b","z"]` {
		t.Errorf("step: %s, %v", got, err)
	}
	for _, c := range [][2]string{{"staff", "staff"}, {"nobody", "join"}} {
		if _, err := h.Plugins.Step(context.Background(), c[0], c[1], nil); err == nil || tool.AsError(err).Kind != tool.NotFound {
			t.Errorf("step %v: %v", c, err)
		}
	}

	table, err := h.Plugins.Render(context.Background(), mustID(t, "shop.list"), `[{"id":"a\u001bb"}]`)
	if err != nil || len(table.Rows) != 1 || strings.ContainsRune(table.Rows[0][0], 0x1b) || table.Columns[1] != "<script>" {
		t.Errorf("table: %+v, %v", table, err)
	}
	if text, err := h.Plugins.Render(context.Background(), mustID(t, "shop.list"), "text"); err != nil || strings.ContainsRune(text.Text, 0x1b) {
		t.Errorf("text: %+v, %v", text, err)
	}
	if _, err := h.Plugins.Render(context.Background(), mustID(t, "shop.list"), "bad"); err == nil || !strings.Contains(err.Error(), "show must return") {
		t.Errorf("bad: %v", err)
	}
	if none, err := h.Plugins.Render(context.Background(), mustID(t, "other.list"), "text"); none != nil || err != nil {
		t.Errorf("no renderer: %+v, %v", none, err)
	}

	failed, err := run("from servers.staff import rows\nrows()\nraise ValueError('so that its journal is kept')")
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewRecorder()
	dashboard.New(h.Service(), &dashboard.Options{Renderers: h.Plugins}).ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/executions/"+failed.ID, nil))
	if text := page.Body.String(); !strings.Contains(text, "Shown by plugin staff") || !strings.Contains(text, `<th scope="col">&lt;script&gt;</th>`) || strings.Contains(text, "<script>alert") || strings.ContainsRune(text, 0x202e) {
		t.Errorf("the page of an execution:\n%s", text)
	}

	broken := strings.Replace(staffPython, "return re.findall", "return 7 or re.findall", 1)
	write(t, h.dir+"/plugins", files{"staff/main.py": broken})
	approve(t, h.dir, "staff")
	h.Plugins.Reload()
	h.await("staff.staff")
	h.refused("staff.staff", `{}`, "could not be checked for personal data: recognizer employee of plugin staff: find must return")
	write(t, h.dir+"/plugins", files{"staff/main.py": broken + "#"})
	h.Plugins.Reload()
	if _, err := run("1"); err == nil || !strings.Contains(err.Error(), "no program can be checked: plugin staff is off: it changed") {
		t.Errorf("a program while the check is held: %v", err)
	}
}

// A plugin gets the secrets, files and hosts that it asks for and that are granted; its secrets never leave it.
func TestGrants(t *testing.T) {
	t.Parallel()
	service := newService(t)
	host := strings.TrimPrefix(service.URL, "https://")
	manifest := "tools: [load, leak]\nhosts: [\"" + host + "\", 169.254.169.254]\nsecrets: [KEY]\nfiles: [prices]\n"
	const code = `
import base64, sallyport

def load(url: str) -> dict:
    answer = sallyport.fetch(url, method="POST", headers={"Authorization": "Bearer " + sallyport.secret("KEY")}, body={"a": 1})
    with open("/files/prices/list.txt") as f:
        return {"status": answer.status, "said": answer.json(), "prices": f.read()}

def leak():
    key = sallyport.secret("KEY")
    if False: raise ValueError
    return [key, key.encode().hex(), {key: "key " + key}]
`
	h := open(t, "", one("tariff", manifest, code))
	h.refused("tariff.load", `{"url":"https://example.com"}`, "there is no")
	if status, why := h.status("tariff"); status != "held" || !strings.Contains(why, "it asks for what upstreams.yaml does not grant: plugins: {tariff: {hosts: ["+host+"], hosts: [169.254.169.254], secrets: {KEY: ...}, files: {prices: ...}}}") {
		t.Errorf("it is %s: %s", status, why)
	}
	write(t, h.dir, files{"prices/list.txt": "pen 1.50"})
	t.Log("granted")
	g := reopen(t, h.dir, "plugins: {tariff: {hosts: [\""+host+"\", other.example.com, 169.254.169.254], secrets: {KEY: s3cret-k3y-of-the-tariff, OTHER: x}, files: {prices: ./prices}}}\n")
	g.await("tariff.load")
	g.want("tariff.load", `{"url":"`+service.URL+`/echo"}`, `{"status":200,"said":{"auth":"Bearer [hidden]","body":{"a":1}},"prices":"pen 1.50"}`)
	g.refused("tariff.load", `{"url":"`+service.URL+`/away"}`, "host example.com is not granted")
	g.refused("tariff.load", `{"url":"https://169.254.169.254/latest"}`, "host 169.254.169.254 cannot be reached: it has a link-local or metadata address")
	g.refused("tariff.load", `{"url":"https://other.example.com/"}`, "host other.example.com is not granted")
	if got, err := g.call("tariff.leak", `{}`); err != nil || strings.Contains(got, "s3cret") || strings.Contains(got, "733363726574") {
		t.Errorf("leak: %s, %v", got, err)
	}
}
