package dashboard

import (
	"context"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/catalog"
	"sallyport/gateway/history"
	"sallyport/gateway/reload"
	"sallyport/internal/approval"
)

// Overview is what the first page shows.
type Overview struct {
	Now  Now
	Plot Plot
	// Graphs is nil for a caller who is no operator.
	Graphs   *Graphs
	Savings  history.Savings
	Settings reload.Status
	// Connect shows how to connect a client while no program is on record; nil afterwards.
	Connect *ConnectPage
}

// Now is the part of it that changes from second to second.
type Now struct {
	// Upstreams is how many there are, Tools how many tools they have.
	Upstreams, Ready, Tools int
	// Unhealthy are upstreams that need attention.
	Unhealthy []catalog.Upstream
	// Waiting are the calls that wait for a person, Held how many definitions do.
	Waiting []approvals.Approval
	Held    int
	// Running is how many programs run now, or wait for their turn.
	Running int
}

// overviewDays is how far back the plot of the first page goes.
const overviewDays = 7

func (d *Dashboard) overview(r *request) (any, error) {
	now, err := d.now(r.Context())
	if err != nil {
		return nil, err
	}
	o := Overview{Now: now, Settings: d.service.Settings()}
	if o.Savings, err = d.savingsOf(r.Context(), overviewDays); err != nil {
		return nil, err
	}
	o.Plot = plot(o.Savings)
	if (connectPages{d}).isFirstRun(r, o) {
		connect, err := connectPages{d}.page("")
		if o.Connect = &connect; err != nil {
			return nil, err
		}
	}
	o.Graphs, err = graphPages{d}.graphs(r)
	return o, err
}

func (d *Dashboard) now(ctx context.Context) (Now, error) {
	n := Now{Running: len(d.service.Running(ctx))}
	for _, up := range d.service.Upstreams() {
		n.Upstreams++
		n.Tools += up.State.Tools
		n.Held += up.Held
		if up.Problem() == "" {
			n.Ready++
		}
		if up.Problem() != "" || up.Held > 0 {
			n.Unhealthy = append(n.Unhealthy, up)
		}
	}
	all, err := d.service.Approvals(ctx)
	for _, a := range all {
		if a.State == approval.Waiting {
			n.Waiting = append(n.Waiting, a)
		}
	}
	return n, err
}

// savingsOf adds up the days up to today, in UTC.
func (d *Dashboard) savingsOf(ctx context.Context, days int) (history.Savings, error) {
	today := time.Now().UTC().Truncate(day)
	return d.service.Savings(ctx, today.AddDate(0, 0, 1-days), day)
}

const day = 24 * time.Hour
