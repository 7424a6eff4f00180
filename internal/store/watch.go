package store

import "context"

// watched tells of each change of a stream before it is made and when it is on the disk.
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

func (w watched) remove(ctx context.Context, subject string) error {
	w.tell(w.name, false)
	err := w.stream.remove(ctx, subject)
	w.tell(w.name, true)
	return err
}
