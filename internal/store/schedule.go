package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schedules fire keys at set times: once, or repeatedly. A due key stays due until it is acknowledged; when several
// times of one key have passed, it is due once. All methods are safe for concurrent use.
type Schedules struct {
	defs   *Bucket
	store  *Store
	alarms string // the name of its alarms
}

const maxSchedules = 100_000

// Schedules returns the schedules of that name: a letter, then at most 31 of a-z, 0-9 and "_". They are created on
// first use.
func (s *Store) Schedules(name string) (*Schedules, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("%w: schedules cannot be called %.80q", ErrInvalid, name)
	}
	limits := Limits{Records: maxSchedules, Record: 64 << 10, Keep: true}
	return &Schedules{&Bucket{s.place("schedule", name, 1, limits)}, s, "alarm_" + name}, nil
}

// Schedule is the schedule of a key.
type Schedule struct {
	Key Key
	// Next is the next due time; it stays in the past until acknowledged.
	Next time.Time
	// Fields and Zone are those given to Cron, Interval the one given to Every; all are zero for At.
	Fields, Zone string
	Interval     time.Duration
	Value        []byte
}

// storedSchedule is the stored form of a schedule.
type storedSchedule struct {
	Next     time.Time     `json:"next"`
	Fields   string        `json:"fields,omitempty"`
	Zone     string        `json:"zone,omitempty"`
	Interval time.Duration `json:"interval,omitempty"`
	Value    []byte        `json:"value,omitempty"`
}

// next returns the due time after Next, not in the past; zero means never.
func (p storedSchedule) next() (time.Time, error) {
	switch {
	case p.Fields != "" && time.Now().Before(p.Next):
		return Next(p.Fields, p.Zone, p.Next)
	case p.Fields != "":
		return Next(p.Fields, p.Zone, time.Now())
	case p.Interval > 0:
		missed := max(0, time.Since(p.Next)/p.Interval)
		return p.Next.Add((missed + 1) * p.Interval), nil
	}
	return time.Time{}, nil
}

// At makes a key due at a time, at once if that has passed. It replaces the key's schedule.
func (t *Schedules) At(ctx context.Context, key Key, when time.Time, value []byte) error {
	return t.put(ctx, key, storedSchedule{Next: when.UTC(), Value: value})
}

// Cron makes a key due at the times of [Next]. It replaces the key's schedule, unless it is the same.
func (t *Schedules) Cron(ctx context.Context, key Key, fields, zone string, value []byte) error {
	next, err := Next(fields, zone, time.Now())
	if err != nil {
		return err
	}
	return t.repeat(ctx, key, storedSchedule{Next: next, Fields: fields, Zone: zone, Value: value})
}

// Every makes a key due after each interval of at least a second, first after one interval. It replaces the key's
// schedule, unless it is the same.
func (t *Schedules) Every(ctx context.Context, key Key, interval time.Duration, value []byte) error {
	if interval < time.Second {
		return fmt.Errorf("%w: an interval of %v; a second is the least", ErrInvalid, interval)
	}
	return t.repeat(ctx, key, storedSchedule{Next: time.Now().UTC().Add(interval), Interval: interval, Value: value})
}

// repeat sets a repeating schedule, unless it is there: a replacement would lose a due time that has passed.
func (t *Schedules) repeat(ctx context.Context, key Key, p storedSchedule) error {
	switch before, _, err := t.get(ctx, key); {
	case err == nil && before.Fields == p.Fields && before.Zone == p.Zone && before.Interval == p.Interval && string(before.Value) == string(p.Value):
		return nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	}
	return t.put(ctx, key, p)
}

func (t *Schedules) get(ctx context.Context, key Key) (storedSchedule, uint64, error) {
	e, err := t.defs.Get(ctx, key)
	if err != nil {
		return storedSchedule{}, 0, err
	}
	p, err := decodeSchedule(e)
	return p, e.Revision, err
}

func decodeSchedule(e Entry) (p storedSchedule, err error) {
	if err := json.Unmarshal(e.Value, &p); err != nil {
		return p, fmt.Errorf("%w: schedule %q: %w", ErrCorrupt, e.Key, err)
	}
	return p, nil
}

// put writes a schedule first and its alarm second: a missing alarm is set by the next Listen.
func (t *Schedules) put(ctx context.Context, key Key, p storedSchedule) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	before, err := t.defs.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	revision, err := t.defs.Put(ctx, key, data)
	if err != nil {
		return err
	}
	return errors.Join(t.cancel(ctx, key, before.Revision), t.set(ctx, key, revision, p.Next))
}

// Remove removes a key's schedule, also if it is due and not acknowledged. A missing one is not an error.
func (t *Schedules) Remove(ctx context.Context, key Key) error {
	before, err := t.defs.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(t.defs.Remove(ctx, key), t.cancel(ctx, key, before.Revision))
}

// List yields all schedules.
func (t *Schedules) List(ctx context.Context) iter.Seq2[Schedule, error] {
	return func(yield func(Schedule, error) bool) {
		for e, err := range t.defs.List(ctx, nil) {
			var p storedSchedule
			if err == nil {
				p, err = decodeSchedule(e)
			}
			if !yield(Schedule{e.Key, p.Next, p.Fields, p.Zone, p.Interval, p.Value}, err) || err != nil {
				return
			}
		}
	}
}

// Firing is a key that is due.
type Firing struct {
	Key Key
	// Time is the due time: the first, if several have passed.
	Time  time.Time
	Value []byte
}

