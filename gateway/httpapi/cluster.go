package httpapi

import (
	"context"
	"net/http"

	"sallyport/gateway/cluster"
	"sallyport/internal/tool"
)

// Cluster shows the gateways and workers of a cluster. *cluster.Cluster implements it.
type Cluster interface {
	// Report is for operators.
	Report(ctx context.Context) (cluster.Members, error)
}

func (a *api) cluster(r *http.Request) (cluster.Members, error) {
	if a.opts.Cluster == nil {
		return cluster.Members{}, &tool.Error{Kind: tool.NotFound, Message: "this gateway is in no cluster", Hint: "one with store: {url: ...} in upstreams.yaml is"}
	}
	return a.opts.Cluster.Report(r.Context())
}
