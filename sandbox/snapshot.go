//go:build linux

package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sallyport/sandbox/checkpoint"
)

// snapshots keeps, by kind, the state of a sandbox whose guest has started and waits
// for its bridge; other sandboxes are restored from it. Snapshots are named by a digest
// of all their inputs in a folder, and later hosts use them too.
//
// A snapshot is taken before any program runs, so it contains only the guest's state.
type snapshots struct {
	host *Host
	dir  string // "" disables snapshots

	mu     sync.Mutex
	byKind map[kind]*snapshot
}

// snapshot is one that exists, or is being made.
type snapshot struct {
	ready chan struct{} // closed when image and err are known
	image string
	err   error
}

const (
	// snapshotFormat is changed when what is in a snapshot changes without any of its inputs.
	snapshotFormat = "2"
	// keepSnapshots is how long an unused snapshot is kept.
	keepSnapshots = 30 * 24 * time.Hour
)

// find returns the snapshot image of a kind, or "" if there is none yet; it starts making one in that case.
func (s *snapshots) find(k kind) string {
	image, _ := s.made(k)
	return image
}

// made is find with the error of making the snapshot, nil while it is being made.
func (s *snapshots) made(k kind) (image string, err error) {
	if s.dir == "" {
		return "", nil
	}
	made := s.ensure(k)
	select {
	case <-made.ready:
		return made.image, made.err
	default:
		return "", nil
	}
}

// wait waits until the snapshot of a kind is made or has failed, or ctx ends.
func (s *snapshots) wait(ctx context.Context, k kind) {
	if s.dir == "" {
		return
	}
	select {
	case <-s.ensure(k).ready:
	case <-ctx.Done():
	}
}

// ensure returns the snapshot of a kind, and starts making it if there is none on disk.
func (s *snapshots) ensure(k kind) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.byKind[k]
	if made != nil {
		return made
	}
	made = &snapshot{ready: make(chan struct{})}
	s.byKind[k] = made
	key, err := s.host.snapshotKey(k)
	if err != nil {
		made.err = err
		s.host.log.Warn("no snapshot", "kind", k.String(), "error", err)
		close(made.ready)
		return made
	}
	path := filepath.Join(s.dir, key)
	if checkpoint.Verify(path) == nil {
		made.image = path
		close(made.ready)
		return made
	}
	s.host.snapshotting.Go(func() { s.make(k, path, made) })
	return made
}

func (s *snapshots) make(k kind, path string, made *snapshot) {
	defer close(made.ready)
	start := time.Now()
	if made.err = s.host.makeSnapshot(k, path); made.err == nil {
		made.image = path
		s.host.log.Info("snapshot made", "kind", k.String(), "took", time.Since(start))
	} else if s.host.ctx.Err() == nil {
		s.host.log.Warn("snapshot cannot be made: sandboxes start slower", "kind", k.String(), "error", made.err)
	}
}

// invalidate removes an image that could not be restored, so that the next request makes a new one.
func (s *snapshots) invalidate(k kind, image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.byKind[k]; made != nil && made.image == image {
		delete(s.byKind, k)
		_ = os.RemoveAll(image)
	}
}

// makeSnapshot starts a guest, waits until it is ready, and saves its state at path.
func (h *Host) makeSnapshot(k kind, path string) (err error) {
	id := "s-" + strings.ToLower(rand.Text()[:12])
	b, err := h.newInstance(k, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	half := checkpoint.Partial(filepath.Dir(path), id)
	defer func() { _ = os.RemoveAll(half) }()
	waits := &readyWriter{ready: make(chan struct{})}
	if err := b.launch(waits, ""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.ctx, startLimit)
	defer cancel()
	select {
	case <-waits.ready:
	case <-b.process.Done():
		b.stderr.Wait()
		return fmt.Errorf("start the guest: it ended: %.300q", b.preamble.output().Text)
	case <-ctx.Done():
		return fmt.Errorf("start the guest: %w", context.Cause(ctx))
	}
	if !k.forks { // a zygote limits the file systems of each program
		b.limitInodes(ctx)
	}
	if err := h.runsc.Checkpoint(ctx, id, half); err != nil {
		return err
	}
	return checkpoint.Commit(half, path)
}

// readyWriter detects the line that a guest prints when it is ready.
type readyWriter struct {
	buf   []byte
	ready chan struct{}
}

func (w *readyWriter) Write(p []byte) (int, error) {
	if len(w.buf) < 64 {
		w.buf = append(w.buf, p...)
		if strings.HasPrefix(string(w.buf), "ready\n") {
			close(w.ready)
			w.buf = make([]byte, 64)
		}
	}
	return len(p), nil
}

// openSnapshots makes the folder for snapshots and removes unused snapshots from it. Without Options.Snapshots, a
// pool uses a folder that is removed with the host.
func (h *Host) openSnapshots() (*snapshots, error) {
	s := &snapshots{host: h, byKind: map[kind]*snapshot{}}
	switch {
	case h.opts.Snapshots != "":
		s.dir = h.opts.Snapshots
	case h.opts.Pool.Max > 0:
		s.dir = filepath.Join(h.dir, "snapshots")
	default:
		return s, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make snapshot directory: %w", err)
	}
	if err := checkPrivate(s.dir); err != nil {
		return nil, err
	}
	return s, checkpoint.Sweep(s.dir, keepSnapshots)
}
