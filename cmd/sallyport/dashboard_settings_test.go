package main_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
)

// settings returns the settings file of a site.
func (s *site) settings(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "upstreams.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// logInLocally logs in with the address that sallyport dashboard prints on the gateway's machine.
func (w *walker) logInLocally(s *site) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), testutil.Binary(w.t), "dashboard", "--print")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_STATE_HOME="+s.dir)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	if status := w.p.Go(strings.TrimSpace(string(out))); status != http.StatusOK {
		w.t.Fatalf("the login: %d", status)
	}
}

// text returns what is in a field of text, setText sets it to another one.
func (w *walker) text(selector string) string {
	return browser.Eval[string](w.p, "document.querySelector("+quoteJSON(selector)+").value")
}

func (w *walker) setText(selector, text string) {
	browser.Eval[int](w.p, "document.querySelector("+quoteJSON(selector)+").value = "+quoteJSON(text)+", 0")
}

// policyRead looks at the policy with a token: a call is tried, and the rules cannot be edited.
func (w *walker) policyRead() {
	w.t.Helper()
	p := w.p
	w.follow("Policy")
	w.checkPage("policy", "a person looks", "everything.echo", "needs approval", "role admin")
	if browser.Eval[bool](p, `document.querySelector("a[href='/ui/policy/edit']") !== null`) {
		w.t.Error("a token may edit the policy")
	}
	p.NoScript(true)
	p.Go(w.home + "/ui/policy")
	p.Fill("#try-tool", "everything.echo")
	p.Follow("#try button")
	p.NoScript(false)
	p.Go(w.home + "/ui/policy")
	p.Fill("#try-tool", "everything.echo")
	p.Fill("#try-principal", "oauth:<b>ann")
	w.setText("#try-args", `{"message": "<i>x</i>"}`)
	p.Follow("#try button")
	w.checkPage("a call that was tried", "everything.echo: needs approval.", `rule "a person looks"`, "decides")
	if status := p.Go(w.home + "/ui/policy/edit"); status != http.StatusForbidden {
		w.t.Errorf("a token opens the form: %d", status)
	}
	p.Complaints() // of the status
}

// policyEdit edits the policy on the gateway's machine: a mistake is reported, a check says what it would change, and what is saved is in
// force at once, with its comments.
func (w *walker) policyEdit(s *site) {
	w.t.Helper()
	p := w.p
	w.follow("Policy")
	p.Follow("a[href='/ui/policy/edit']")
	before, text := s.settings(w.t), w.text("#edit-text")
	if !strings.Contains(before, text) {
		w.t.Errorf("the form has %q", text)
	}
	w.checkPage("policy to edit", "YAML, with its comments")
	edited := strings.TrimSuffix(text, "\n") + "\n  # <b>no sums</b>\n"
	edited = strings.Replace(edited, "rules: [", "rules: [{name: no sums, tools: [everything.get_sum], then: deny, message: use your head}, ", 1)
	w.setText("#edit-text", strings.Replace(edited, "then: deny", "then: denied", 1))
	if status := p.Follow("#edit button[value=check]"); status != http.StatusBadRequest {
		w.t.Errorf("a mistake: %d", status)
	}
	w.checkPage("policy with a mistake", "Line 3: ", `"denied"`, "^")
	p.Complaints() // of the status
	w.setText("#edit-text", edited)
	p.Follow("#edit button[value=check]")
	w.checkPage("policy that was checked", "calls of the last day", "would be refused", "everything.get_sum", "token:test")
	if s.settings(w.t) != before {
		w.t.Error("a check has changed the file")
	}
	p.Follow("#edit button[value=save]")
	w.checkPage("policy after an edit", "Saved, and in force.", "no sums", "tells the model: use your head")
	if want := strings.Replace(before, text, edited, 1); s.settings(w.t) != want {
		w.t.Errorf("the settings are\n%s\nwant\n%s", s.settings(w.t), want)
	}
	p.Go(w.home + "/ui/catalogue/everything/get_sum")
	p.Fill("#try [name='in.a']", "40")
	p.Fill("#try [name='in.b']", "2")
	if status := p.Follow("#try button.primary"); status != http.StatusForbidden || !strings.Contains(p.Text("#try"), "use your head") {
		w.t.Errorf("a call that the new rule refuses: %d %s", status, p.Text("#try"))
	}
	p.Complaints() // of the status
	w.follow("Audit")
	w.checkPage("audit after an edit", "settings.changed", "edited policy")
	p.Follow("main form[action='/ui/audit'][method=post] button")
	w.checkPage("audit that is verified", "The log is intact.", "record 1", "Hash of the last")
	w.breakAudit(s)
	p.Follow("main form[action='/ui/audit'] button")
	w.checkPage("audit that is broken", "The log is not intact:", "record 3: ")
	p.Follow("main .findings a")
	w.checkPage("records around a broken one", "are damaged or were changed")
}

// upstreamEdit edits the settings of an upstream, turns it off, and on again.
func (w *walker) upstreamEdit(s *site) {
	w.t.Helper()
	p := w.p
	p.Go(w.home + "/ui/upstreams/gate")
	w.checkPage("upstream of a person who may edit", "Edit", "Disable")
	p.Follow("a[href='/ui/upstreams/gate/edit']")
	before, text := s.settings(w.t), w.text("#edit-text")
	if !strings.HasPrefix(text, "gate:") {
		w.t.Fatalf("the form has %q", text)
	}
	with := func(timeout string) string { return strings.Replace(text, "{", "{timeout: "+timeout+", ", 1) }
	w.setText("#edit-text", with("soon"))
	if status := p.Follow("#edit button[value=check]"); status != http.StatusBadRequest {
		w.t.Errorf("a mistake: %d", status)
	}
	w.checkPage("upstream with a mistake", "timeout: soon", "^")
	p.Complaints() // of the status
	w.setText("#edit-text", strings.TrimSuffix(with("59s"), "\n")+" # <b>slow</b>\n")
	p.Follow("#edit button[value=check]")
	w.checkPage("upstream that was checked", "Save")
	if s.settings(w.t) != before {
		w.t.Error("a check has changed the file")
	}
	p.Follow("#edit button[value=save]")
	w.checkPage("upstreams after an edit", "Saved, and in force.")
	if !strings.Contains(s.settings(w.t), "{timeout: 59s, ") || !strings.Contains(s.settings(w.t), " # <b>slow</b>") {
		w.t.Errorf("the settings are\n%s", s.settings(w.t))
	}
	p.Go(w.home + "/ui/upstreams/gate")
	p.Follow("form[action='/ui/upstreams/gate/switch'] button")
	w.checkPage("an upstream that is off", "Disabled: gate.", "Enable")
	p.Follow("form[action='/ui/upstreams/gate/switch'] button")
	w.checkPage("an upstream that is on again", "Enabled: gate.")
	if browser.Eval[bool](p, `document.querySelector("form[action='/ui/upstreams/gate/switch']") !== null`) {
		w.t.Error("it is listed as off")
	}
}

// breakAudit edits the third record of the audit log.
func (w *walker) breakAudit(s *site) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "sallyport", "audit", "records-*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no audit log: %v", err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		w.t.Fatal(err)
	}
	begin := 0
	for range 2 {
		begin += bytes.IndexByte(data[begin:], '\n') + 1
	}
	at := begin + bytes.Index(data[begin:], []byte(`"time":"20`)) + len(`"time":"`)
	if _, err := f.WriteAt([]byte("19"), int64(at)); err != nil {
		w.t.Fatal(err)
	}
}