// Listen calls do with each due key, one after the other, earliest first: at least once each, as a key is acknowledged
// when do returns nil. It continues until ctx ends or do returns an error, and returns that error; unacknowledged
// keys are due again next time. Only one Listen may run at a time, across all processes.
func (t *Schedules) Listen(ctx context.Context, do func(Firing) error) error {
	bell, err := t.store.alarms(ctx, t.alarms)
	if err != nil {
		return err
	}
	return bell.listen(ctx, func() error { return t.fireMissed(ctx, do) }, func(subject string) error {
		key, revision, err := t.parseAlarm(subject)
		if err != nil && t.store.members != nil {
			t.store.log.Error("a message in the store is not an alarm: it is skipped", "subject", fmt.Sprintf("%.200q", subject))
			return nil
		}
		if err != nil {
			return err
		}
		e, err := t.defs.Get(ctx, key)
		if errors.Is(err, ErrNotFound) || err == nil && e.Revision != revision {
			return nil // removed or replaced meanwhile
		}
		if err != nil {
			return err
		}
		return t.check(ctx, e, do)
	})
}

// fireMissed handles the keys that are due already, and sets the alarms of all others: a killed process may not have set
// them.
func (t *Schedules) fireMissed(ctx context.Context, do func(Firing) error) error {
	type item struct {
		Entry

		next time.Time
	}
	var all []item
	for e, err := range t.defs.List(ctx, nil) {
		if err != nil {
			return err
		}
		p, err := decodeSchedule(e)
		if err != nil {
			return err
		}
		all = append(all, item{e, p.Next})
	}
	slices.SortStableFunc(all, func(a, b item) int { return a.next.Compare(b.next) })
	for _, i := range all {
		if err := t.check(ctx, i.Entry, do); err != nil {
			return err
		}
	}
	return nil
}

// check fires a key if it is due, and sets its alarm otherwise.
func (t *Schedules) check(ctx context.Context, e Entry, do func(Firing) error) error {
	p, err := decodeSchedule(e)
	if err != nil {
		return err
	}
	if p.Next.After(time.Now()) {
		return t.set(ctx, e.Key, e.Revision, p.Next)
	}
	return t.fire(ctx, e, p, do)
}

// ackTime is the timeout of an acknowledgement, which is written even if the listener has ended.
const ackTime = 10 * time.Second

// fire handles a due key, and advances its schedule.
func (t *Schedules) fire(ctx context.Context, e Entry, p storedSchedule, do func(Firing) error) error {
	err := do(Firing{e.Key, p.Next, p.Value})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTime) // do has run, so it must be acknowledged
	defer cancel()
	if p.Next, err = p.next(); err != nil && !errors.Is(err, ErrInvalid) { // an unknown zone ends the schedule
		return err
	}
	if p.Next.IsZero() {
		return t.defs.removeUpTo(ctx, e.Key, e.Revision)
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	revision, err := t.defs.Update(ctx, e.Key, data, e.Revision)
	if errors.Is(err, ErrConflict) {
		return nil // replaced meanwhile
	}
	if err != nil {
		return err
	}
	return t.set(ctx, e.Key, revision, p.Next)
}

// alarmClock fires alarms. An alarm is set for a key and the revision of its schedule: one for another revision is of a
// replaced schedule.
type alarmClock interface {
	// set sets an alarm for a time; unset cancels one that has not fired.
	set(ctx context.Context, subject string, at time.Time) error
	cancel(ctx context.Context, subject string) error
	// listen calls begin, and then rung with the subject of each alarm that fires after its own call, until ctx ends
	// or one of them fails.
	listen(ctx context.Context, begin func() error, rung func(subject string) error) error
}

// maxAhead bounds how far ahead an alarm is set: the engine counts nanoseconds in 64 bits. One that fires too early
// is set again.
const maxAhead = 365 * 24 * time.Hour

func (t *Schedules) set(ctx context.Context, key Key, revision uint64, at time.Time) error {
	if furthest := time.Now().Add(maxAhead); at.After(furthest) {
		at = furthest
	}
	return t.withAlarm(ctx, key, revision, func(b alarmClock, subject string) error { return b.set(ctx, subject, at) })
}

func (t *Schedules) cancel(ctx context.Context, key Key, revision uint64) error {
	if revision == 0 {
		return nil
	}
	return t.withAlarm(ctx, key, revision, func(b alarmClock, subject string) error { return b.cancel(ctx, subject) })
}

func (t *Schedules) withAlarm(ctx context.Context, key Key, revision uint64, do func(b alarmClock, subject string) error) error {
	encoded, err := key.encode()
	if err != nil {
		return err
	}
	b, err := t.store.alarms(ctx, t.alarms)
	if err != nil {
		return err
	}
	return do(b, encoded+"."+strconv.FormatUint(revision, 10))
}

// parseAlarm parses the subject of an alarm.
func (t *Schedules) parseAlarm(subject string) (Key, uint64, error) {
	dot := strings.LastIndexByte(subject, '.')
	if dot < 0 {
		return nil, 0, fmt.Errorf("%w: an alarm of nobody: %.80q", ErrCorrupt, subject)
	}
	revision, err := strconv.ParseUint(subject[dot+1:], 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: an alarm of nobody: %.80q", ErrCorrupt, subject)
	}
	key, err := decodeKey(subject[:dot])
	return key, revision, err
}
