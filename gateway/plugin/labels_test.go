package plugin_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/auditor"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

const labeledSettings = `
policy:
  default: allow
  flow: deny
  rules:
    - {name: never, tools: [source.forget], then: deny}
plugins:
  source: {labels: [private, untrusted]}
  sink: {tool_labels: {"*": [external]}}
`

func labeledPlugins() files {
	all := one("source", "tools: [read]\nsteps: [load, forget]\n", "def read() -> str:\n    return 'a'\n\ndef load() -> str:\n    return 'b'\n\ndef forget() -> str:\n    return 'c'\n")
	maps.Copy(all, one("sink", "tools: [send]\nsteps: [post]\n", "def send(text: str) -> str:\n    return text\n\ndef post(text: str) -> str:\n    return text\n"))
	return all
}

// step calls a step of a plugin in the run of a workflow.
func (h *house) step(ctx context.Context, run, name, args string) (string, error) {
	h.t.Helper()
	ctx = toolcall.WithRun(tool.WithSession(ctx, "workflow:"+run), run)
	value, err := h.Step(ctx, tool.Call{Tool: mustID(h.t, name), Args: json.RawMessage(args), Execution: run})
	return string(value), err
}

// TestLabels: results of tools and steps of a plugin have its labels, and its sinks are refused after private and untrusted
// data was read; steps pass the policy and are in the audit log.
func TestLabels(t *testing.T) {
	t.Parallel()
	h := open(t, labeledSettings, labeledPlugins())
	h.await("source.read", "sink.send")
	h.want("sink.send", `{"text":"x"}`, `"x"`)
	h.want("source.read", `{}`, `"a"`)
	h.refused("sink.send", `{"text":"x"}`, "policy refuses sink.send (flow)")

	eve := tool.WithPrincipal(t.Context(), "eve")
	if got, err := h.step(eve, "r-1", "sink.post", `{"text":"x"}`); err != nil || got != `"x"` {
		t.Errorf("a sink before anything was read: %s, %v", got, err)
	}
	if got, err := h.step(eve, "r-1", "source.load", `{}`); err != nil || got != `"b"` {
		t.Errorf("a source: %s, %v", got, err)
	}
	if _, err := h.step(eve, "r-1", "sink.post", `{"text":"x"}`); tool.AsError(err).Kind != tool.Denied || !strings.Contains(err.Error(), "policy refuses sink.post (flow)") {
		t.Errorf("a sink after private and untrusted data was read: %v", err)
	}
	if _, err := h.step(eve, "r-2", "sink.post", `{"text":"x"}`); err != nil {
		t.Errorf("another run: %v", err)
	}
	if _, err := h.step(eve, "r-2", "source.forget", `{}`); tool.AsError(err).Kind != tool.Denied || !strings.Contains(err.Error(), `rule "never"`) {
		t.Errorf("a step that a rule denies: %v", err)
	}

	page, err := h.Auditor.AuditLog(tool.WithOperator(t.Context(), "test"), auditor.Filter{Principal: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range slices.Backward(page.Events) {
		if e.Kind == audit.Call || e.Kind == audit.Result {
			got = append(got, strings.Join([]string{string(e.Kind), e.Execution, e.Tool, e.Decision + e.Outcome, e.Rule}, " "))
		}
	}
	want := []string{
		"call r-1 sink.post allow read-only", "result r-1 sink.post ok ", "call r-1 source.load allow read-only", "result r-1 source.load ok ", "call r-1 sink.post deny flow",
		"call r-2 sink.post allow read-only", "result r-2 sink.post ok ", "call r-2 source.forget deny never",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStepsHavePersonalData: a step gives a workflow tokens in place of personal data, and gets the values of tokens, as a tool does.
func TestStepsHavePersonalData(t *testing.T) {
	t.Parallel()
	h := open(t, "privacy: {mode: tokenize}\n", one("people", "steps: [find, length, fail]\n",
		"def find(name: str) -> dict:\n    return {'mail': name + '@example.com'}\n\ndef length(mail: str) -> int:\n    return len(mail)\n\ndef fail() -> str:\n    raise ValueError('no ada.lovelace@example.com here')\n"))
	ada := tool.WithPrincipal(t.Context(), "ada")
	found, err := h.step(ada, "r-1", "people.find", `{"name":"ada.lovelace"}`)
	var value struct{ Mail string }
	if err != nil || json.Unmarshal([]byte(found), &value) != nil || value.Mail == "" || strings.Contains(found, "lovelace") {
		t.Fatalf("%s, %v", found, err)
	}
	args, _ := json.Marshal(map[string]string{"mail": value.Mail})
	if got, err := h.step(ada, "r-1", "people.length", string(args)); err != nil || got != "24" {
		t.Errorf("of %s: %s, %v", value.Mail, got, err)
	}
	if _, err := h.step(ada, "r-1", "people.fail", `{}`); err == nil || strings.Contains(err.Error(), "lovelace") {
		t.Errorf("an error: %v", err)
	}
}
