package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/firsttry/fixture"
	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// instance is a real gateway in front of the servers of a world, and a client of it.
type instance struct {
	gateway *gateway.Gateway
	tools   *mcpserver.Tools
	client  *mcp.ClientSession
	web     *httptest.Server
}

// setup is how the gateway is opened.
type setup struct {
	Runsc, Snapshots, DataDir string
	// Checkers is a node_modules folder with pyright and typescript; with "" the gateway checks no types.
	Checkers string
}

// connectWait is how long the servers may take to connect.
const connectWait = time.Minute

// open opens the gateway with the settings of a new user, except that it learns nothing, so that no case depends on
// those before it.
func open(ctx context.Context, w *fixture.World, s setup) (_ *instance, err error) {
	in := &instance{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	cfg := config.Default()
	cfg.Observe, cfg.Search.Learn = false, false
	cfg.Sandbox.Runsc = s.Runsc
	cfg.Sandbox.Pyright, cfg.Sandbox.Tsc = "no-checker", "no-checker"
	if s.Checkers != "" {
		cfg.Sandbox.Pyright, cfg.Sandbox.Tsc = s.Checkers+"/.bin/pyright", s.Checkers+"/.bin/tsc"
	}
	cfg.Upstreams = in.serve(w)
	if in.gateway, err = gateway.Open(&cfg, &gateway.Options{ConnectWait: connectWait, DataDir: s.DataDir, Snapshots: s.Snapshots}); err != nil {
		return in, fmt.Errorf("open gateway: %w", err)
	}
	in.gateway.Catalog.WaitConnected(ctx)
	in.tools = mcpserver.New(in.gateway.Service(), nil)
	return in, in.connect(ctx)
}

func (in *instance) serve(w *fixture.World) (list []config.Upstream) {
	mux := http.NewServeMux()
	in.web = httptest.NewServer(mux)
	for _, s := range w.Servers() {
		mux.Handle("/"+s.Name, s)
		list = append(list, config.Upstream{Name: s.Name, ID: tool.Identifier(s.Name), Description: s.About, URL: in.web.URL + "/" + s.Name, Timeout: connectWait})
	}
	return list
}

func (in *instance) connect(ctx context.Context) (err error) {
	server, client := mcp.NewInMemoryTransports()
	if _, err := in.tools.Connect(ctx, server, nil); err != nil {
		return err
	}
	in.client, err = mcp.NewClient(&mcp.Implementation{Name: "firsttry", Version: "1"}, nil).Connect(ctx, client, nil)
	return err
}

// call implements [runner].
func (in *instance) call(ctx context.Context, name string, arguments map[string]any) (text string, failed bool, err error) {
	result, err := in.client.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", false, err
	}
	var parts []string
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n"), result.IsError, nil
}

func (in *instance) close() (err error) {
	if in.client != nil {
		err = in.client.Close()
	}
	if in.tools != nil {
		in.tools.Close()
	}
	if in.gateway != nil {
		err = errors.Join(err, in.gateway.Close())
	}
	_ = in.web.Config.Close() // open connections too, which Close alone would wait for
	in.web.Close()
	return err
}
