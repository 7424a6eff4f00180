package topcmd

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// pollTimeout bounds one poll of the gateways, slowInterval is the least interval of requests that are expensive for them.
const pollTimeout, slowInterval = 3 * time.Second, 10 * time.Second

// topView is the state of the gateways of a data directory at a time; top --json prints it.
type topView struct {
	At time.Time `json:"at"`
	// Gateways are those that answered; Silent is how many did not.
	Gateways []topGateway `json:"gateways"`
	Silent   int          `json:"silent,omitempty"`
	// Upstreams of all of them, by name.
	Upstreams []topUpstream `json:"upstreams"`
	// Executions are running or queued, the oldest first. Ended are the last that ended, the newest first.
	Executions []httpapi.LiveExecution    `json:"executions"`
	Ended      []httpapi.ExecutionSummary `json:"ended"`
	// Approvals is the number of pending approvals.
	Approvals int `json:"approvals"`
	// Today sums up executions since midnight, local time, with the resolution of an hour.
	Today history.SavingsStep `json:"today"`
}

// topGateway is a gateway that answered.
type topGateway struct {
	Version  string `json:"version"`
	Status   string `json:"status"`
	UptimeMS int64  `json:"uptime_ms"`
}

// topUpstream is an upstream as the gateways see it.
type topUpstream struct {
	ID string `json:"id"`
	// Status is its state; if the gateways differ, all their states, separated by commas.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Tools  int    `json:"tools"`
	Held   int    `json:"held,omitempty"`
}

// poller polls the gateways.
type poller struct {
	*app
	last     topView
	lastSlow time.Time // of the last expensive requests
}

// poll polls every gateway. A gateway that does not answer is only counted, as it may just have ended.
func (t *poller) poll(ctx context.Context) (topView, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	v := topView{At: time.Now(), Gateways: []topGateway{}, Upstreams: []topUpstream{}, Executions: []httpapi.LiveExecution{}, Ended: []httpapi.ExecutionSummary{}}
	err := t.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		slow := t.slowDue()
		if !slow {
			v.Ended, v.Today = t.last.Ended, t.last.Today
		}
		for _, gate := range c.All {
			if err := v.add(ctx, gate, slow); err != nil {
				if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
					v.Silent++
					continue
				}
				return ctx.Err()
			}
		}
		return nil
	})
	v.sort()
	if t.ended(v) {
		t.lastSlow = v.At.Add(time.Second - slowInterval) // to show ended executions soon
	}
	t.last = v
	return v, err
}

// slowDue reports whether it is time for the expensive requests.
func (t *poller) slowDue() bool {
	if time.Since(t.lastSlow) < slowInterval {
		return false
	}
	t.lastSlow = time.Now()
	return true
}

// ended reports whether an execution has ended since the last view.
func (t *poller) ended(now topView) bool {
	return slices.ContainsFunc(t.last.Executions, func(before httpapi.LiveExecution) bool {
		return !slices.ContainsFunc(now.Executions, func(e httpapi.LiveExecution) bool { return e.ID == before.ID })
	})
}

// add adds the state of one gateway.
func (v *topView) add(ctx context.Context, gate *http.Client, slow bool) error {
	var health httpapi.Health
	if err := cli.DoJSON(ctx, gate, http.MethodGet, "/health", nil, &health); err != nil {
		return err
	}
	v.Gateways = append(v.Gateways, topGateway{Version: health.Version, Status: health.Status, UptimeMS: health.UptimeMS})
	for _, up := range health.Upstreams {
		v.merge(topUpstream{ID: up.ID, Status: up.Status, Reason: up.Reason, Tools: up.Tools, Held: up.Held})
	}
	var live httpapi.LiveList
	if err := ignoreNotFound(cli.DoJSON(ctx, gate, http.MethodGet, "/executions/live", nil, &live)); err != nil {
		return err
	}
	v.Executions = append(v.Executions, live.Executions...)
	var approvals httpapi.ApprovalList
	if err := cli.DoJSON(ctx, gate, http.MethodGet, "/approvals", nil, &approvals); err != nil {
		return err
	}
	for _, one := range approvals.Approvals {
		if one.State == approval.Waiting {
			v.Approvals++
		}
	}
	if !slow {
		return nil
	}
	return v.addRecords(ctx, gate)
}

// addRecords adds what a gateway must read from its records.
func (v *topView) addRecords(ctx context.Context, gate *http.Client) error {
	var ended httpapi.ExecutionList
	if err := cli.DoJSON(ctx, gate, http.MethodGet, "/executions?limit=30", nil, &ended); err != nil {
		return err
	}
	v.Ended = append(v.Ended, ended.Executions...)
	year, month, day := time.Now().Date()
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.Local)
	var savings httpapi.SavingsReport
	if err := ignoreNotFound(cli.DoJSON(ctx, gate, http.MethodGet, "/savings?days=1", nil, &savings)); err != nil {
		return err
	}
	for _, step := range savings.Steps {
		if !step.Begin.Before(midnight) {
			v.Today.Executions += step.Executions
			v.Today.Failed += step.Failed
			v.Today.Calls += step.Calls
			v.Today.Answered += step.Answered
			v.Today.Read += step.Read
		}
	}
	return nil
}

// ignoreNotFound ignores not found errors, which gateways of older versions return for unknown endpoints.
func ignoreNotFound(err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok && e.Kind == tool.NotFound {
		return nil
	}
	return err
}

// merge adds the state of an upstream in one gateway.
func (v *topView) merge(up topUpstream) {
	i := slices.IndexFunc(v.Upstreams, func(there topUpstream) bool { return there.ID == up.ID })
	if i < 0 {
		v.Upstreams = append(v.Upstreams, up)
		return
	}
	there := &v.Upstreams[i]
	if there.Status != up.Status {
		there.Status += "," + up.Status
	}
	there.Reason = cmp.Or(there.Reason, up.Reason)
	there.Tools, there.Held = max(there.Tools, up.Tools), max(there.Held, up.Held)
}

func (v *topView) sort() {
	slices.SortFunc(v.Upstreams, func(x, y topUpstream) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortStableFunc(v.Executions, func(x, y httpapi.LiveExecution) int { return x.Started.Compare(y.Started) })
	slices.SortStableFunc(v.Ended, func(x, y httpapi.ExecutionSummary) int { return y.Started.Compare(x.Started) })
	v.Ended = slices.CompactFunc(v.Ended, func(x, y httpapi.ExecutionSummary) bool { return x.ID == y.ID })
}
