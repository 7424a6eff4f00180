package mcpserver_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// callerRecorder notes on whose behalf there was a search and an execution.
type callerRecorder struct {
	upstreams
	mu  sync.Mutex
	all []string
}

func (h *callerRecorder) note(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, tool.Principal(ctx)+"/"+tool.Session(ctx))
}

func (h *callerRecorder) Search(ctx context.Context, _ toolsearch.Request) (toolsearch.Found, error) {
	h.note(ctx)
	return toolsearch.Found{}, nil
}

func (h *callerRecorder) Execute(ctx context.Context, _ execution.Program) (execution.Result, error) {
	h.note(ctx)
	return execution.Result{}, &tool.Error{Kind: tool.Failed, Message: "it ran"}
}

// TestWhoSearches: the gateway knows the searches of a session from those of others,
// and a client without sessions is one for each principal.
func TestWhoSearches(t *testing.T) {
	t.Parallel()
	h := &callerRecorder{}
	settings := config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: config.Secrets{"ci": "s3cret"}}
	url := serve(t, newDirectOn(t, h, false), &siteOptions{Settings: settings, Tools: mcpserver.New(h, nil)}) + "/mcp"
	token := "Authorization: Bearer s3cret"
	var want []string
	for range 2 {
		resp, _ := request(t, "POST", url, initializeBody, token)
		session := resp.Header.Get("Mcp-Session-Id")
		want = append(want, "token:ci/"+session, "token:ci/"+session)
		for _, call := range []string{`{"name":"search_tools","arguments":{"query":"x"}}`, `{"name":"execute_code","arguments":{"code":"x"}}`} {
			request(t, "POST", url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+call+`}`, token, "Mcp-Session-Id: "+session)
		}
	}
	open := serve(t, newDirectOn(t, h, false), &siteOptions{Tools: mcpserver.New(h, nil)}) + "/mcp"
	c := (&direct{t: t, url: open}).dialogue("2026-07-28")
	c.ask("tools/call", `{"name":"search_tools","arguments":{"query":"x"}}`)
	c.ask("tools/call", `{"name":"execute_code","arguments":{"code":"x"}}`)
	want = append(want, "/", "/")
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.all, want) || want[0] == want[2] {
		t.Errorf("heard %q, want %q", h.all, want)
	}
}
