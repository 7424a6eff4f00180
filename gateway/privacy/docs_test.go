package privacy_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"testing"

	"sallyport/gateway/privacy"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestDocs checks that the settings of docs/how-to/privacy.md make the result that the page shows from what the tool returns, and that
// mail.send gets the value.
func TestDocs(t *testing.T) {
	shown := map[string]string{}
	for _, e := range testutil.Examples(t, "docs/how-to/privacy.md") {
		if e.Section == "Quick start" {
			shown[e.Language] = e.Text
		}
	}
	cfg, err := config.Parse("privacy.md", []byte(shown["yaml"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := privacy.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	sent := ""
	handler := tokens.Middleware(func(string) bool { return false })(func(_ context.Context, c tool.Call) (tool.Result, error) {
		sent = string(c.Args)
		return tool.Result{Structured: json.RawMessage(shown["json result"])}, nil
	})
	call := func(upstream, name, args string) (got any) {
		result, err := handler(t.Context(), tool.Call{Tool: tool.ID{Upstream: upstream, Name: name}, Args: json.RawMessage(args), Execution: "e-1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(result.Structured, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	var want any
	if err := json.Unmarshal([]byte(shown["json program"]), &want); err != nil {
		t.Fatal(err)
	}
	if got := call("crm", "get", `{}`); !reflect.DeepEqual(got, want) {
		t.Errorf("the program gets %v, not %v", got, want)
	}
	if call("mail", "send", `{"to":"[EMAIL_1]"}`); sent != `{"to":"ann@example.com"}` {
		t.Errorf("mail.send gets %s", sent)
	}
	if call("web", "get", `{"to":"[EMAIL_1]"}`); sent != `{"to":"[EMAIL_1]"}` {
		t.Errorf("another tool gets %s", sent)
	}
}
