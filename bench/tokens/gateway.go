package main

import (
	"context"
	"fmt"

	"sallyport/bench/agent"
	"sallyport/bench/harness"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/tool"
)

// gatewayClient is a gateway in front of catalogues.
type gatewayClient struct {
	*harness.Instance
	ids map[wire]tool.ID
}

// wire is a tool by its wire names.
type wire struct{ upstream, name string }

func openGateway(ctx context.Context, catalogues []agent.Catalogue) (*gatewayClient, error) {
	var servers []harness.Server
	for _, c := range catalogues {
		servers = append(servers, harness.Server{Name: c.Name, Handler: c})
	}
	d, err := harness.Open(ctx, servers)
	if err != nil {
		return nil, err
	}
	f := &gatewayClient{d, map[wire]tool.ID{}}
	for _, t := range d.Catalog.Tools() {
		f.ids[wire{t.ID.Upstream, t.Wire}] = t.ID
	}
	return f, nil
}

// unlimitedBudget is a budget that truncates nothing.
const unlimitedBudget = 1 << 20

// describe returns what a search for a tool by its name prints when it finds only that one.
func (f *gatewayClient) describe(ctx context.Context, id tool.ID, way variant) (string, error) {
	found, err := f.Searcher.Search(ctx, toolsearch.Request{Query: id.String(), Upstream: id.Upstream, Detail: way.detail, Language: way.language, Limit: 1, Budget: unlimitedBudget})
	if err != nil {
		return "", err
	}
	if len(found.Tools) != 1 || found.Tools[0].ID != id {
		return "", fmt.Errorf("a search for %s does not find it first", id)
	}
	found.Total, found.Weak, found.Quarantined, found.Upstreams = 1, false, nil, nil
	return found.Text(), nil
}
