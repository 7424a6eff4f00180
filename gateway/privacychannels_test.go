package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// gossip is an upstream that says a text again by each way that MCP has.
func gossip(s *site) {
	s.tool("person", "Get a person.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]string{"email": "ottilie.q@corp.example"}}
	})
	heard := ""
	about := &mcp.Tool{Name: "tell", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":true}`)}
	s.AddTool(about, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Text string }
		_ = json.Unmarshal(req.Params.Arguments, &in)
		heard = in.Text
		session := req.Session
		_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: "progress " + heard})
		_ = session.Log(ctx, &mcp.LoggingMessageParams{Level: "emergency", Logger: "log of " + heard, Data: map[string]any{"said": heard, "list": []string{backwards(heard)}}}) //nolint:staticcheck // servers of today log
		_, elicited := session.Elicit(ctx, &mcp.ElicitParams{Message: "elicitation " + heard, RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"a":{"type":"string","title":` + quote(heard) + `,"description":` + quote(heard) + `,"default":` + quote(heard) + `}}}`)})
		//nolint:staticcheck // servers of today sample
		_, sampled := session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 5, SystemPrompt: "system " + heard,
			Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "sampling " + heard}}}})
		r := text("errors: " + errorText(elicited) + errorText(sampled))
		r.Meta = mcp.Meta{"corp.example/said": heard}
		r.IsError = strings.HasSuffix(heard, "!")
		return r, nil
	})
	s.AddResource(&mcp.Resource{URI: "memo://heard", Name: "heard"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "memo://heard", Text: "resource " + heard}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "heard"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "about " + heard, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "prompt " + heard}}}}, nil
	})
}

func quote(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// listener is a peer that notes all that it hears, and answers what it is asked.
type listener struct {
	mu    sync.Mutex
	heard strings.Builder
}

func (l *listener) note(method string, params json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard.WriteString(method + " " + string(params) + "\n")
}

func (l *listener) Notify(method string, params json.RawMessage) { l.note(method, params) }

func (l *listener) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	l.note(method, params)
	if method == "elicitation/create" {
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"no"}}`), nil
}

func (l *listener) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard.String()
}

// TestEchoByEveryWay: what an upstream was given comes back as a token by whatever way it says it, glued or not, in the call and after it.
func TestEchoByEveryWay(t *testing.T) {
	t.Parallel()
	cfg := settings(map[string]*site{"crm": newSite(t, gossip)})
	cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize}
	g := open(t, cfg, &gateway.Options{PeerRequests: true})
	g.Catalog.WaitConnected(t.Context())
	ctx := tool.WithSession(tool.WithPrincipal(t.Context(), "ann"), "1")
	millCall(ctx, t, g, "crm.person", nil)
	leaks := func(what, said string) {
		t.Helper()
		for _, read := range decodings(said) {
			if low := strings.ToLower(read); strings.Contains(low, "ottilie") || strings.Contains(low, "eilitto") {
				t.Errorf("%s says %s", what, said)
				return
			}
		}
	}
	for _, glue := range []string{"@", "a@b", "@!"} {
		peer := &listener{}
		args, _ := json.Marshal(map[string]string{"text": strings.ReplaceAll(glue, "@", "[EMAIL_1]")})
		result, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "crm", Name: "tell"}, Args: args, Peer: peer,
			Params: map[string]json.RawMessage{"_meta": json.RawMessage(`{"progressToken":"p"}`)}})
		said := peer.text()
		leaks("result of "+glue, result.Text()+string(result.Raw)+errorText(err))
		leaks("peer of "+glue, said)
		wantAll(t, glue, said, "progress ", "elicitation/create", "sampling/createMessage", "[EMAIL_")
		for name, call := range map[string]tool.Call{
			"resource": {Tool: tool.ID{Upstream: "crm", Name: tool.ReadResource}, Args: json.RawMessage(`{"uri":"memo://heard"}`)},
			"prompt":   {Tool: tool.ID{Upstream: "crm", Name: tool.GetPrompt}, Args: json.RawMessage(`{"name":"heard"}`)},
		} {
			result, err := g.Call(ctx, call)
			got := result.Text() + string(result.Structured) + string(result.Raw) + errorText(err)
			leaks(name, got)
			wantAll(t, name, got, "[EMAIL_", name)
		}
	}
}

// TestPartsSentApart is the border of docs/how-to/privacy.md: parts that come back in later calls are not found, whole values are.
func TestPartsSentApart(t *testing.T) {
	t.Parallel()
	call := openMill(t, config.PrivacyTokenize)
	var tokens map[string]string
	if err := json.NewDecoder(strings.NewReader(call("crm.person", nil))).Decode(&tokens); err != nil {
		t.Fatal(err)
	}
	token := tokens["street_address"]
	call("web.keep", map[string]any{"text": token})
	wantAll(t, "whole, later", call("web.kept", map[string]any{"form": "plain"}), token, "!Main")
	for _, form := range []string{"halves", "signs"} {
		wantAll(t, form+", same call", call("web.mill", map[string]any{"form": form, "text": token}), "!Springfield", "!12 Main")
	}
	wantAll(t, "a part, same call", call("web.mill", map[string]any{"form": "cut", "text": token}), "!Main Street, Spring")
	wantAll(t, "a part, later: not promised", call("web.kept", map[string]any{"form": "cut"}), "Main Street, Springfie")
	wantAll(t, "pieces, later: not promised", call("web.kept", map[string]any{"form": "halves"}), "12 Main Stree")
}
