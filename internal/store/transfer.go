package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotEmpty means that there are records where none must be.
var ErrNotEmpty = errors.New("there are records already")

// CopyTo copies all records to a store that has none, and returns their number; progress, if it is not nil, is called with it after each
// one. A place that changes during the copy is copied as of some time after the call, logs before buckets. Keys, values and order stay the
// same; revisions and times are new. What processes write about themselves is not copied: heartbeats, claims, the version; nor are
// places with [PrivatePrefix] or [FilesPrefix]. The error is
// [ErrNotEmpty] if the other store has records. After another error it has none, or the error says why they are still there.
func (s *Store) CopyTo(ctx context.Context, to *Store, progress func(records int)) (records int, err error) {
	sources, err := s.sources(ctx)
	if err == nil {
		err = to.Vacant(ctx)
	}
	if err != nil {
		return 0, err
	}
	count := func() {
		if records++; progress != nil {
			progress(records)
		}
	}
	for _, from := range sources {
		if err := from.copyTo(ctx, to, count); err != nil {
			return records, errors.Join(fmt.Errorf("copy records of %s: %w", from.name, err), to.clear(context.WithoutCancel(ctx), sources))
		}
	}
	return records, nil
}

// Vacant returns an [ErrNotEmpty] if the store has records, besides those that processes write about themselves.
func (s *Store) Vacant(ctx context.Context) error {
	found, err := s.sources(ctx)
	for _, one := range found {
		if one.records > 0 {
			return fmt.Errorf("%w: %d in %s", ErrNotEmpty, one.records, one.name)
		}
	}
	return err
}

// source is a stream that exists.
type source struct {
	*jet

	name       string
	perSubject int
	limits     Limits
	records    uint64
}

// sources returns the streams that exist, logs first: a run is in its bucket before it has a log.
func (s *Store) sources(ctx context.Context) (all []source, err error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	if s.engine == nil {
		return nil, errors.ErrUnsupported
	}
	e := s.engine()
	err = e.scope.try(ctx, func(ctx context.Context) error {
		all = nil
		found, err := e.list(ctx)
		if err != nil {
			return err
		}
		maps.DeleteFunc(found, func(name string, _ *jetstream.StreamInfo) bool { return !isMovable(name) })
		for name, info := range found {
			opened, err := e.js.Stream(ctx, info.Config.Name)
			if err != nil {
				return err
			}
			all = append(all, newSource(name, info, &jet{e.js, opened, e.scope}))
		}
		return nil
	})
	slices.SortFunc(all, func(a, b source) int {
		return cmp.Or(slices.Index(kinds, kindOf(a.name))-slices.Index(kinds, kindOf(b.name)), strings.Compare(a.name, b.name))
	})
	return all, err
}

func newSource(name string, info *jetstream.StreamInfo, in *jet) source {
	set := info.Config
	limits := Limits{Records: int(set.MaxMsgs), Age: set.MaxAge, Bytes: set.MaxBytes, Keep: set.Discard == jetstream.DiscardNew}
	return source{in, name, max(0, int(set.MaxMsgsPerSubject)), limits.withDefaults(), info.State.Msgs}
}

// kinds are the kinds of streams with records, in the order in which they are copied.
var kinds = []string{"log", "bucket", "schedule"}

func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "_")
	return kind
}

// PrivatePrefix begins the names of places with tokens, sessions and logins. No copy has them: a restored one would bring back what was
// revoked, or tokens that others have replaced.
const PrivatePrefix = "private_"

// FilesPrefix begins the names of places with files that gateways also have in their directories. No copy has them: a copy of the
// directories has the files.
const FilesPrefix = "files_"

// isMovable reports whether another store can use the records of a stream. Alarms are set again from their schedules.
func isMovable(name string) bool {
	own := name == "bucket_members" || name == "bucket_schema" || strings.HasPrefix(name, "bucket_claims_")
	_, place, _ := strings.Cut(name, "_")
	own = own || strings.HasPrefix(place, PrivatePrefix) || strings.HasPrefix(place, FilesPrefix)
	return slices.Contains(kinds, kindOf(name)) && !own
}

func (f source) copyTo(ctx context.Context, to *Store, count func()) error {
	out, err := to.stream(ctx, f.name, f.perSubject, f.limits)
	for from := uint64(1); err == nil; {
		var m message
		if m, err = f.next(ctx, f.name+".>", from); err != nil {
			break
		}
		from = m.number + 1
		if _, err = out.append(ctx, m.subject, message{data: m.data, deleted: m.deleted}, -1); err == nil {
			count()
		}
	}
	if errors.Is(err, ErrNotFound) { // the end
		return nil
	}
	return err
}

// clear removes all records of these streams.
func (s *Store) clear(ctx context.Context, copied []source) error {
	var failed []error
	for _, f := range copied {
		in, err := s.stream(ctx, f.name, f.perSubject, f.limits)
		if err == nil {
			err = in.remove(ctx, f.name+".>", 0)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
