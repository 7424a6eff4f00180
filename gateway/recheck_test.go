package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// TestArgumentsOfTodayAreNotRefused: calls that fit the definition of today, but
// not the one that the cache kept, while the upstream is being connected.
func TestArgumentsOfTodayAreNotRefused(t *testing.T) {
	var parameter atomic.Value
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		s := &site{Server: mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)}
		name := parameter.Load().(string)
		s.tool("get", "Get.", `"additionalProperties":false,"required":["`+name+`"],"properties":{"`+name+`":{"type":"string"}}`, echo)
		s.AddPrompt(&mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: name}}}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})
		return s.Server
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	cfg := settings(nil)
	cfg.Upstreams = append(cfg.Upstreams, upstreamOf("up", web.URL))
	for round := range 12 {
		opts := &gateway.Options{CacheDir: filepath.Join(t.TempDir(), "cache")}
		parameter.Store("before")
		fill(t, cfg, opts)
		parameter.Store("now")
		g := open(t, cfg, opts)
		var callers sync.WaitGroup
		ended := make(chan struct{})
		for i := range 16 {
			callers.Go(func() {
				for done := false; !done; {
					select {
					case <-ended:
						done = true
					default:
					}
					id, args := tool.ID{Upstream: "up", Name: "get"}, `{"now":"x"}`
					if i%2 == 1 {
						id.Name, args = tool.GetPrompt, `{"name":"p","arguments":{"now":"x"}}`
					}
					if _, err := g.Call(t.Context(), tool.Call{Tool: id, Args: json.RawMessage(args)}); err != nil {
						t.Errorf("round %d, %s: %v", round, id, err)
						return
					}
					if i == 0 {
						close(ended)
						return
					}
				}
			})
		}
		callers.Wait()
	}
}
