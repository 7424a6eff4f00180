package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
)

// Log is a sequence of records, each under a key: the records of a key form a log of their own (such as one workflow
// run). All methods are safe for concurrent use.
type Log struct{ place }

// Log returns the log of that name: a letter, then at most 31 of a-z, 0-9 and "_". It is created on first use; the
// limits of a name must not change within a process.
func (s *Store) Log(name string, limits Limits) (*Log, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("%w: a log cannot be called %.80q", ErrInvalid, name)
	}
	return &Log{s.place("log", name, 0, limits)}, nil
}

// Append adds a record under a key, and returns its revision.
func (l *Log) Append(ctx context.Context, key Key, value []byte) (revision uint64, err error) {
	return l.append(ctx, key, message{data: value}, -1)
}

// AppendAfter appends a record under a key if the key's last record has the revision last, 0 for none; else it
// returns ErrConflict: this fences concurrent writers of a log.
func (l *Log) AppendAfter(ctx context.Context, key Key, last uint64, value []byte) (revision uint64, err error) {
	if last > math.MaxInt64 {
		return 0, ErrConflict
	}
	revision, err = l.append(ctx, key, message{data: value}, int64(last))
	if !errors.Is(err, ErrConflict) || l.store.members == nil {
		return revision, err
	}
	if after := l.foreignAfter(ctx, key, last); after > 0 {
		return l.append(ctx, key, message{data: value}, after)
	}
	return 0, err
}

// foreignAfter returns the number of the last message of a key, if all after a record are of other programs; else 0.
func (l *Log) foreignAfter(ctx context.Context, key Key, last uint64) int64 {
	subject, err := l.subject(key)
	if err != nil {
		return 0
	}
	in, err := l.stream(ctx)
	if err != nil {
		return 0
	}
	newest, err := in.last(ctx, subject)
	if err != nil || !newest.foreign || newest.number > math.MaxInt64 {
		return 0
	}
	if _, err := in.next(ctx, subject, last+1); !errors.Is(err, ErrNotFound) { // it skips foreign ones
		return 0
	}
	return int64(newest.number)
}

// Last returns the newest record under a key, or ErrNotFound.
func (l *Log) Last(ctx context.Context, key Key) (Entry, error) {
	subject, err := l.subject(key)
	if err != nil {
		return Entry{}, err
	}
	in, err := l.stream(ctx)
	if err != nil {
		return Entry{}, err
	}
	m, err := in.last(ctx, subject)
	if err == nil && m.foreign {
		return l.lastOwn(ctx, key)
	}
	if err != nil {
		return Entry{}, err
	}
	return Entry{key, m.data, m.number, m.time}, nil
}

// lastOwn is Last for a key whose last message is of another program.
func (l *Log) lastOwn(ctx context.Context, key Key) (last Entry, err error) {
	err = ErrNotFound
	for last, err = range l.Read(ctx, key, 0) {
		if err != nil {
			return Entry{}, err
		}
	}
	return last, err
}

// Trim removes the records of a key with a revision of at most upTo. The removal survives a kill, but not always a loss of power.
func (l *Log) Trim(ctx context.Context, key Key, upTo uint64) error {
	if upTo == 0 {
		return nil
	}
	return l.removeUpTo(ctx, key, upTo)
}

// Read yields the records of a key, or of all for nil, with a revision of at least from, the oldest first. The
// iteration ends at the first error.
func (l *Log) Read(ctx context.Context, key Key, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		pattern, err := l.pattern(key)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		l.walk(ctx, pattern, max(from, 1), yield)
	}
}

// Follow calls do with the records that Read yields and then with each new record, in order, until ctx ends or do
// returns an error, and returns that error.
func (l *Log) Follow(ctx context.Context, key Key, from uint64, do func(Entry) error) error {
	pattern, err := l.pattern(key)
	if err != nil {
		return err
	}
	in, err := l.stream(ctx)
	if err != nil {
		return err
	}
	return in.follow(ctx, pattern, max(from, 1), func(m message) error {
		entry, err := l.entry(m)
		if err != nil && l.store.members != nil {
			return nil
		}
		if err != nil {
			return err
		}
		return do(entry)
	})
}

func (l *Log) pattern(key Key) (string, error) {
	if len(key) == 0 {
		return l.name + ".>", nil
	}
	return l.subject(key)
}
