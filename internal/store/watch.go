package store

import (
	"context"
	"time"
)

// watched reports each change of a stream before it is made and when it is on disk.
type watched struct {
	stream

	name string
	tell func(place string, done bool)
}

func (w watched) append(ctx context.Context, subject string, m message, after int64) (uint64, error) {
	w.tell(w.name, false)
	number, err := w.stream.append(ctx, subject, m, after)
	w.tell(w.name, true)
	return number, err
}

func (w watched) remove(ctx context.Context, subject string, upTo uint64) error {
	w.tell(w.name, false)
	err := w.stream.remove(ctx, subject, upTo)
	w.tell(w.name, true)
	return err
}

// watchedBell reports each alarm that is set or cancelled.
type watchedBell struct {
	bell

	name string
	tell func(place string, done bool)
}

func (w watchedBell) set(ctx context.Context, subject string, at time.Time) error {
	w.tell(w.name, false)
	err := w.bell.set(ctx, subject, at)
	w.tell(w.name, true)
	return err
}

func (w watchedBell) unset(ctx context.Context, subject string) error {
	w.tell(w.name, false)
	err := w.bell.unset(ctx, subject)
	w.tell(w.name, true)
	return err
}
