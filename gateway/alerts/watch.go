package alerts

import (
	"context"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/sleep"
)

// Upstream is the state of an upstream. Problem says why it is not available, "" if it is.
type Upstream struct{ ID, Problem string }

// Held is a tool that waits for review.
type Held struct{ Upstream, Tool, Reason string }

const (
	// pollEvery is the interval at which upstreams and quarantined tools are looked at.
	pollEvery = 5 * time.Second
	// Patience is how long an upstream is not available before an alert.
	Patience = time.Minute
)

// watcher knows the states of the last look.
type watcher struct {
	alerts *Alerts
	down   map[string]outage // by the ids of upstreams
	held   map[Held]bool
}

// outage is the time since which an upstream is not available, and whether an alert was sent.
type outage struct {
	since time.Time
	sent  bool
}

// Watch tells of upstreams that are not available and of quarantined tools, until Close. It calls both functions regularly.
func (a *Alerts) Watch(upstreams func() []Upstream, held func() []Held) {
	w := &watcher{a, map[string]outage{}, map[Held]bool{}}
	a.run(func(closing, _ context.Context) {
		for sleep.For(closing, pollEvery) == nil {
			w.lookAtUpstreams(upstreams())
			if a.wants(config.OnQuarantine) {
				w.lookAtTools(held())
			}
		}
	})
}

// lookAtUpstreams tells of each outage once, and once of its end.
func (w *watcher) lookAtUpstreams(all []Upstream) {
	now := map[string]outage{}
	for _, u := range all {
		before, was := w.down[u.ID]
		switch {
		case u.Problem == "" && before.sent:
			w.alerts.raise(upstreamEvent(typeAvailable, u, before.since))
		case u.Problem == "":
		case !was:
			now[u.ID] = outage{since: time.Now()}
		default:
			if !before.sent && time.Since(before.since) >= Patience {
				before.sent = true
				w.alerts.raise(upstreamEvent(typeUnavailable, u, before.since))
			}
			now[u.ID] = before
		}
	}
	w.down = now
}

// lookAtTools tells of tools that were not held before, by upstream.
func (w *watcher) lookAtTools(all []Held) {
	now, added := map[Held]bool{}, map[string][]Held{}
	var order []string
	for _, t := range all {
		now[t] = true
		if w.held[t] {
			continue
		}
		if added[t.Upstream] == nil {
			order = append(order, t.Upstream)
		}
		added[t.Upstream] = append(added[t.Upstream], t)
	}
	w.held = now
	for _, upstream := range order {
		w.alerts.raise(heldEvent(upstream, added[upstream]))
	}
}
