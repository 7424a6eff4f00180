package telemetry

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// State is the state of a gateway at one moment.
type State struct {
	// Running is the number of programs in a slot, of Places; Queued the number waiting for one.
	Running, Queued, Places int
	// Sandboxes is the number of idle sandboxes, by language.
	Sandboxes map[string]int
	// Upstreams is the number of upstreams, by state.
	Upstreams map[string]int
	// Tools is the number of tools of each upstream, by its id.
	Tools map[string]int
	// Approvals is the number of pending approvals.
	Approvals int
	// Workers are those of a cluster.
	Workers []Worker
}

// Watch registers f, which is called whenever the metrics are read. It must return at once.
func (t *Telemetry) Watch(f func(context.Context) State) {
	if t != nil {
		t.state.Store(&f)
	}
}

// gauges are the instruments of a state.
type gauges struct {
	running, queued, places, sandboxes, upstreams, tools, approvals metric.Int64ObservableGauge

	workers workerGauges
}

// observe reports the state as metrics.
func (i *instruments) observe(meter metric.Meter) error {
	m := &maker{Meter: meter}
	g := gauges{
		running:   m.gauge("sallyport.executions.running", "{execution}", "Programs that run now."),
		queued:    m.gauge("sallyport.executions.queued", "{execution}", "Programs that wait for a place to run."),
		places:    m.gauge("sallyport.executions.places", "{execution}", "How many programs can run at once."),
		sandboxes: m.gauge("sallyport.sandboxes.waiting", "{sandbox}", "Sandboxes that wait for programs."),
		upstreams: m.gauge("sallyport.upstreams", "{upstream}", "Upstreams, by how they stand."),
		tools:     m.gauge("sallyport.tools", "{tool}", "Tools that can be found, by upstream."),
		approvals: m.gauge("sallyport.approvals.waiting", "{approval}", "Calls that wait for a person's answer."),
		workers:   newWorkerGauges(m),
	}
	if m.err != nil {
		return m.err
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		if f := i.state.Load(); f != nil {
			i.report(o, g, (*f)(ctx))
		}
		return nil
	}, append(g.workers.all(), g.running, g.queued, g.places, g.sandboxes, g.upstreams, g.tools, g.approvals)...)
	return err
}

func (i *instruments) report(o metric.Observer, g gauges, s State) {
	o.ObserveInt64(g.running, int64(s.Running))
	o.ObserveInt64(g.queued, int64(s.Queued))
	o.ObserveInt64(g.places, int64(s.Places))
	o.ObserveInt64(g.approvals, int64(s.Approvals))
	each := func(gauge metric.Int64ObservableGauge, label string, of map[string]int) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			o.ObserveInt64(gauge, int64(of[name]), metric.WithAttributes(attribute.String(label, name)))
		}
	}
	each(g.sandboxes, "language", s.Sandboxes)
	each(g.upstreams, "state", s.Upstreams)
	tools := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		tools[i.upstreams.limit(id)] += s.Tools[id]
	}
	each(g.tools, "upstream", tools)
	i.reportWorkers(o, g.workers, s.Workers)
}

func (m *maker) gauge(name, unit, help string) metric.Int64ObservableGauge {
	g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	if err != nil {
		m.err = err
	}
	return g
}
