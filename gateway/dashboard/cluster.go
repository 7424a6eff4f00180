package dashboard

import (
	"context"

	"sallyport/gateway/cluster"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Cluster has the gateways and workers of a cluster. Its methods are for operators, and their errors are *tool.Error.
type Cluster interface {
	Report(ctx context.Context) (cluster.Members, error)
	// Drain lets a worker take no more programs, Resume undoes that.
	Drain(ctx context.Context, worker string) error
	Resume(ctx context.Context, worker string) error
}

// clusterPath is the page about the cluster.
const clusterPath = "/ui/cluster"

// clusterPages are about the cluster.
type clusterPages struct{ *Dashboard }

// table returns the pages, none without a cluster.
func (d clusterPages) table() []page {
	if d.opts.Cluster == nil {
		return nil
	}
	return []page{
		newPage(clusterPath, "Cluster", "cluster", d.show).in(groupRecords, "Cluster").forOperators(),
		newAction(clusterPath+"/workers/{name}", "Cluster", tool.ScopeOperate, d.order).forOperators(),
	}
}

// ClusterPage is the state of the cluster.
type ClusterPage struct{ cluster.Members }

func (d clusterPages) show(r *request) (any, error) {
	members, err := d.opts.Cluster.Report(r.Context())
	return ClusterPage{members}, err
}

// order tells a worker to take no more programs, or to take programs again.
func (d clusterPages) order(r *request) (string, error) {
	name := r.PathValue("name")
	switch shown := sanitize.Line(name, 100); r.PostFormValue("do") {
	case "drain":
		return clusterPath, r.sayIf(d.opts.Cluster.Drain(r.Context(), name), shown+" takes no new programs. Those that run go on.")
	case "resume":
		return clusterPath, r.sayIf(d.opts.Cluster.Resume(r.Context(), name), shown+" takes programs again.")
	}
	return "", &tool.Error{Kind: tool.Invalid, Message: "a worker can be drained or resumed"}
}
