package shared

import (
	"context"
	"errors"
	"slices"

	"sallyport/internal/journal"
	"sallyport/internal/store"
)

// Found is what a copy says of an execution.
type Found struct {
	*journal.Contents
	// Lost: the gateway that ran it has died, and the execution is not on record.
	Lost bool
}

// Query selects copies of journals.
type Query struct {
	// Folder is that of the principal.
	Folder string
	// Succeeded selects those of programs that succeeded and were answered; else those of all others.
	Succeeded bool
	// Skip reports whether to leave an id out.
	Skip func(id string) bool
	// Most is the maximum number of copies that are read, the newest first.
	Most int
}

// Recent returns copies, the newest first. Those that are damaged are left out.
func (j *Journals) Recent(ctx context.Context, q Query) (all []Found, err error) {
	if j == nil {
		return nil, nil
	}
	newest, err := j.newest(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, e := range newest {
		loaded, _, err := j.load(ctx, e.Key)
		if err != nil && !errors.Is(err, journal.ErrDamaged) {
			return nil, err
		}
		if err != nil || loaded.Data == nil {
			continue // it is damaged, or gone
		}
		contents, err := journal.Parse(loaded.Data)
		if err != nil || contents.ID != e.Key[1] {
			continue
		}
		all = append(all, Found{contents, !contents.Kept && !j.in.Alive(ctx, contents.Gateway)})
	}
	return all, nil
}

// newest returns the last records of the copies that a query selects.
func (j *Journals) newest(ctx context.Context, q Query) ([]store.Entry, error) {
	all, err := j.log.Lasts(ctx, store.Key{q.Folder})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(last store.Entry) bool {
		return len(last.Key) != 2 || q.Skip(last.Key[1]) || journal.EndsInSuccess(last.Value) != q.Succeeded
	})
	slices.SortFunc(all, func(a, b store.Entry) int { return b.Time.Compare(a.Time) })
	return all[:min(len(all), q.Most)], nil
}
