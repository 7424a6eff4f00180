package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// people is an upstream with personal data, and web one that gives back what it gets.
func people(s *site) {
	record := map[string]any{"id": 7, "full_name": "Ann O'Neil", "email": "ann@corp.example", "phone": 4155552671, "note": "born in May, [EMAIL_9]"}
	s.tool("get", "Get a person.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: record}
	})
	s.tool("page", "Get a page.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "Mail ann@corp.example or bob@corp.example"}, &mcp.ImageContent{Data: []byte("ann@corp.example"), MIMEType: "image/png"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///ann@corp.example.txt", Text: "card 4111 1111 1111 1111"}},
		}}
	})
	s.tool("fail", "Fail.", "", func(json.RawMessage) *mcp.CallToolResult {
		r := text("no mailbox ann@corp.example")
		r.IsError = true
		return r
	})
	s.tool("set", "Set the phone.", `"required":["phone"],"properties":{"phone":{"type":"integer"},"to":{"type":"string","pattern":"@"}}`, echo)
	s.tool("echo", "Give back the arguments.", `"additionalProperties":true`, echo)
	s.tool("letter", "A letter.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Ann O'Neil's letter"}}, StructuredContent: map[string]any{"body": "Yours, Ann O'Neil", "by": map[string]any{"full_name": "Ann O'Neil"}}}
	})
	s.tool("keys", "A paper.", "", func(json.RawMessage) *mcp.CallToolResult { return text("the title is Blue, [email_1] [EMAIL_2]") })
}

func openPrivate(t *testing.T, privacy config.Privacy, change func(*config.Config)) (*gateway.Gateway, *records) {
	t.Helper()
	cfg := settings(map[string]*site{"crm": newSite(t, people), "web": newSite(t, people)})
	cfg.Privacy = privacy
	if change != nil {
		change(cfg)
	}
	log := &records{}
	g := open(t, cfg, &gateway.Options{Logger: slog.New(log)})
	g.Catalog.WaitConnected(t.Context())
	return g, log
}

// asked is the whole of what a call came to, as text.
func callAs(ctx context.Context, t *testing.T, g *gateway.Gateway, id, args string) string {
	t.Helper()
	parsed, err := tool.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	result, err := g.Call(ctx, tool.Call{Tool: parsed, Args: json.RawMessage(args)})
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, c := range result.Content {
		b.WriteString(c.Text + string(c.Data) + c.URI + "\n")
	}
	return b.String() + string(result.Structured) + "\nraw " + string(result.Raw)
}

func wantAll(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if forbidden, no := strings.CutPrefix(p, "!"); no && strings.Contains(got, forbidden) || !no && !strings.Contains(got, p) {
			t.Errorf("%s: %q in\n%s", what, p, got)
		}
	}
}

