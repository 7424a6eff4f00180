// Package store keeps records and logs: what happened, as against the files that
// people own. Its main type is [Store], which [Open] keeps in a directory, by NATS
// JetStream embedded in the process, and [Memory] nowhere at all. A [Bucket] has
// one value to a key, with revisions; a [Log] grows at its end, and an append can
// be fenced by what it expects to come after. [Schedules] say when something is due.
//
// What a call has acknowledged survives a kill of the process and a loss of power.
// A call that ends with another error than those below may have been done or not.
package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"
)

// What can be wrong, to be asked for with errors.Is.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrConflict: the record was written concurrently; nothing was changed.
	ErrConflict = errors.New("the record has changed meanwhile")
	// ErrInvalid: the key, the name or the size cannot be; nothing was changed.
	ErrInvalid = errors.New("not a valid record")
	// ErrInUse: another process serves from the directory.
	ErrInUse = errors.New("the directory is in use")
	// ErrCorrupt: what is in the directory cannot be read.
	ErrCorrupt = errors.New("the records are damaged")
	// ErrNewer: the directory was written by a newer version.
	ErrNewer = errors.New("the records are of a newer version")
	// ErrFull: it does not fit, and the place keeps what it has (Limits.Keep); nothing was changed.
	ErrFull = errors.New("there is no more room for records")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Limits say how much a bucket or a log keeps. What is over one goes, the oldest first, unless Keep is set.
type Limits struct {
	// Records is how many; 0 is 10,000.
	Records int
	// Age is how old a record may become; 0 is any age.
	Age time.Duration
	// Bytes is how much all of them take together; 0 is 64 MiB. A Store in a directory
	// sets it aside, and keeps no more than Options.MaxBytes in all.
	Bytes int64
	// Record is how large one may be, in bytes; 0 is 2 MiB, and more than 7 MiB is not possible.
	Record int
	// Keep refuses what is over Records or Bytes, with ErrFull, so that nothing goes but by Remove and by Age.
	Keep bool
}

func (l Limits) withDefaults() Limits {
	if l.Records == 0 {
		l.Records = 10_000
	}
	if l.Bytes == 0 {
		l.Bytes = 64 << 20
	}
	if l.Record == 0 {
		l.Record = 2 << 20
	}
	l.Record = min(l.Record, maxPayload-(1<<20))
	return l
}

// Store is one place for records. All methods are safe for concurrent use.
type Store struct {
	dir  string // "" for memory
	open func(ctx context.Context, name string, perSubject int, limits Limits) (stream, error)
	stop func() error
	wait func(ctx context.Context) error
	ring func(ctx context.Context, name string) (bell, error)

	// onWrite is Options.OnWrite.
	onWrite func(place string, done bool)

	mu      sync.Mutex
	streams map[string]stream
	bells   map[string]bell
}

// stream is what buckets and logs stand on: messages under subjects, numbered through from 1.
type stream interface {
	// append adds a message, and returns its number. With after >= 0 the subject's last message must have that number, 0 is none.
	append(ctx context.Context, subject string, m message, after int64) (uint64, error)
	// last returns the last message of a subject.
	last(ctx context.Context, subject string) (message, error)
	// next returns the first message at or after a number with a matching subject: is equal, or begins as one that ends with ".>" does.
	next(ctx context.Context, pattern string, from uint64) (message, error)
	// follow calls do with each message that next would find, and with those to come, until ctx ends or do fails.
	follow(ctx context.Context, pattern string, from uint64, do func(message) error) error
	// remove takes out all messages of a subject, or those up to a number.
	remove(ctx context.Context, subject string, upTo uint64) error
	// usage says how much there is.
	usage(ctx context.Context) (records int, bytes int64, err error)
	// subjects are those that have messages, in no order.
	subjects(ctx context.Context) ([]string, error)
}

