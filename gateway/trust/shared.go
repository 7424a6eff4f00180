package trust

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync/atomic"

	"sallyport/internal/atomicfile"
	"sallyport/internal/filelock"
	"sallyport/internal/lockfile"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
)

// maxSharedLock bounds the record with the lock, in bytes.
const maxSharedLock = 6 << 20

// sharedLock keeps the lock of several gateways in one record of their store. The lock file of each is a copy: what a person or
// another process changes in it is a change of the record, and what the record says otherwise is written to it.
type sharedLock struct {
	path    string
	log     *slog.Logger
	bucket  *store.Bucket
	breaker *store.Breaker
	end     func()
	// revision is that of the newest record, as the store said.
	revision atomic.Uint64
	// copied is the content of the file when it was last a copy; nil if it never was, and then its lines only add to the record.
	copied *lock
}

// openSharedLock returns the lock in a store, nil if no other gateway shares it.
func openSharedLock(in *store.Store, path string, log *slog.Logger) (*sharedLock, error) {
	if !in.Shared() {
		return nil, nil
	}
	bucket, err := in.Bucket("pins", store.Limits{Records: 10, Bytes: 16 << 20, Record: maxSharedLock + 1<<10, Keep: true})
	if err != nil {
		return nil, err
	}
	s := &sharedLock{path: path, log: log, bucket: bucket, breaker: in.Breaker()}
	s.end = bucket.Subscribe(log, func(e store.Entry) { s.revision.Store(e.Revision) })
	return s, nil
}

// close is for nil, too.
func (s *sharedLock) close() {
	if s != nil {
		s.end()
	}
}

// update changes the record and then the file, and returns the new content. The file is changed only if the record was.
func (s *sharedLock) update(change func(lock)) (l lock, err error) {
	unlock, err := filelock.Dir(filepath.Dir(s.path), lockTimeout)
	if err != nil {
		return lock{}, err
	}
	defer unlock()
	file, err := readLock(s.path)
	if err != nil {
		return lock{}, err
	}
	if (stampOf(s.path) == fileStamp{}) {
		s.copied = nil // that the file of one machine is gone is no decision about all tools
	}
	err = s.breaker.Do(context.Background(), func(ctx context.Context) error {
		entry, err := s.bucket.Change(ctx, store.Key{"lock"}, func(before store.Entry) ([]byte, error) {
			l = newLock()
			if err := lockfile.Parse(before.Value, l.parseLine); err != nil {
				return nil, fmt.Errorf("read lock in the store: %w", err)
			}
			s.merge(l, file)
			change(l)
			return s.encode(l, before.Value)
		})
		s.revision.Store(max(s.revision.Load(), entry.Revision))
		return err
	})
	if err != nil {
		return lock{}, err
	}
	return l, s.copy(file, l)
}

// encode returns the record of a lock; nil if it is the one before.
func (s *sharedLock) encode(l lock, before []byte) ([]byte, error) {
	after := l.format()
	switch {
	case len(after) > maxSharedLock:
		return nil, fmt.Errorf("the lock would be larger than %d MiB; remove the lines of upstreams that are gone from %s", maxSharedLock>>20, s.path)
	case bytes.Equal(before, after):
		return nil, nil
	}
	return after, nil
}

// merge applies to l what was changed in the file since it was a copy. A file that never was adds what l lacks.
func (s *sharedLock) merge(l, file lock) {
	if s.copied == nil {
		l.pinAll(file.pins)
		for d, r := range file.rejected {
			if l.pins[d.upstream][d.name] != d.digest {
				l.rejected[d] = r
			}
		}
		return
	}
	for up, tools := range file.pins {
		for name, digest := range tools {
			if s.copied.pins[up][name] != digest {
				l.pin(definition{up, name, digest}, true)
			}
		}
	}
	for up, tools := range s.copied.pins {
		for name := range tools {
			if file.pins[up][name] == "" {
				delete(l.pins[up], name)
			}
		}
	}
	s.mergeRejected(l, file)
}

func (s *sharedLock) mergeRejected(l, file lock) {
	for d, r := range file.rejected {
		if s.copied.rejected[d] == r {
			continue
		}
		if l.pins[d.upstream][d.name] == d.digest {
			delete(l.pins[d.upstream], d.name)
		}
		l.rejected[d] = r
	}
	for d := range s.copied.rejected {
		if _, still := file.rejected[d]; !still {
			delete(l.rejected, d)
		}
	}
}

// copy makes the file a copy of the record. A file that cannot be written is no error: the record is what counts.
func (s *sharedLock) copy(file, l lock) error {
	l = lock{pins: clonePins(l.pins), rejected: maps.Clone(l.rejected)}
	text := l.format()
	if !bytes.Equal(text, file.format()) {
		if s.copied == nil {
			warnOther(s.log, s.path, file, l)
		}
		if err := atomicfile.Replace(s.path, text, 0o644); err != nil {
			s.log.Warn("the lock file cannot be written: it is no copy of the lock in the store", "file", s.path, "error", err)
			l = file
		}
	}
	s.copied = &l
	return nil
}

func clonePins(p pins) pins {
	all := pins{}
	for up, tools := range p {
		all[up] = maps.Clone(tools)
	}
	return all
}

// warnOther logs which tools have another digest in the file than in the store, which counts.
func warnOther(log *slog.Logger, path string, file, l lock) {
	for up, tools := range file.pins {
		for name, digest := range tools {
			if now := l.pins[up][name]; now != digest {
				log.Warn("the lock file has another definition than the store, which counts", "file", path, "upstream", up, "tool", sanitize.Line(name, 80), "file_digest", shortDigest(digest), "digest", shortDigest(now))
			}
		}
	}
}
