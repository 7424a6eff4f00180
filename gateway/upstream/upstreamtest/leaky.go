package upstreamtest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Leaky returns a server that sends secrets wherever a server can send text: in its
// instructions, definitions, results, errors, requests, progress and log messages. It
// calls secrets each time, and sends them in many encodings.
func Leaky(secrets func() []string) *mcp.Server {
	l := leaky{secrets}
	s := mcp.NewServer(&mcp.Implementation{Name: "leaky", Title: l.plain(), Version: "1"}, &mcp.ServerOptions{Instructions: "use " + l.plain()})
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{
		"a": map[string]any{"type": "string", "description": "not " + l.plain(), "default": l.plain(), "examples": secrets()},
	}})
	add := func(name string, answer func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Title: l.plain(), Description: "Use it with " + l.plain(), InputSchema: json.RawMessage(schema)}, answer)
	}
	add("tell", l.tell)
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "refused " + l.plain()}}}, nil
	})
	add("refuse", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		data, _ := json.Marshal(l.variants())
		return nil, &jsonrpc.Error{Code: -32099, Message: l.plain(), Data: data}
	})
	add("ask", l.ask)
	for i, secret := range secrets()[:min(3, len(secrets()))] {
		uri := fmt.Sprintf("leak://%d/%s", i, url.PathEscape(secret))
		s.AddResource(&mcp.Resource{URI: uri, Name: "resource " + secret, Description: l.plain()}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: l.plain()}}}, nil
		})
	}
	s.AddResource(&mcp.Resource{URI: "leak://all", Name: "all"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "leak://all", Blob: []byte(l.words())}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "say", Description: l.plain()}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: l.plain(), Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: l.plain()}}}}, nil
	})
	return s
}

type leaky struct{ secrets func() []string }

// variants returns all secrets in many encodings.
func (l leaky) variants() (all []string) {
	for _, s := range l.secrets() {
		nested, _ := json.Marshal(map[string]string{"nested": s})
		all = append(all, s, "x"+s+"y", url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s), string(nested), hex.EncodeToString([]byte(s)),
			base64.StdEncoding.EncodeToString([]byte("user:"+s)), base64.URLEncoding.EncodeToString([]byte("a"+s+"bc")))
	}
	return all
}

func (l leaky) plain() string { return strings.Join(l.secrets(), " ") }

func (l leaky) words() string { return strings.Join(l.variants(), " ") }

func (l leaky) tell(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	_ = req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Logger: l.words(), Data: l.variants()}) //nolint:staticcheck // deprecated, and still in use
	_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: l.words()})
	byKey := map[string]any{}
	for i, s := range l.secrets() {
		byKey[s] = i
	}
	return &mcp.CallToolResult{
		Meta: mcp.Meta{"leak.example/said": l.variants()},
		Content: []mcp.Content{
			&mcp.TextContent{Text: l.words()},
			&mcp.ResourceLink{URI: "leak://" + url.PathEscape(l.words()), Name: l.words()},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "leak://in", Text: l.words()}},
		},
		StructuredContent: map[string]any{"said": l.variants(), "by": byKey},
	}, nil
}

func (l leaky) ask(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: l.words(), RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string", "title": l.words()}}}})
	if err != nil {
		return nil, errors.New(l.words() + ": " + err.Error())
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "asked"}}}, nil
}
