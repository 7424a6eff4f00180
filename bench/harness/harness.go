// Package harness opens a real gateway in front of servers of this process, to measure the actual output of
// search_tools.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// Server is an MCP server over HTTP.
type Server struct {
	Name, About string
	Handler     http.Handler
}

// Instance is a gateway with a new user's settings, except that it learns nothing.
type Instance struct {
	*gateway.Gateway
	web *httptest.Server
}

// settleTime is how long the upstreams may take to connect.
const settleTime = time.Minute

// Open returns when all servers are connected, or have failed to be.
func Open(ctx context.Context, servers []Server) (*Instance, error) {
	mux := http.NewServeMux()
	d := &Instance{web: httptest.NewServer(mux)}
	cfg := config.Default()
	cfg.Search.Learn = false
	for i, s := range servers {
		path := fmt.Sprint("/", i)
		mux.Handle(path, s.Handler)
		cfg.Upstreams = append(cfg.Upstreams, config.Upstream{Name: s.Name, ID: tool.Identifier(s.Name), Description: s.About, URL: d.web.URL + path, Timeout: settleTime})
	}
	var err error
	if d.Gateway, err = gateway.Open(&cfg, &gateway.Options{ConnectWait: settleTime}); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.Catalog.WaitConnected(ctx)
	return d, nil
}

// Close closes the gateway, and then the servers.
func (d *Instance) Close() (err error) {
	if d.Gateway != nil {
		err = d.Gateway.Close()
	}
	_ = d.web.Config.Close() // open connections too, which Close alone would wait for
	d.web.Close()
	return err
}
