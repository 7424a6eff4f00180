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

// Limits bound one run: the workflows nested in it, and the runs that its steps start, count for it too. A zero is the default.
type Limits struct {
	// Items is how many passes its loops make, all for_each and while together; default 10,000.
	Items int
	// Steps is how many steps it makes, retries too; default 100,000.
	Steps int
	// Bytes is how large its log may become; default 64 MiB.
	Bytes int64
	// Time is how long it may go on, without the time that it waits; default 24h.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Items, 10_000), cmp.Or(l.Steps, 100_000), cmp.Or(l.Bytes, 64<<20), cmp.Or(l.Time, 24*time.Hour)}
}

// graceSteps is how many more steps a run may make after it has ended at a limit: what stands in finally.
const graceSteps = 100

// meter counts what a run uses, and ends it where it has used up a limit. All methods are safe for concurrent use.
type meter struct {
	limits Limits
	up     *meter // of the run whose step started this one

	items, steps, bytes atomic.Int64

	mu    sync.Mutex
	end   context.CancelCauseFunc // ends the run
	over  error                   // the limit that is used up
	after int                     // steps since
}

// limited says which limit ends a run, and how to change it.
func limited(name, message string, more ...any) error {
	return &tool.Error{
		Kind: tool.Limit, Message: fmt.Sprintf(message, more...) + " (workflows.limits." + name + ")",
		Hint: "do less in one run, or raise workflows: {limits: {" + name + ": ...}} in upstreams.yaml and resume the run",
	}
}

// timedOut is the error of a run that has used up its time.
func (l Limits) timedOut() error {
	return limited("time", "the run took longer than %v without its waits", l.Time)
}

// open says how the run is ended.
func (m *meter) open(end context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end = end
}

// spent ends the run where it does more than a limit allows; the steps of finally that are left may go on.
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

// loop counts passes of a loop that are about to be made, of so many steps each at least. The error says that none may be.
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

// step counts a step that has ended, or an attempt that has failed. The error says that the run ends.
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

// wrote counts an event.
func (m *meter) wrote(e Event) {
	for size := sizeOf(e); m != nil; m = m.up {
		m.bytes.Add(size)
	}
}

// resumed is what a run has used before.
func (m *meter) resumed(h *pastRun) {
	m.items.Store(int64(h.passes))
	m.steps.Store(int64(h.steps + h.retries))
	m.bytes.Store(h.bytes)
}