func TestPrivacyTokens(t *testing.T) {
	g, log := openPrivate(t, config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"web.echo"}, RestoreNever: []string{"crm.keys"}}, nil)
	ctx := tool.WithSession(tool.WithPrincipal(t.Context(), "ann"), "1")
	ask := func(id, args string) string { return callAs(ctx, t, g, id, args) }

	wantAll(t, "structured", ask("crm.get", "{}"), `"[NAME_1]"`, `"[EMAIL_1]"`, `"[PHONE_1]"`, `"id":7`, `[TEXT_1]`, "!ann@corp", "!O'Neil", "!4155552671", "![EMAIL_9]")
	page := ask("crm.page", "{}")
	wantAll(t, "content", page, "Mail [EMAIL_1] or [EMAIL_2]", "card [CARD_1]", "ann@corp.example", "!bob@corp", "!4111 1111")
	if strings.Count(page, "ann@corp.example") != 1 || !strings.Contains(page, "file:///[EMAIL_1].txt") { // in the image, whose bytes in the raw result are base64
		t.Error(page)
	}
	wantAll(t, "failure", ask("crm.fail", "{}"), "no mailbox [EMAIL_1]", "!ann@corp")

	// Back to where it came from: values, and in the answer tokens again.
	wantAll(t, "same upstream", ask("crm.echo", `{"to":"[EMAIL_1]","n":["x [name_1]"],"u":"?q=%5BEMAIL_1%5D"}`), "[EMAIL_1]", "[NAME_1]", "!ann@", "!O'Neil", "!%5B")
	wantAll(t, "a number, and a pattern", ask("crm.set", `{"phone":"[PHONE_1]","to":"[EMAIL_1]"}`), "[PHONE_1]", "!error", "!4155552671")
	wantAll(t, "what does not fit", ask("crm.set", `{"phone":"[EMAIL_1]"}`), "error: wrong arguments", "!ann@")
	wantAll(t, "forged", ask("web.keys", "{}"), "the title is Blue, [TEXT_", "![EMAIL_2]")
	if got := ask("web.set", `{"phone":1,"to":"@[EMAIL_1]"}`); !strings.Contains(got, "[TEXT_") || strings.Contains(got, "ann@") {
		t.Errorf("a tool that gets no values: %s", got)
	}
	wantAll(t, "a tool of another upstream that gets values", ask("web.echo", `{"a":"[EMAIL_1]"}`), "[EMAIL_1]", "!ann@")

	// To others they are unknown.
	for _, other := range []context.Context{t.Context(), tool.WithPrincipal(ctx, "bob"), tool.WithSession(ctx, "2")} {
		wantAll(t, "another one's token", callAs(other, t, g, "crm.echo", `{"to":"[EMAIL_1] [EMAIL_2]"}`), "error: unknown token [EMAIL_1]", "!ann@", "!bob@")
	}
	for _, r := range log.list {
		r.Attrs(func(a slog.Attr) bool {
			if strings.Contains(a.Value.String(), "ann@") || strings.Contains(a.Value.String(), "O'Neil") {
				t.Errorf("the log has %v", a)
			}
			return true
		})
	}
}

// An upstream without a mode of its own, which gets values, does not say them to the program.
func TestPrivacyEcho(t *testing.T) {
	g, _ := openPrivate(t, config.Privacy{Mode: config.PrivacyOff, RestoreTo: []string{"*"}}, func(cfg *config.Config) {
		for i := range cfg.Upstreams {
			if cfg.Upstreams[i].ID == "crm" {
				cfg.Upstreams[i].Privacy = config.PrivacyTokenize
			}
		}
	})
	wantAll(t, "tokens", callAs(t.Context(), t, g, "crm.get", "{}"), "[NAME_1]", "[EMAIL_1]")
	wantAll(t, "echo", callAs(t.Context(), t, g, "web.echo", `{"q":"Hi [NAME_1], [EMAIL_1], [PHONE_1]"}`), "Hi [NAME_1], [EMAIL_1], [PHONE_1", "!ann@", "!4155552671", "!O'Neil")
	wantAll(t, "off", callAs(t.Context(), t, g, "web.page", "{}"), "bob@corp.example", "4111 1111 1111 1111")
	wantAll(t, "forged", callAs(t.Context(), t, g, "web.keys", "{}"), "[TEXT_2] [TEXT_3]", "![email_1]")
}

// A name is looked for in prose once a key said that it is one, also in what stood before.
func TestPrivacyNames(t *testing.T) {
	g, _ := openPrivate(t, config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"*"}}, nil)
	wantAll(t, "the same result", callAs(t.Context(), t, g, "crm.letter", "{}"), "[NAME_1]'s letter", `"Yours, [NAME_1]"`, `"full_name":"[NAME_1]"`, "!O'Neil")
	wantAll(t, "another's", callAs(t.Context(), t, g, "web.echo", `{"a":"[NAME_1] and Ann Other"}`), "[NAME_1] and Ann Other", "!O'Neil")
	other := tool.WithSession(t.Context(), "2")
	wantAll(t, "another session", callAs(other, t, g, "crm.echo", `{"a":"Ann O'Neil"}`), "Ann O'Neil")
	wantAll(t, "another session, later", callAs(other, t, g, "crm.letter", "{}")+callAs(other, t, g, "crm.echo", `{"a":"Ann O'Neil"}`), `{"a":"[NAME_101]"}`, "!O'Neil")
}

