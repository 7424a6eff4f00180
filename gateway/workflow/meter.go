package workflow

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/tool"
)

// Limits bound one run, including its nested workflows and the runs that its steps start. Zero fields have defaults.
type Limits struct {
	// Items limits loop iterations, for all for_each and while together; default 10,000.
	Items int
	// Steps limits steps, including retries; default 100,000.
	Steps int
	// Bytes limits the size of its log; default 64 MiB.
	Bytes int64
	// Time limits its running time, without waits; default 24h.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Items, 10_000), cmp.Or(l.Steps, 100_000), cmp.Or(l.Bytes, 64<<20), cmp.Or(l.Time, 24*time.Hour)}
}

// graceSteps is how many steps a run may make after it has reached a limit, for its finally blocks.
const graceSteps = 100

// meter counts the usage of a run, and ends the run at a limit. All methods are safe for concurrent use.
type meter struct {
	limits Limits
	up     *meter // the meter of the run whose step started this one

	items, steps, bytes atomic.Int64

	mu    sync.Mutex
	end   context.CancelCauseFunc // ends the run
	over  error                   // the first limit that was exceeded
	after int                     // steps since then
}

// limited returns the error for an exceeded limit, with a hint how to change it.
func limited(name, message string, more ...any) error {
	return &tool.Error{
		Kind: tool.Limit, Message: fmt.Sprintf(message, more...) + " (workflows.limits." + name + ")",
		Hint: "do less in one run, or raise workflows: {limits: {" + name + ": ...}} in upstreams.yaml and resume the run",
	}
}

// timedOut returns the error for the time limit.
func (l Limits) timedOut() error {
	return limited("time", "the run took longer than %v, waits excluded", l.Time)
}

// open sets the function that ends the run.
func (m *meter) open(end context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end = end
}

// spent ends the run with err at the first call. Later calls allow graceSteps more steps, for finally blocks.
func (m *meter) spent(n int, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over != nil {
		if m.after += n; m.after <= graceSteps {
			return nil
		}
		return m.over
	}
	m.over = err
	if m.end != nil {
		m.end(err)
	}
	return err
}

// loop counts loop iterations before they run, with at least so many steps each. If it returns an error, none may run.
func (m *meter) loop(passes, steps int) error {
	for ; m != nil; m = m.up {
		n, made := m.items.Add(int64(passes)), m.steps.Load()
		var err error
		switch most := m.limits; {
		case n > int64(most.Items):
			err = m.spent(passes, limited("items", "the loops of one run may make %d passes in all, and with this one's it would be %d", most.Items, n))
		case made+int64(passes)*int64(steps+1) > int64(most.Steps):
			err = m.spent(passes, limited("steps", "one run may make %d steps, and a loop over %d items of %d steps makes more", most.Steps, passes, steps))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step counts a finished step or a failed attempt. If it returns an error, the run ends.
func (m *meter) step() (first error) {
	for ; m != nil; m = m.up {
		n, size := m.steps.Add(1), m.bytes.Load()
		var err error
		switch most := m.limits; {
		case n > int64(most.Steps):
			err = m.spent(1, limited("steps", "one run may make %d steps", most.Steps))
		case size > most.Bytes:
			err = m.spent(1, limited("bytes", "the log of one run may have %s", mebibytes(most.Bytes)))
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// wrote adds the size of a logged event.
func (m *meter) wrote(e Event) {
	for size := sizeOf(e); m != nil; m = m.up {
		m.bytes.Add(size)
	}
}

// resumed sets the counters to the usage of the run so far.
func (m *meter) resumed(h *pastRun) {
	m.items.Store(int64(h.passes))
	m.steps.Store(int64(h.steps + h.retries))
	m.bytes.Store(h.bytes)
}
