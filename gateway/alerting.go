package gateway

import (
	"context"

	"sallyport/gateway/alerts"
	"sallyport/gateway/execution"
	"sallyport/internal/approval"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// openAlerts opens the alerts. The functions that they get are called after Open.
func (g *Gateway) openAlerts(in *store.Store) (err error) {
	g.Alerts, err = alerts.Open(alerts.Options{
		Settings: &g.cfg, Logger: g.log, Records: in, Site: g.opts.Site, Title: g.titleOf, Redact: g.opts.secrets.For("").Text, Count: g.Telemetry.RecordAlert,
		Answer: func(ctx context.Context, id string, answer approval.Answer) (approval.Approval, error) {
			return g.Approver.Answer(ctx, id, answer)
		},
	})
	return err
}

// titleOf returns the title of a running program, "" for an unknown one. Personal data is tokens.
func (g *Gateway) titleOf(id string) string {
	live, ok := g.Executor.LiveOf(tool.WithOperator(context.Background(), "alerts"), id)
	if !ok {
		return ""
	}
	return g.Privacy.Redact(execution.Title(live.Code, nil))
}

// watchForAlerts tells of upstreams and of quarantined tools, if the process is a server.
func (g *Gateway) watchForAlerts() {
	if g.opts.Purpose == "serve" {
		g.Alerts.Watch(g.upstreamStates, g.heldTools)
	}
}

func (g *Gateway) upstreamStates() (all []alerts.Upstream) {
	for _, u := range g.Catalog.Upstreams() {
		all = append(all, alerts.Upstream{ID: u.ID, Problem: u.Problem()})
	}
	return all
}

func (g *Gateway) heldTools() (all []alerts.Held) {
	for id, hold := range g.Catalog.QuarantinedTools() {
		if hold.Rejected == "" {
			all = append(all, alerts.Held{Upstream: id.Upstream, Tool: id.String(), Reason: hold.Reason})
		}
	}
	return all
}