func TestPrivacyModes(t *testing.T) {
	g, log := openPrivate(t, config.Privacy{Mode: config.PrivacyDetect, Fields: map[string][]string{"web.*": {"$.note"}}}, func(cfg *config.Config) {
		for i := range cfg.Upstreams {
			if cfg.Upstreams[i].ID == "web" {
				cfg.Upstreams[i].Privacy = config.PrivacyBlock
			}
		}
	})
	wantAll(t, "detect", callAs(t.Context(), t, g, "crm.page", "{}"), "ann@corp.example", "bob@corp.example")
	found := log.find("personal data in a result")
	if len(found) != 1 || found[0]["found"] != "1 card, 3 email" || found[0]["tool"] != "crm.page" {
		t.Errorf("logged %v", found)
	}
	wantAll(t, "block", callAs(t.Context(), t, g, "web.get", "{}"), "error: the result of web.get has personal data (1 email, 1 field, 1 name, 1 phone), which the settings block", "!ann@")
	wantAll(t, "nothing to block", callAs(t.Context(), t, g, "web.echo", `{"a":"b"}`), `{"a":"b"}`)
}

func TestSanitize(t *testing.T) {
	g, _ := openPrivate(t, config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"crm.*"}}, nil)
	clean, found, err := g.Privacy.Mask(t.Context(), "mail ann@corp.example, [EMAIL_7]")
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := g.Privacy.Mask(t.Context(), clean)
	if clean != "mail [EMAIL_1], [TEXT_1]" || again != clean || found != "1 email" {
		t.Errorf("%q, %q, %q", clean, again, found)
	}
	_, err = g.Privacy.Unmask(t.Context(), clean)
	wantError(t, err, tool.Denied, "keep personal data from models")
	cfg := config.Default()
	cfg.Privacy = config.Privacy{RestoreTo: []string{"model"}}
	if err := g.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	if text, err := g.Privacy.Unmask(t.Context(), clean); err != nil || text != "mail ann@corp.example, [EMAIL_7]" {
		t.Errorf("%q %v", text, err)
	}
}

// A token in a conversation that is older than the gateway, or of another session, never means another value.
func TestTokensOutliveNobody(t *testing.T) {
	dir := t.TempDir()
	crm := newSite(t, people)
	seen := map[string]bool{}
	for run := range 3 {
		records, err := store.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := settings(map[string]*site{"crm": crm})
		cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"*"}}
		g, err := gateway.Open(cfg, &gateway.Options{Records: records})
		if err != nil {
			t.Fatal(err)
		}
		g.Catalog.WaitConnected(t.Context())
		for _, session := range []string{"", "s1"} {
			ctx := tool.WithSession(tool.WithPrincipal(t.Context(), "ann"), session)
			page := callAs(ctx, t, g, "crm.page", "{}")
			token := page[strings.Index(page, "[EMAIL_"):]
			token = token[:strings.IndexByte(token, ']')+1]
			if seen[token] || token == "" {
				t.Errorf("run %d, session %q: %s was given before", run, session, token)
			}
			for old := range seen {
				wantAll(t, "an old token", callAs(ctx, t, g, "crm.echo", `{"to":"`+old+`"}`), "error: unknown token "+old, "!ann@", "!bob@")
			}
			seen[token] = true
		}
		if err := errors.Join(g.Close(), records.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if !seen["[EMAIL_1]"] || !seen["[EMAIL_501]"] {
		t.Errorf("tokens are %v", seen)
	}
}
