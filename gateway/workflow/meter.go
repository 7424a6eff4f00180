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
	parent *meter // the meter of the run whose step started this one

	items, steps, bytes atomic.Int64

	mu        sync.Mutex
	end       context.CancelCauseFunc // ends the run
	limitErr  error                   // the first limit that was exceeded
	graceUsed int                     // steps since then
}

// limitError returns the error for an exceeded limit, with a hint how to change it.
func limitError(name, message string, more ...any) error {
	return &tool.Error{
		Kind: tool.Limit, Message: fmt.Sprintf(message, more...) + " (workflows.limits." + name + ")",
		Hint: "do less in one run, or raise workflows: {limits: {" + name + ": ...}} in upstreams.yaml and resume the run",
	}
}

// timeError returns the error for the time limit.
func (l Limits) timeError() error {
	return limitError("time", "the run took longer than %v, waits excluded", l.Time)
}

// setEnd sets the function that ends the run.
func (m *meter) setEnd(end context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end = end
}

// exceed ends the run with err at the first call. Later calls allow graceSteps more steps, for finally blocks.
func (m *meter) exceed(n int, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limitErr != nil {
		if m.graceUsed += n; m.graceUsed <= graceSteps {
			return nil
		}
		return m.limitErr
	}
	m.limitErr = err
	if m.end != nil {
		m.end(err)
	}
	return err
}

// addPasses counts loop iterations before they run, with at least so many steps each. If it returns an error, none may run.
func (m *meter) addPasses(passes, steps int) error {
	for ; m != nil; m = m.parent {
		n, made := m.items.Add(int64(passes)), m.steps.Load()
		var err error
		switch most := m.limits; {
		case n > int64(most.Items):
			err = m.exceed(passes, limitError("items", "the loops of one run may make %d passes in all, and with this one's it would be %d", most.Items, n))
		case made+int64(passes)*int64(steps+1) > int64(most.Steps):
			err = m.exceed(passes, limitError("steps", "one run may make %d steps, and a loop over %d items of %d steps makes more", most.Steps, passes, steps))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addStep counts a finished step or a failed attempt. If it returns an error, the run ends.
func (m *meter) addStep() (first error) {
	for ; m != nil; m = m.parent {
		n, size := m.steps.Add(1), m.bytes.Load()
		var err error
		switch most := m.limits; {
		case n > int64(most.Steps):
			err = m.exceed(1, limitError("steps", "one run may make %d steps", most.Steps))
		case size > most.Bytes:
			err = m.exceed(1, limitError("bytes", "the log of one run may have %s", mebibytes(most.Bytes)))
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// addEvent adds the size of a logged event.
func (m *meter) addEvent(e Event) {
	for size := sizeOf(e); m != nil; m = m.parent {
		m.bytes.Add(size)
	}
}

// restore sets the counters to the usage of the run so far.
func (m *meter) restore(h *runHistory) {
	m.items.Store(int64(h.passes))
	m.steps.Store(int64(h.steps + h.retries))
	m.bytes.Store(h.bytes)
}
