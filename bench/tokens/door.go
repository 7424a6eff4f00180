package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"sallyport/bench/agent"
	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// door is a real gateway in front of catalogues, so that what is counted of search_tools is what it prints.
type door struct {
	gateway *gateway.Gateway
	web     *httptest.Server
	ids     map[wire]tool.ID
}

// wire is what an upstream calls a tool.
type wire struct{ upstream, name string }

// settleTime is how long the upstreams may take to connect.
const settleTime = time.Minute

func openDoor(ctx context.Context, catalogues []agent.Catalogue) (*door, error) {
	d := &door{ids: map[wire]tool.ID{}}
	mux := http.NewServeMux()
	d.web = httptest.NewServer(mux)
	cfg := config.Default()
	cfg.Search.Learn = false
	for _, c := range catalogues {
		mux.Handle("POST /"+c.Name, c)
		cfg.Upstreams = append(cfg.Upstreams, config.Upstream{Name: c.Name, ID: tool.Identifier(c.Name), URL: d.web.URL + "/" + c.Name, Timeout: settleTime})
	}
	var err error
	if d.gateway, err = gateway.Open(&cfg, &gateway.Options{Settle: settleTime}); err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.gateway.Settle(ctx)
	for _, t := range d.gateway.Tools() {
		d.ids[wire{t.ID.Upstream, t.Wire}] = t.ID
	}
	return d, nil
}

func (d *door) close() (err error) {
	if d.gateway != nil {
		err = d.gateway.Close()
	}
	_ = d.web.Config.Close() // open connections too, which Close alone would wait for
	d.web.Close()
	return err
}

// enough is a budget that holds back nothing.
const enough = 1 << 20

// tell is what a search for a tool by its name prints where it finds that one alone.
func (d *door) tell(ctx context.Context, id tool.ID, way written) (string, error) {
	found, err := d.gateway.Search(ctx, gateway.Search{Query: id.String(), Upstream: id.Upstream, Detail: way.detail, Language: way.language, Limit: 1, Budget: enough})
	if err != nil {
		return "", err
	}
	if len(found.Tools) != 1 || found.Tools[0].ID != id {
		return "", fmt.Errorf("a search for %s does not find it first", id)
	}
	found.Total, found.Weak, found.Quarantined, found.Upstreams = 1, false, nil, nil
	return found.Text(), nil
}
