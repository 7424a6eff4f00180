package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

const benchArgs = `{"city":"Lisbon","days":3}`

// BenchmarkCall is one call of a server in this process over streamable HTTP:
// through Gateway.Call, without a record and with one, and through nothing but the SDK's client. The server and
// its garbage are in both. The revision is pinned by what the server speaks.
func BenchmarkCall(b *testing.B) {
	for _, modern := range []bool{false, true} {
		name := map[bool]string{false: "sessions", true: "stateless"}[modern]
		url := benchSite(b, modern)
		b.Run(name+"/sdk", func(b *testing.B) { benchSDK(b, url) })
		b.Run(name+"/gateway", func(b *testing.B) { benchGateway(b, url, nil) })
		b.Run(name+"/on_record", func(b *testing.B) { benchGateway(b, url, &gateway.Options{DataDir: b.TempDir()}) })
	}
}

func benchSite(b *testing.B, modern bool) (url string) {
	b.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s := &site{Server: server}
	s.tool("forecast", "Tell the weather.", `"required":["city"],"properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}}`, echo)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: modern, JSONResponse: true}))
	b.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	return web.URL
}

func benchSDK(b *testing.B, url string) {
	b.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	testutil.Measure(b, func() error {
		_, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "forecast", Arguments: json.RawMessage(benchArgs)})
		return err
	})
}

func benchGateway(b *testing.B, url string, opts *gateway.Options) {
	b.Helper()
	cfg := settings(nil)
	cfg.Upstreams = append(cfg.Upstreams, upstreamOf("up", url))
	g := open(b, cfg, opts)
	g.Catalog.WaitConnected(b.Context())
	id := tool.ID{Upstream: "up", Name: "forecast"}
	testutil.Measure(b, func() error {
		_, err := g.Call(b.Context(), tool.Call{Tool: id, Args: json.RawMessage(benchArgs)})
		return err
	})
}
