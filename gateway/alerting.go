package gateway

import (
	"context"

	"sallyport/gateway/alerts"
	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/internal/approval"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// openAlerts opens the alerts. The functions that they get are called after Open.
func (g *Gateway) openAlerts(in *store.Store) (err error) {
	g.Alerts, err = alerts.Open(alerts.Options{
		Settings: g.Reloader.Current(), Logger: g.log, Records: in, Site: g.opts.Site, Title: func(id string) string { return g.Privacy.Redact(titleOf(g.Executor, id)) }, Redact: g.opts.secrets.For("").Text, Count: g.Telemetry.RecordAlert,
		Answer: func(ctx context.Context, id string, answer approval.Answer) (approval.Approval, error) {
			return g.Approver.Answer(ctx, id, answer)
		},
	})
	return err
}

// titleOf returns the title of a running program, "" for an unknown one.
func titleOf(e *executor.Executor, id string) string {
	live, ok := e.LiveOf(tool.WithOperator(context.Background(), "alerts"), id)
	if !ok {
		return ""
	}
	return execution.Title(live.Code, nil)
}

// upstreamStates returns what alerts say of upstreams.
func upstreamStates(c *catalog.Catalog) (all []alerts.Upstream) {
	for _, u := range c.Upstreams() {
		all = append(all, alerts.Upstream{ID: u.ID, Problem: u.Problem()})
	}
	return all
}

// heldTools returns the tools in quarantine that nobody has rejected.
func heldTools(c *catalog.Catalog) (all []alerts.Held) {
	for id, hold := range c.QuarantinedTools() {
		if hold.Rejected == "" {
			all = append(all, alerts.Held{Upstream: id.Upstream, Tool: id.String(), Reason: hold.Reason})
		}
	}
	return all
}
