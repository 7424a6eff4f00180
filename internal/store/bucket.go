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
	// Revision increases with each write in the bucket or log.
	Revision uint64
	// Time is when it was written.
	Time time.Time
}

// Bucket maps keys to values. All methods are safe for concurrent use.
type Bucket struct{ place }

// Bucket returns the bucket of that name: a letter, then at most 31 of a-z, 0-9 and "_". It is created on first use;
// the limits of a name must not change within a process.
func (s *Store) Bucket(name string, limits Limits) (*Bucket, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("%w: a bucket cannot be called %.80q", ErrInvalid, name)
	}
	return &Bucket{s.place("bucket", name, 1, limits)}, nil
}

// Get returns the value of a key, or ErrNotFound.
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

// get also returns the tombstone of a deleted record.
func (b *Bucket) get(ctx context.Context, key Key) (message, error) {
	subject, err := b.subject(key)
	if err != nil {
		return message{}, err
	}
	in, err := b.stream(ctx)
	if err != nil {
		return message{}, err
	}
	m, err := in.last(ctx, subject)
	m.deleted = m.deleted || m.foreign // it has replaced the value
	return m, err
}

// Put sets the value of a key.
func (b *Bucket) Put(ctx context.Context, key Key, value []byte) (revision uint64, err error) {
	return b.append(ctx, key, message{data: value}, -1)
}

// Create sets the value of a key that has none, else returns ErrConflict.
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

// Update replaces the value with this revision; ErrConflict if the key has another one, or none.
func (b *Bucket) Update(ctx context.Context, key Key, value []byte, revision uint64) (uint64, error) {
	if revision == 0 || revision > math.MaxInt64 {
		return 0, ErrConflict
	}
	return b.append(ctx, key, message{data: value}, int64(revision))
}

// Delete deletes a key's value with this revision, or with any for 0; a missing value is not an error for 0. A
// tombstone remains and counts as a record until the bucket's limits remove it.
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

// List yields the records whose keys extend prefix (all, for nil), in write order. A record that is rewritten during
// the iteration is yielded once, with its old value. The iteration ends at the first error.
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

// Follow calls do with the records written at a revision or later, and then with each new one, in order, until ctx ends or
// do returns an error, and returns that error. Deletions are left out.
func (b *Bucket) Follow(ctx context.Context, revision uint64, do func(Entry) error) error {
	in, err := b.stream(ctx)
	if err != nil {
		return err
	}
	return in.follow(ctx, b.name+".>", max(revision, 1), func(m message) error {
		if m.deleted {
			return nil
		}
		entry, err := b.entry(m)
		if err != nil {
			return nil //nolint:nilerr // it is reported where records are listed
		}
		return do(entry)
	})
}

// Since yields all records written at a revision or later, in that order. A record that is rewritten during the
// iteration may be yielded twice. The iteration ends at the first error.
func (b *Bucket) Since(ctx context.Context, revision uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { b.walk(ctx, b.name+".>", max(revision, 1), yield) }
}

// walk yields the matching records from a number on.
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
		if wrong != nil && p.store.members != nil { // the message has the mark of a record, and no key
			p.store.log.Error("a record in the store has no valid key: it is skipped", "number", m.number, "error", wrong)
			continue
		}
		if !yield(entry, wrong) || wrong != nil {
			return
		}
	}
	if !errors.Is(err, ErrNotFound) {
		yield(Entry{}, err)
	}
}

// entry converts a message to an Entry.
func (p place) entry(m message) (Entry, error) {
	if len(m.subject) <= len(p.name) {
		return Entry{}, fmt.Errorf("%w: a record of nobody", ErrCorrupt)
	}
	key, err := decodeKey(m.subject[len(p.name)+1:])
	return Entry{key, m.data, m.number, m.time}, err
}
