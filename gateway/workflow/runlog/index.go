package runlog

import (
	"slices"
	"sync"

	"sallyport/internal/store"
)

// mark is the revision of a record in a log, and the number of events before it.
type mark struct {
	revision uint64
	seen     int
}

const (
	// markEvery is the minimum number of events between two marks, maxMarked the maximum number of logs with marks.
	markEvery = 256
	maxMarked = 64
)

// marks is an index of event positions in long logs, so that a page can be read without the events before it. Reading adds marks,
// which can be dropped at any time. The zero value is ready to use; it is safe for concurrent use.
type marks struct {
	mu     sync.Mutex
	byRun  map[string][]mark // by runs
	recent []string          // runs with marks, the most recent last
}

// before returns the last mark of a run's log with at most so many events before it; the zero mark is the start.
func (m *marks) before(run string, events int) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.byRun[run]
	at, _ := slices.BinarySearchFunc(list, events+1, func(one mark, seen int) int { return one.seen - seen })
	if at == 0 {
		return mark{}
	}
	return list[at-1]
}

// add adds a mark for a record that a reader has reached, unless the last mark is too close.
func (m *marks) add(run string, one mark) {
	if one.seen < markEvery {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.byRun[run]
	if n := len(list); n > 0 && one.seen < list[n-1].seen+markEvery {
		return
	}
	if m.byRun == nil {
		m.byRun = map[string][]mark{}
	}
	if len(list) == 0 {
		m.recent = append(m.recent, run)
	}
	m.byRun[run] = append(list, one)
	if len(m.recent) > maxMarked {
		delete(m.byRun, m.recent[0])
		m.recent = m.recent[1:]
	}
}

// forget drops the marks of a run.
func (m *marks) forget(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byRun, run)
	m.recent = slices.DeleteFunc(m.recent, func(one string) bool { return one == run })
}

// reader reads a log from its start or from a mark.
type reader struct {
	decoder
	marks *marks
	run   string
	from  mark
}

func (l *Logs) reader(run string, after int) *reader {
	from := l.marks.before(run, after)
	return &reader{decoder: decoder{seen: from.seen, skip: after}, marks: &l.marks, run: run, from: from}
}

// next decodes the next record. The first must be the marked one: else this is another log with the same id, and next returns errOtherLog.
func (r *reader) next(record store.Entry, do func(Event) error) error {
	if r.from.revision != 0 && r.from.revision != record.Revision {
		return errOtherLog
	}
	r.from.revision = 0
	if r.pending == nil {
		r.marks.add(r.run, mark{record.Revision, r.seen})
	}
	return r.add(record.Value, do)
}
