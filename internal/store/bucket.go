package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// Entry is one record of a bucket or of a log.
type Entry struct {
	Key   Key
	Value []byte
	// Revision grows with each write in the bucket or log: what is newer has the higher one.
	Revision uint64
	// Time is when it was written.
	Time time.Time
}

// Bucket has one value to a key. All methods are safe for concurrent use.
type Bucket struct{ place }

// Bucket returns the bucket of that name: a letter, then at most 31 of a-z, 0-9 and "_".
// It is made when it is first used; a name has the same limits throughout a process.
func (s *Store) Bucket(name string, limits Limits) (*Bucket, error) {
	if !named.MatchString(name) {
		return nil, fmt.Errorf("%w: a bucket cannot be called %.80q", ErrInvalid, name)
	}
	return &Bucket{s.place("bucket", name, 1, limits)}, nil
}

// Get returns what a key has, or ErrNotFound.
func (b *Bucket) Get(ctx context.Context, key Key) (Entry, error) {
	m, err := b.get(ctx, key)
	if err != nil {
		return Entry{}, err
	}
	if m.deleted {
		return Entry{}, ErrNotFound
	}
	return Entry{key, m.data, m.number, m.time}, nil
}

// get also finds the mark of a record that was deleted.
func (b *Bucket) get(ctx context.Context, key Key) (message, error) {
	subject, err := b.subject(key)
	if err != nil {
		return message{}, err
	}
	in, err := b.stream(ctx)
	if err != nil {
		return message{}, err
	}
	return in.last(ctx, subject)
}

// Put gives a key a value, whatever it had before.
func (b *Bucket) Put(ctx context.Context, key Key, value []byte) (revision uint64, err error) {
	return b.append(ctx, key, message{data: value}, -1)
}

// Create gives a value to a key that has none, else ErrConflict.
func (b *Bucket) Create(ctx context.Context, key Key, value []byte) (revision uint64, err error) {
	revision, err = b.append(ctx, key, message{data: value}, 0)
	if !errors.Is(err, ErrConflict) {
		return revision, err
	}
	before, getErr := b.get(ctx, key)
	if getErr != nil || !before.deleted {
		return 0, err
	}
	return b.Update(ctx, key, value, before.number)
}

// Update replaces the value that has this revision; ErrConflict if the key has another by now, or none.
func (b *Bucket) Update(ctx context.Context, key Key, value []byte, revision uint64) (uint64, error) {
	if revision == 0 || revision > math.MaxInt64 {
		return 0, ErrConflict
	}
	return b.append(ctx, key, message{data: value}, int64(revision))
}

// Delete takes a key's value away, of this revision, or of any for 0. What is not there is no error for 0.
// A mark of it stays, and counts as a record, until the bucket's limits remove it.
func (b *Bucket) Delete(ctx context.Context, key Key, revision uint64) error {
	if revision == 0 {
		before, err := b.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = b.append(ctx, before.Key, message{deleted: true}, -1)
		return err
	}
	if revision > math.MaxInt64 {
		return ErrConflict
	}
	_, err := b.append(ctx, key, message{deleted: true}, int64(revision))
	return err
}

// List walks over the records with keys that begin with the parts of prefix and have more (all, for nil),
// in the order in which they were written. One that is written again during the walk comes once, as it was. The walk ends at the first error.
func (b *Bucket) List(ctx context.Context, prefix Key) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		pattern := b.name + ".>"
		if len(prefix) > 0 {
			subject, err := b.subject(prefix)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			pattern = subject + ".>"
		}
		seen := map[string]bool{}
		b.walk(ctx, pattern, 1, func(e Entry, err error) bool {
			name, _ := e.Key.encode() // it was decoded
			if err == nil && seen[name] {
				return true
			}
			seen[name] = true
			return yield(e, err)
		})
	}
}

// Since walks over all records that were written at a revision or later, in that order. What is older and was not written again does not come.
// One that is written again during the walk may come twice. The walk ends at the first error.
func (b *Bucket) Since(ctx context.Context, revision uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { b.walk(ctx, b.name+".>", max(revision, 1), yield) }
}

// walk yields what matches, from a number on, until there is no more.
func (p place) walk(ctx context.Context, pattern string, from uint64, yield func(Entry, error) bool) {
	in, err := p.stream(ctx)
	for err == nil {
		var m message
		if m, err = in.next(ctx, pattern, from); err != nil {
			break
		}
		from = m.number + 1
		if m.deleted {
			continue
		}
		entry, wrong := p.entry(m)
		if !yield(entry, wrong) || wrong != nil {
			return
		}
	}
	if !errors.Is(err, ErrNotFound) {
		yield(Entry{}, err)
	}
}

// entry is a message as callers see it.
func (p place) entry(m message) (Entry, error) {
	if len(m.subject) <= len(p.name) {
		return Entry{}, fmt.Errorf("%w: a record of nobody", ErrCorrupt)
	}
	key, err := decodeKey(m.subject[len(p.name)+1:])
	return Entry{key, m.data, m.number, m.time}, err
}
