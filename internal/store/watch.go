package store

import (
	"context"
	"time"
)

// observedStream reports each change of a stream before it is made and when it is on disk.
type observedStream struct {
	stream

	name   string
	report func(place string, done bool)
}

func (w observedStream) append(ctx context.Context, subject string, m message, after int64) (uint64, error) {
	w.report(w.name, false)
	number, err := w.stream.append(ctx, subject, m, after)
	w.report(w.name, true)
	return number, err
}

func (w observedStream) remove(ctx context.Context, subject string, upTo uint64) error {
	w.report(w.name, false)
	err := w.stream.remove(ctx, subject, upTo)
	w.report(w.name, true)
	return err
}

// observedAlarms reports each alarm that is set or cancelled.
type observedAlarms struct {
	alarmClock

	name   string
	report func(place string, done bool)
}

func (w observedAlarms) set(ctx context.Context, subject string, at time.Time) error {
	w.report(w.name, false)
	err := w.alarmClock.set(ctx, subject, at)
	w.report(w.name, true)
	return err
}

func (w observedAlarms) cancel(ctx context.Context, subject string) error {
	w.report(w.name, false)
	err := w.alarmClock.cancel(ctx, subject)
	w.report(w.name, true)
	return err
}
