package telemetry

import (
	"errors"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Worker is the state of a worker of a cluster. Its name is what the worker says, within what its credentials permit.
type Worker struct {
	Name string
	// Processes is 0 for a worker that has left, of which only Programs is reported.
	Processes int
	// Seats and Busy are what it says; Running is how many programs of this gateway it runs.
	Seats, Busy, Running int
	// Age is the time since its last heartbeat.
	Age      time.Duration
	Draining bool
	// Programs is how many programs of this gateway have ended there, by how.
	Programs map[string]int64
}

// add adds the state of another worker, for one series.
func (w *Worker) add(more Worker) {
	w.Processes, w.Seats, w.Busy, w.Running, w.Age = w.Processes+more.Processes, w.Seats+more.Seats, w.Busy+more.Busy, w.Running+more.Running, max(w.Age, more.Age)
	for how, n := range more.Programs {
		w.Programs[how] += n
	}
}

// workerGauges are the instruments of workers.
type workerGauges struct {
	workers, seats, busy, running metric.Int64ObservableGauge
	age                           metric.Float64ObservableGauge
	programs                      metric.Int64ObservableCounter
}

// newWorkerGauges makes them.
func newWorkerGauges(m *maker) workerGauges {
	age, err := m.Float64ObservableGauge("sallyport.worker.heartbeat.age", metric.WithUnit("s"), metric.WithDescription("How long ago the last heartbeat of a worker came."))
	programs, err2 := m.Int64ObservableCounter("sallyport.worker.executions", metric.WithUnit("{execution}"),
		metric.WithDescription("Programs of this gateway on a worker, by outcome: ended, canceled, not_started (and tried elsewhere), or lost with the worker."))
	m.err = errors.Join(m.err, err, err2)
	return workerGauges{
		workers: m.gauge("sallyport.workers", "{worker}", "Workers that have joined, by whether they take programs: ready or draining."),
		seats:   m.gauge("sallyport.worker.seats", "{seat}", "How many programs a worker is meant to run at once."),
		busy:    m.gauge("sallyport.worker.busy", "{execution}", "Programs that a worker runs, of all gateways, as it says."),
		running: m.gauge("sallyport.worker.running", "{execution}", "Programs of this gateway that a worker runs."),
		age:     age, programs: programs,
	}
}

// all returns the instruments, for the callback that reports them.
func (g workerGauges) all() []metric.Observable {
	return []metric.Observable{g.workers, g.seats, g.busy, g.running, g.age, g.programs}
}

// reportWorkers reports workers. Those without their own series are one.
func (i *instruments) reportWorkers(o metric.Observer, g workerGauges, found []Worker) {
	states, by := map[string]int{}, map[string]*Worker{}
	for _, w := range found {
		switch {
		case w.Processes == 0:
		case w.Draining:
			states["draining"]++
		default:
			states["ready"]++
		}
		label := i.workers.limit(w.Name)
		if by[label] == nil {
			by[label] = &Worker{Name: label, Programs: map[string]int64{}}
		}
		by[label].add(w)
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		o.ObserveInt64(g.workers, int64(states[state]), with(attribute.String("state", state)))
	}
	for _, label := range slices.Sorted(maps.Keys(by)) {
		by[label].observe(o, g)
	}
}

func (w *Worker) observe(o metric.Observer, g workerGauges) {
	name := attribute.String("worker", w.Name)
	if w.Processes > 0 {
		o.ObserveInt64(g.seats, int64(w.Seats), with(name))
		o.ObserveInt64(g.busy, int64(w.Busy), with(name))
		o.ObserveInt64(g.running, int64(w.Running), with(name))
		o.ObserveFloat64(g.age, w.Age.Seconds(), with(name))
	}
	for _, how := range slices.Sorted(maps.Keys(w.Programs)) {
		o.ObserveInt64(g.programs, w.Programs[how], with(name, attribute.String("outcome", how)))
	}
}
