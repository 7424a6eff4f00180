package bridge

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"sallyport/internal/tool"
)

// Limits bound one program. A zero field means the documented default.
type Limits struct {
	// Calls is how many tool calls may be made in all; 0 is 1000.
	Calls int
	// Concurrency is how many may run at once, further ones are queued; 0 is 16.
	Concurrency int
	// Frame is the size in bytes of the largest frame accepted; 0 is 16 MiB.
	Frame int64
	// InFlight is the maximum total size in bytes of the frames of in-flight calls, further
	// calls are queued; 0 is 32 MiB. One call is always allowed.
	InFlight int64
	// Write is the write timeout for a guest that does not read; 0 is 30 s.
	Write time.Duration
	// Emits is how many items a program may emit; 0 is 32.
	Emits int
	// Emit is the size in bytes of the largest of them; 0 is 4 MiB.
	Emit int
	// Emitted is how many bytes they may have together; 0 is 8 MiB.
	Emitted int
	// Traffic is how many bytes the program's frames may have, both ways together; 0 is 1 GiB.
	Traffic int64
	// Quota bounds the changes of /workspace that are received at the program's end; zero fields are
	// 256 MiB and 50,000 files. Files do not count as traffic.
	Quota Quota
}

// defaultFrame is the guest's default for the maximum size of its frames.
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
	l.Quota, l.InFlight = l.Quota.withDefaults(), cmp.Or(l.InFlight, 32<<20)
	l.Emits, l.Emit, l.Emitted = cmp.Or(l.Emits, 32), cmp.Or(l.Emit, 4<<20), cmp.Or(l.Emitted, 8<<20)
	return l
}

// trafficAllowance is how many bytes a program may exchange beyond Limits.Traffic, for
// errors and its end. A guest that sends more is disconnected.
const trafficAllowance = 1 << 20

// ErrTraffic means that a guest was disconnected because it exceeded [Limits].Traffic.
var ErrTraffic = fmt.Errorf("%w: it exceeded its traffic limit", ErrClosed)

// meter counts the bytes of a program's frames.
type meter struct {
	limit int64
	used  atomic.Int64
}

// count adds bytes, and reports whether the total is still within the limit.
func (m *meter) count(bytes int) bool { return m.used.Add(int64(bytes)) <= m.limit }

// reserve adds bytes if the total stays within the limit, and reports whether it did.
func (m *meter) reserve(bytes int) bool {
	if m.count(bytes) {
		return true
	}
	m.used.Add(-int64(bytes))
	return false
}

// exhausted reports whether the slack is used up too.
func (m *meter) exhausted() bool { return m.used.Load() > m.limit+trafficAllowance }

// limitError returns the error for a frame of that size that exceeds the limit.
func (m *meter) limitError(what string, bytes int) *tool.Error {
	return &tool.Error{
		Kind:    tool.Limit,
		Message: fmt.Sprintf("%s of %s is beyond the %s that a program may exchange with tools", what, formatSize(bytes), formatSize(int(m.limit))),
		Hint:    "ask for less: fewer fields, rows or pages, or split the work over several programs",
	}
}
