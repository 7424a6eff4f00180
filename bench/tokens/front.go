package main

import (
	"context"
	"fmt"

	"sallyport/bench/agent"
	"sallyport/bench/harness"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/tool"
)

// front is a gateway in front of catalogues.
type front struct {
	*harness.Door
	ids map[wire]tool.ID
}

// wire is a tool by its wire names.
type wire struct{ upstream, name string }

func openFront(ctx context.Context, catalogues []agent.Catalogue) (*front, error) {
	var servers []harness.Server
	for _, c := range catalogues {
		servers = append(servers, harness.Server{Name: c.Name, Handler: c})
	}
	d, err := harness.Open(ctx, servers)
	if err != nil {
		return nil, err
	}
	f := &front{d, map[wire]tool.ID{}}
	for _, t := range d.Catalog.Tools() {
		f.ids[wire{t.ID.Upstream, t.Wire}] = t.ID
	}
	return f, nil
}

// enough is a budget that truncates nothing.
const enough = 1 << 20

// tell returns what a search for a tool by its name prints when it finds only that one.
func (f *front) tell(ctx context.Context, id tool.ID, way written) (string, error) {
	found, err := f.Searcher.Search(ctx, toolsearch.Request{Query: id.String(), Upstream: id.Upstream, Detail: way.detail, Language: way.language, Limit: 1, Budget: enough})
	if err != nil {
		return "", err
	}
	if len(found.Tools) != 1 || found.Tools[0].ID != id {
		return "", fmt.Errorf("a search for %s does not find it first", id)
	}
	found.Total, found.Weak, found.Quarantined, found.Upstreams = 1, false, nil, nil
	return found.Text(), nil
}
