package store

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory returns a store that behaves like one in a directory, but keeps everything in memory only. A bucket or log
// takes at most its Limits.Bytes of memory.
func Memory() *Store {
	closed := make(chan struct{})
	once := sync.OnceFunc(func() { close(closed) })
	s := newStore(nil)
	s.open = func(_ context.Context, _ string, perSubject int, limits Limits) (stream, error) {
		return &memory{limits: limits, perSubject: perSubject, changed: make(chan struct{}), closed: closed}, nil
	}
	s.stop = func() error { once(); return nil }
	s.wait = func(ctx context.Context) error {
		select {
		case <-closed:
			return ErrClosed
		default:
			return ctx.Err()
		}
	}
	s.openAlarms = func(context.Context, string) (alarmClock, error) {
		return &memoryAlarms{closed: closed, timers: map[string]*time.Timer{}}, nil
	}
	return s
}

// memory implements stream in memory.
type memory struct {
	limits     Limits
	perSubject int // how many messages a subject has at most, 0 is any
	closed     <-chan struct{}

	mu      sync.Mutex
	all     []message // by their numbers
	number  uint64    // of the last message
	bytes   int64
	changed chan struct{} // closed by the next write
}

func (s *memory) append(ctx context.Context, subject string, m message, after int64) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	before, err := s.find(subject)
	if err == nil && after >= 0 && s.all[before].number != uint64(after) || err != nil && after > 0 {
		return 0, ErrConflict
	}
	m.subject = subject
	replaced := err == nil && s.perSubject > 0
	if s.limits.Keep && !s.fits(m, before, replaced) {
		return 0, ErrFull
	}
	if replaced {
		s.drop(before)
	}
	s.number++
	m.number, m.time, m.data = s.number, time.Now(), bytes.Clone(m.data)
	s.all = append(s.all, m)
	s.bytes += m.size()
	for len(s.all) > s.limits.Records || s.bytes > s.limits.Bytes && len(s.all) > 1 {
		s.drop(0)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return m.number, nil
}

// fits reports whether there is room for a message, in place of the one at an index if replaces is set.
func (s *memory) fits(m message, at int, replaces bool) bool {
	records, size := len(s.all)+1, s.bytes+m.size()
	if replaces {
		records, size = records-1, size-s.all[at].size()
	}
	return records <= s.limits.Records && size <= s.limits.Bytes
}

func (m message) size() int64 { return int64(len(m.subject) + len(m.data) + 64) }

// expire drops messages that are too old. It is called with mu held, as are find and drop.
func (s *memory) expire() {
	for s.limits.Age > 0 && len(s.all) > 0 && time.Since(s.all[0].time) > s.limits.Age {
		s.drop(0)
	}
}

func (s *memory) drop(i int) {
	s.bytes -= s.all[i].size()
	s.all = slices.Delete(s.all, i, i+1)
}

// find returns the index of the last message of a subject.
func (s *memory) find(subject string) (int, error) {
	for i, m := range slices.Backward(s.all) {
		if m.subject == subject {
			return i, nil
		}
	}
	return 0, ErrNotFound
}

func (s *memory) last(ctx context.Context, subject string) (message, error) {
	if err := ctx.Err(); err != nil {
		return message{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	i, err := s.find(subject)
	if err != nil {
		return message{}, err
	}
	return s.all[i].clone(), nil
}

func (m message) clone() message {
	m.data = bytes.Clone(m.data)
	return m
}

func (s *memory) next(ctx context.Context, pattern string, from uint64) (message, error) {
	m, _, err := s.nextOrWait(ctx, pattern, from)
	return m, err
}

// nextOrWait also returns a channel that is closed when there may be more.
func (s *memory) nextOrWait(ctx context.Context, pattern string, from uint64) (message, <-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return message{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	start, _ := slices.BinarySearchFunc(s.all, from, func(m message, n uint64) int {
		switch {
		case m.number < n:
			return -1
		case m.number > n:
			return 1
		}
		return 0
	})
	for _, m := range s.all[start:] {
		if matches(m.subject, pattern) {
			return m.clone(), nil, nil
		}
	}
	return message{}, s.changed, ErrNotFound
}

func matches(subject, pattern string) bool {
	if prefix, below := strings.CutSuffix(pattern, ">"); below {
		return len(subject) > len(prefix) && strings.HasPrefix(subject, prefix)
	}
	return subject == pattern
}

func (s *memory) remove(ctx context.Context, subject string, upTo uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(m message) bool {
		if m.subject != subject || upTo > 0 && m.number > upTo {
			return false
		}
		s.bytes -= m.size()
		return true
	})
	return nil
}

func (s *memory) usage(ctx context.Context) (records int, bytes int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return len(s.all), s.bytes, ctx.Err()
}

func (s *memory) subjects(ctx context.Context, pattern string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	found := map[string]bool{}
	for _, m := range s.all {
		if matches(m.subject, pattern) {
			found[m.subject] = true
		}
	}
	return slices.Collect(maps.Keys(found)), ctx.Err()
}

func (s *memory) follow(ctx context.Context, pattern string, from uint64, do func(message) error) error {
	for {
		m, more, err := s.nextOrWait(ctx, pattern, from)
		if errors.Is(err, ErrNotFound) {
			select {
			case <-more:
				continue
			case <-s.closed:
				return ErrClosed
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil {
			return err
		}
		if err := do(m); err != nil {
			return err
		}
		from = m.number + 1
	}
}

// memoryAlarms implements bell with timers.
type memoryAlarms struct {
	closed <-chan struct{}

	mu     sync.Mutex
	timers map[string]*time.Timer
	fired  []string
	wake   chan struct{} // closed by the next alarm; nil without a listener
}

func (b *memoryAlarms) set(ctx context.Context, subject string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.timers[subject]; before != nil {
		before.Stop()
	}
	b.timers[subject] = time.AfterFunc(time.Until(at), func() { b.fire(subject) })
	return nil
}

func (b *memoryAlarms) cancel(ctx context.Context, subject string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.timers[subject]; before != nil {
		before.Stop()
		delete(b.timers, subject)
	}
	return ctx.Err()
}

func (b *memoryAlarms) fire(subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.timers, subject)
	if b.wake != nil {
		b.fired = append(b.fired, subject)
		close(b.wake)
		b.wake = make(chan struct{})
	}
}

func (b *memoryAlarms) listen(ctx context.Context, begin func() error, rung func(subject string) error) error {
	b.mu.Lock()
	b.fired, b.wake = nil, make(chan struct{})
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.wake = nil
		b.mu.Unlock()
	}()
	if err := begin(); err != nil {
		return err
	}
	for {
		b.mu.Lock()
		heard, more := b.fired, b.wake
		b.fired = nil
		b.mu.Unlock()
		for _, subject := range heard {
			if err := rung(subject); err != nil {
				return err
			}
		}
		if len(heard) > 0 {
			continue
		}
		select {
		case <-more:
		case <-b.closed:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
