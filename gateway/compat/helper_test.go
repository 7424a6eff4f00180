package compat_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/compat"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

// object is a JSON object.
type object = map[string]any

// fakeTool is a tool of an upstream of a test, with its result.
type fakeTool struct{ name, about, schema, result string }

// upstream is an MCP server with some tools.
func upstream(t *testing.T, name string, tools ...fakeTool) config.Upstream {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	for _, one := range tools {
		schema := one.schema
		if schema == "" {
			schema = `{"type":"object"}`
		}
		server.AddTool(&mcp.Tool{Name: one.name, Description: one.about, InputSchema: json.RawMessage(schema)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: one.result}}}, nil
			})
	}
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		_ = web.Config.Close() // open connections too, which Close alone would wait for
		web.Close()
	})
	return config.Upstream{Name: name, ID: name, URL: web.URL, Description: "the tools of " + name, Timeout: 5 * time.Second}
}

// open returns a gateway for the clients of another server.
func open(t *testing.T, cfg config.Config, opts gateway.Options) *gateway.Gateway {
	t.Helper()
	cfg.Sandbox.Runsc, cfg.Sandbox.Pool.Min, cfg.Sandbox.Pool.Max = testutil.Runsc(t), 0, 1 // none waits: a test starts those that it needs
	if opts.DataDir == "" {
		opts.DataDir = t.TempDir()
	}
	if opts.CacheDir == "" {
		opts.CacheDir = t.TempDir()
	}
	opts.Logger, opts.ConnectWait, opts.Snapshots = testutil.Logger(t), time.Hour, testutil.Snapshots()
	g, err := gateway.Open(&cfg, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	g.Catalog.WaitConnected(t.Context())
	return g
}

// partsOf returns the parts of a gateway that faces need.
func partsOf(g *gateway.Gateway) compat.Gateway {
	s := g.Service()
	return compat.Gateway{Programs: s, Files: s, Folders: s, Catalog: s, Search: s, Skills: s, Packages: s, Privacy: g.Privacy}
}

// client is an MCP client of the SDK.
type client struct {
	*mcp.ClientSession
	t *testing.T
}

// connect returns a client that sees the tools of another server.
func connect(t *testing.T, g *gateway.Gateway, face string) client {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	tools := mcpserver.New(g.Service(), &mcpserver.Options{Face: compat.New(face, partsOf(g))})
	t.Cleanup(tools.Close)
	server, err := tools.Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = server.Wait()
	})
	return client{session, t}
}

// call makes a call, and returns its answer, which must be one JSON object.
func (c client) call(name string, args object) object {
	c.t.Helper()
	text, failed := c.text(name, args)
	var said object
	if err := json.Unmarshal([]byte(text), &said); err != nil || failed {
		c.t.Fatalf("%s(%v): error %v: %s", name, args, failed, text)
	}
	return said
}

// text makes a call, and returns the text of its answer.
func (c client) text(name string, args object) (text string, failed bool) {
	c.t.Helper()
	result, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		c.t.Fatalf("%s(%v): %v", name, args, err)
	}
	block, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		c.t.Fatalf("%s: %#v", name, result.Content[0])
	}
	return block.Text, result.IsError
}

// has reports whether a JSON object has some members, with these values.
func (c client) has(said object, want object) {
	c.t.Helper()
	for name, value := range want {
		got, err := json.Marshal(said[name])
		expected, err2 := json.Marshal(value)
		if err != nil || err2 != nil || string(got) != string(expected) {
			c.t.Errorf("%s is %s, want %s, in %v", name, got, expected, said)
		}
	}
}
