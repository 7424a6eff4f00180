// Package store stores records and logs of events, as opposed to files that people own. Its main type is [Store],
// which [Open] keeps in a directory, with NATS JetStream embedded in the process, and [Memory] in memory. A [Bucket]
// maps keys to values with revisions; a [Log] is append-only, and an append can be fenced by the expected last
// record. [Schedules] fire keys at set times.
//
// An acknowledged write survives a kill of the process and a loss of power. After an error other than those below,
// the write may or may not have happened.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// Errors, for use with errors.Is.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrConflict: the record was written concurrently; nothing was changed.
	ErrConflict = errors.New("the record has changed meanwhile")
	// ErrInvalid: the key, the name or the size is invalid; nothing was changed.
	ErrInvalid = errors.New("not a valid record")
	// ErrInUse: another process uses the directory.
	ErrInUse = errors.New("the directory is in use")
	// ErrCorrupt: the directory's content cannot be read.
	ErrCorrupt = errors.New("the records are damaged")
	// ErrNewer: the directory was written by a newer version.
	ErrNewer = errors.New("the records are of a newer version")
	// ErrFull: there is no room, and the place must not drop records (Limits.Keep); nothing was changed.
	ErrFull = errors.New("there is no more room for records")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrUnreachable: the servers of a [Remote] do not answer, or a majority of them is down.
	ErrUnreachable = errors.New("the store does not answer")
	// ErrRefused: the servers of a [Remote] do not accept this client, or cannot be used as they are set up.
	ErrRefused = errors.New("the store cannot be used")
)

// Limits bound a bucket or a log. Beyond a limit the oldest records are dropped, unless Keep is set.
type Limits struct {
	// Records is the maximum number; 0 means 10,000.
	Records int
	// Age is the maximum age of a record; 0 means no limit.
	Age time.Duration
	// Bytes is the maximum total size; 0 means 64 MiB. A Store in a directory reserves it, within Options.MaxBytes in
	// all.
	Bytes int64
	// Record is the maximum size of one record, in bytes; 0 means 2 MiB, and 7 MiB is the maximum.
	Record int
	// Keep rejects writes beyond Records or Bytes with ErrFull, so that records are dropped only by Remove and Age.
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

// Store stores records. All methods are safe for concurrent use.
type Store struct {
	dir        string // "" for memory
	open       func(ctx context.Context, name string, perSubject int, limits Limits) (stream, error)
	stop       func() error
	wait       func(ctx context.Context) error
	openAlarms func(ctx context.Context, name string) (alarmClock, error)

	// onWrite is Options.OnWrite.
	onWrite func(place string, done bool)
	log     *slog.Logger
	members *members       // nil for a store of one process
	remote  *remote        // nil for a store of one process
	engine  func() *engine // nil for memory; it is there when wait has returned

	mu          sync.Mutex
	streams     map[string]stream
	alarmClocks map[string]alarmClock
}

// newStore returns a store without an engine, which is always ready.
func newStore(onWrite func(place string, done bool)) *Store {
	return &Store{
		streams: map[string]stream{}, alarmClocks: map[string]alarmClock{}, onWrite: onWrite, log: slog.New(slog.DiscardHandler),
		wait: func(context.Context) error { return nil }, stop: func() error { return nil },
	}
}

// stream is the basis of buckets and logs: messages under subjects, numbered from 1.
type stream interface {
	// append adds a message, and returns its number. With after >= 0 the subject's last message must have that number,
	// 0 for none.
	append(ctx context.Context, subject string, m message, after int64) (uint64, error)
	// last returns the last message of a subject.
	last(ctx context.Context, subject string) (message, error)
	// lasts returns the last message of each subject with a prefix followed by ".>", in the order of their numbers.
	lasts(ctx context.Context, pattern string) ([]message, error)
	// next returns the first message at or after a number with a matching subject. The pattern is a subject, or a
	// prefix followed by ".>".
	next(ctx context.Context, pattern string, from uint64) (message, error)
	// follow calls do with each message that next would find, including future ones, until ctx ends or do fails.
	follow(ctx context.Context, pattern string, from uint64, do func(message) error) error
	// remove removes all messages of a subject, or those up to a number.
	remove(ctx context.Context, subject string, upTo uint64) error
	// usage returns the number and the size of the messages.
	usage(ctx context.Context) (records int, bytes int64, err error)
	// subjects returns the subjects with messages that match a pattern, unordered.
	subjects(ctx context.Context, pattern string) ([]string, error)
}

// message is one record in a stream.
type message struct {
	subject string
	number  uint64
	time    time.Time
	data    []byte
	deleted bool // a tombstone
	foreign bool // of another program
}

// Ready waits until the store is usable, and returns why if it is not.
func (s *Store) Ready(ctx context.Context) error { return s.wait(ctx) }

// Close stops all background work and waits for it. It is idempotent.
func (s *Store) Close() error { return s.stop() }

// namePattern matches the name of a bucket or a log.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// stream opens a stream once. Later calls must have the same limits.
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
		opened = observedStream{opened, name, s.onWrite}
	}
	s.streams[name] = opened
	return opened, nil
}

// alarms creates a bell once.
func (s *Store) alarms(ctx context.Context, name string) (alarmClock, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.alarmClocks[name]; known != nil {
		return known, nil
	}
	made, err := s.openAlarms(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open alarms %s: %w", name, err)
	}
	if s.onWrite != nil {
		made = observedAlarms{made, name, s.onWrite}
	}
	s.alarmClocks[name] = made
	return made, nil
}

// place is a stream that is opened on first use.
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

// subject returns the subject of a record.
func (p place) subject(key Key) (string, error) {
	encoded, err := key.encode()
	if err != nil {
		return "", err
	}
	return p.name + "." + encoded, nil
}

// Remove removes all records of a key, including tombstones. A missing key is not an error. The removal survives a
// kill, but not always a loss of power.
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

// Usage is the usage of a place.
type Usage struct {
	Records int
	// Bytes is the size on disk, with overhead.
	Bytes int64
	// Share is the larger used fraction of the two limits: 1 is full.
	Share float64
}

// Usage returns the usage.
func (p place) Usage(ctx context.Context) (Usage, error) {
	in, err := p.stream(ctx)
	if err != nil {
		return Usage{}, err
	}
	records, size, err := in.usage(ctx)
	share := max(float64(records)/float64(p.limits.Records), float64(size)/float64(p.limits.Bytes))
	return Usage{records, size, share}, err
}

// Keys returns all keys with records, including tombstones, unordered.
func (p place) Keys(ctx context.Context) ([]Key, error) { return p.keys(ctx, p.name+".>") }

// KeysUnder returns the keys with records that extend prefix, including tombstones, unordered.
func (p place) KeysUnder(ctx context.Context, prefix Key) ([]Key, error) {
	subject, err := p.subject(prefix)
	if err != nil {
		return nil, err
	}
	return p.keys(ctx, subject+".>")
}

func (p place) keys(ctx context.Context, pattern string) ([]Key, error) {
	in, err := p.stream(ctx)
	if err != nil {
		return nil, err
	}
	subjects, err := in.subjects(ctx, pattern)
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