// message is one record in a stream.
type message struct {
	subject string
	number  uint64
	time    time.Time
	data    []byte
	deleted bool // marks that what the subject had is gone
}

// Ready waits until the store can be used, and says why if it cannot.
func (s *Store) Ready(ctx context.Context) error { return s.wait(ctx) }

// Close ends everything that the store began, and waits for it. It is idempotent.
func (s *Store) Close() error { return s.stop() }

// named is what a bucket or a log may be called.
var named = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// stream opens a stream once. Another time it must be asked for with the same limits.
func (s *Store) stream(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.streams[name]; known != nil {
		return known, nil
	}
	opened, err := s.open(ctx, name, perSubject, limits)
	if err != nil {
		return nil, fmt.Errorf("open records %s: %w", name, err)
	}
	if s.onWrite != nil {
		opened = watched{opened, name, s.onWrite}
	}
	s.streams[name] = opened
	return opened, nil
}

// bell makes a bell once.
func (s *Store) bell(ctx context.Context, name string) (bell, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.bells[name]; known != nil {
		return known, nil
	}
	made, err := s.ring(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open alarms %s: %w", name, err)
	}
	if s.onWrite != nil {
		made = watchedBell{made, name, s.onWrite}
	}
	s.bells[name] = made
	return made, nil
}

// place is a stream that is opened when it is first needed.
type place struct {
	store      *Store
	name       string
	perSubject int
	limits     Limits
}

func (s *Store) place(kind, name string, perSubject int, limits Limits) place {
	return place{s, kind + "_" + name, perSubject, limits.withDefaults()}
}

func (p place) stream(ctx context.Context) (stream, error) {
	return p.store.stream(ctx, p.name, p.perSubject, p.limits)
}

// subject names a record of the place.
func (p place) subject(key Key) (string, error) {
	encoded, err := key.encode()
	if err != nil {
		return "", err
	}
	return p.name + "." + encoded, nil
}

// Remove takes out all that is under a key, marks of deletions too. What is not there is no error. After a loss of power,
// as against a kill, it may be there again.
func (p place) Remove(ctx context.Context, key Key) error { return p.removeUpTo(ctx, key, 0) }

func (p place) removeUpTo(ctx context.Context, key Key, revision uint64) error {
	subject, err := p.subject(key)
	if err != nil {
		return err
	}
	in, err := p.stream(ctx)
	if err != nil {
		return err
	}
	return in.remove(ctx, subject, revision)
}

// Usage is how much of its limits a place has used.
type Usage struct {
	Records int
	// Bytes are those on the disk, with what belongs to each record.
	Bytes int64
	// Share is the part of the limits that is used, of whichever is nearer: 1 is full.
	Share float64
}

// Usage says how much is used.
func (p place) Usage(ctx context.Context) (Usage, error) {
	in, err := p.stream(ctx)
	if err != nil {
		return Usage{}, err
	}
	records, size, err := in.usage(ctx)
	share := max(float64(records)/float64(p.limits.Records), float64(size)/float64(p.limits.Bytes))
	return Usage{records, size, share}, err
}

// Keys are all that have records, marks of deletions too, in no order.
func (p place) Keys(ctx context.Context) ([]Key, error) {
	in, err := p.stream(ctx)
	if err != nil {
		return nil, err
	}
	subjects, err := in.subjects(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, len(subjects))
	for i, subject := range subjects {
		if keys[i], err = decodeKey(subject[len(p.name)+1:]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// append writes one record.
func (p place) append(ctx context.Context, key Key, m message, after int64) (uint64, error) {
	if len(m.data) > p.limits.Record {
		return 0, fmt.Errorf("%w: %d bytes, of at most %d", ErrInvalid, len(m.data), p.limits.Record)
	}
	subject, err := p.subject(key)
	if err != nil {
		return 0, err
	}
	to, err := p.stream(ctx)
	if err != nil {
		return 0, err
	}
	return to.append(ctx, subject, m, after)
}
