package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
)

// inEditor is the start of an expression about the editor of the playground.
const inEditor = `document.querySelector(".editor").shadowRoot`

// write types a program into the editor, in place of the one that is there.
func (w *walker) write(text string) {
	w.t.Helper()
	w.p.WaitFor(`document.querySelector(".editor")`)
	browser.Eval[bool](w.p, inEditor+`.querySelector(".cm-content").focus(), true`)
	w.p.Key("a", true)
	w.p.Key("Delete", false)
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			w.p.Key("Escape", false) // of what could be completed
			w.p.Key("Enter", false)
		}
		w.p.Type(line)
	}
}

// complete accepts the completion that is selected once the editor shows a text.
func (w *walker) complete(text string) {
	w.t.Helper()
	w.p.WaitFor(inEditor + `.querySelector(".cm-tooltip-autocomplete [aria-selected]")?.textContent.startsWith(` + quoteJSON(text) + `)`)
	time.Sleep(200 * time.Millisecond) // a completion is not accepted before it was seen for a moment
	w.p.Key("Enter", false)
}

// saveWorkflow saves the program that has run as a workflow, which is in force at once, and runs it.
func (w *walker) saveWorkflow(s *site) {
	w.t.Helper()
	p := w.p
	w.saveAs("workflow", "Adds <b>40</b> and 2.", "sum of two", "sum_of_two", "the name of a workflow")
	w.checkPage("workflow from the playground", "Saved as a workflow.", "Adds <b>40</b> and 2.", "for operators only")
	if text, err := os.ReadFile(filepath.Join(s.dir, "workflows", "sum_of_two.yaml")); err != nil || !strings.Contains(string(text), "print(get_sum(a=40, b=2))") {
		w.t.Errorf("the file: %v\n%s", err, text)
	}
	p.Follow("main form button.primary")
	p.WaitText("main", "took")
	w.checkPage("run of a workflow from the playground", "sum_of_two", "code python ok")
}

// saveAs saves the program that has run as a skill or a workflow: first under a wrong name, after which the page has a text.
func (w *walker) saveAs(kind, about, wrong, name, text string) {
	w.t.Helper()
	p, form := w.p, "#save-"+kind
	browser.Eval[int](p, `document.querySelector(`+quoteJSON(form+" summary")+`).click(), 0`)
	p.Fill("#"+kind+"-name", wrong)
	p.Fill("#"+kind+"-about", about)
	if status := p.Follow(form + " button"); status != http.StatusBadRequest {
		w.t.Errorf("a wrong name of a %s: %d", kind, status)
	}
	w.checkPage("playground with a wrong name of a "+kind, text)
	p.Complaints() // of the status
	p.Fill("#"+kind+"-name", name)
	p.Follow(form + " button")
}

// TestEditorWalked: a person writes a program with completions and type errors of real checkers, and runs it with the keyboard only.
func TestEditorWalked(t *testing.T) {
	t.Setenv("PATH", filepath.Join(testutil.Checkers(t), ".bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := newSite(t, "")
	p := browser.Open(t).Page(t)
	home := strings.TrimSuffix(s.url, "/mcp")
	w := &walker{t: t, p: p, home: home}
	w.logInLocally(s)
	w.follow("Playground")
	w.write("from servers.ev")
	w.complete("everything")
	p.Type(" import get_su")
	w.complete("get_sum")
	p.Key("Enter", false)
	p.Type("print(get_sum(")
	p.WaitFor(inEditor + `.querySelector(".cm-completionInfo, [aria-selected]")`)
	w.checkPage("playground with completions")
	w.complete("a")
	p.Type("40, c=2")
	p.WaitText("#program-errors", "Line 2")
	w.checkPage("playground with a type error", `"c"`)
	for range len("c=2") {
		p.Key("Backspace", false)
	}
	p.Type("b")
	w.complete("b")
	p.Type("2")
	p.WaitFor(`document.querySelector("#program-errors").hidden && document.querySelector("#program-status").textContent === ""`)
	p.Key("Escape", false)
	p.Key("Tab", false)
	if at := browser.Eval[string](p, `document.activeElement.id`); at != "language" {
		t.Errorf("Escape and Tab lead to %q", at)
	}
	browser.Eval[bool](p, inEditor+`.querySelector(".cm-content").focus(), true`)
	p.Key("Enter", true)
	p.WaitText("#run", "The sum of 40 and 2 is 42.")
	if text := browser.Eval[string](p, `document.querySelector("#program").value`); text != "from servers.everything import get_sum\nprint(get_sum(a=40, b=2))" {
		t.Errorf("the form has %q", text)
	}
	w.checkPage("playground after a run", "everything.get_sum")
	w.saveWorkflow(s)
	w.follow("Playground")

	browser.Eval[bool](p, `document.querySelector("#language").value = "typescript", document.querySelector("#language").dispatchEvent(new Event("change")), true`)
	w.write("import { get_sum } from \"servers/everything\";\nawait get_sum({ a: 1, d: 2 });")
	p.WaitText("#program-errors", "Line 2")
	w.checkPage("playground in TypeScript", `"d"`)
	if status := browser.Eval[int](p, `fetch("/ui/playground/check", { method: "POST", body: new URLSearchParams({ code: "x".repeat(2000000) }) }).then((r) => r.status)`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large program: %d", status)
	}
	p.Complaints() // of the status
	s.terminate(t)
	s.waitStopped(t)
}
