package bridge

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"sallyport/internal/tool"
)

// Limits meter one program. A zero field means the default that it names.
type Limits struct {
	// Calls is how many tool calls may be made in all; 0 is 1000.
	Calls int
	// Concurrency is how many may run at once, more wait; 0 is 16.
	Concurrency int
	// Frame is the size in bytes of the largest frame accepted; 0 is 16 MiB.
	Frame int64
	// InFlight is how many bytes the frames of the calls under way may have together, more
	// wait; 0 is 32 MiB. One call may always go on.
	InFlight int64
	// Write is how long a guest that does not read may hold up its answers; 0 is 30 s.
	Write time.Duration
	// Emits is how many things a program may emit; 0 is 32.
	Emits int
	// Emit is the size in bytes of the largest of them; 0 is 4 MiB.
	Emit int
	// Emitted is how many bytes they may have together; 0 is 8 MiB.
	Emitted int
	// Traffic is how many bytes the program's frames may have, both ways together; 0 is 1 GiB.
	Traffic int64
	// Room is how much of /workspace is taken at the program's end; 0 in it is 256 MiB and 50,000 files.
	// It does not count as traffic.
	Room Room
}

// defaultFrame is what a guest takes for the limit of its frames where it is not told.
const defaultFrame = 16 << 20

func (l Limits) withDefaults() Limits {
	if l.Calls == 0 {
		l.Calls = 1000
	}
	if l.Concurrency == 0 {
		l.Concurrency = 16
	}
	if l.Frame == 0 {
		l.Frame = defaultFrame
	}
	if l.Write == 0 {
		l.Write = 30 * time.Second
	}
	if l.Traffic == 0 {
		l.Traffic = 1 << 30
	}
	l.Room, l.InFlight = l.Room.withDefaults(), cmp.Or(l.InFlight, 32<<20)
	l.Emits, l.Emit, l.Emitted = cmp.Or(l.Emits, 32), cmp.Or(l.Emit, 4<<20), cmp.Or(l.Emitted, 8<<20)
	return l
}

// trafficSlack is how many bytes a program may exchange beyond Limits.Traffic: errors
// that say so, and its end. A guest that sends more is cut off.
const trafficSlack = 1 << 20

// ErrTraffic says that a guest was cut off since it sent on beyond [Limits].Traffic.
var ErrTraffic = fmt.Errorf("%w: it went on beyond the limit of its traffic", ErrClosed)

// meter counts the bytes of a program's frames.
type meter struct {
	limit int64
	used  atomic.Int64
}

// count adds what has come or must go, and says whether that was still within the limit.
func (m *meter) count(bytes int) bool { return m.used.Add(int64(bytes)) <= m.limit }

// reserve adds what could go, unless that would be beyond the limit.
func (m *meter) reserve(bytes int) bool {
	if m.count(bytes) {
		return true
	}
	m.used.Add(-int64(bytes))
	return false
}

// exhausted says that not even the slack is left.
func (m *meter) exhausted() bool { return m.used.Load() > m.limit+trafficSlack }

// refuse is the error for the call that a frame of so many bytes belongs to.
func (m *meter) refuse(what string, bytes int) *tool.Error {
	return &tool.Error{
		Kind:    tool.Limit,
		Message: fmt.Sprintf("%s of %s is beyond the %s that a program may exchange with tools", what, inUnits(bytes), inUnits(int(m.limit))),
		Hint:    "ask for less: fewer fields, rows or pages, or split the work over several programs",
	}
}
