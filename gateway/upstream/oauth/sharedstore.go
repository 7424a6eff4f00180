package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/seal"
	"sallyport/internal/sleep"
)

// Records are records that several gateways read and write, sealed. A *sharedrecords.Records implements it.
type Records interface {
	// Get returns a record, with the revision 0 if there is none. With fresh it is not that of a moment ago.
	Get(ctx context.Context, fresh bool, key ...string) (data []byte, revision uint64, err error)
	// Put writes a record in place of the one with a revision. It returns false if another process was faster.
	Put(ctx context.Context, data []byte, revision uint64, key ...string) (ok bool, err error)
	// Delete deletes a record, if there is one.
	Delete(ctx context.Context, key ...string) error
	// Lock waits until no other process has the lock of a key.
	Lock(ctx context.Context, key ...string) (unlock func(), err error)
}

// keepInterval is how often it is tried to write a record while the store does not answer.
const keepInterval = 500 * time.Millisecond

// errReplaced is the error of a write in place of a record that another gateway has replaced or deleted.
var errReplaced = errors.New("another gateway has changed the login in the meantime")

// readShared returns the shared record, nil if there is none.
func (s *store) readShared(fresh bool) (*record, error) {
	in, err := s.shared()
	if err != nil {
		return nil, fmt.Errorf("read login: %w", err)
	}
	if err := s.moveToShared(in); err != nil {
		return nil, err
	}
	r, err := s.getShared(in, fresh)
	if err != nil || r == nil {
		return nil, err
	}
	own := *r
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &own
	return r, nil
}

func (s *store) getShared(in Records, fresh bool) (*record, error) {
	data, revision, err := in.Get(context.Background(), fresh, s.name())
	switch {
	case errors.Is(err, seal.ErrDamaged):
		return nil, s.lostError("the stored login is damaged")
	case err != nil:
		return nil, fmt.Errorf("read login: %w", err)
	case revision == 0:
		return nil, nil
	}
	var about struct{ Version int }
	if json.Unmarshal(data, &about) == nil && about.Version > recordVersion {
		return nil, errors.New("read login: it was stored by a newer version")
	}
	r, err := s.decode(data)
	if err != nil {
		return nil, err
	}
	r.revision = revision
	return r, nil
}

// writeShared writes a record in place of the one that it was read as; a new one in place of any. The caller holds the lock. While the
// store does not answer it is tried again: a refresh token that was used is lost otherwise.
func (s *store) writeShared(r *record) error {
	in, err := s.shared()
	if err != nil {
		return fmt.Errorf("store login: %w", err)
	}
	r.Store = storeShared
	data, err := r.encode()
	if err != nil {
		return fmt.Errorf("store login: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grantTimeout)
	defer cancel()
	for {
		done, err := s.putShared(ctx, in, r.revision, data)
		if done {
			return err
		}
		if sleep.For(ctx, keepInterval) != nil {
			return fmt.Errorf("store login: %w", err)
		}
	}
}

// putShared reports whether the record is written, or cannot be.
func (s *store) putShared(ctx context.Context, in Records, replaces uint64, data []byte) (done bool, err error) {
	now, revision, err := in.Get(ctx, true, s.name())
	switch {
	case err != nil && !errors.Is(err, seal.ErrDamaged): // a damaged one is replaced
		return errors.Is(err, seal.ErrOtherKey) || errors.Is(err, seal.ErrNewer), err
	case err == nil && string(now) == string(data):
		return true, nil // an earlier attempt succeeded
	case replaces > 0 && revision != replaces:
		return true, errReplaced
	}
	return in.Put(ctx, data, revision, s.name())
}

func (s *store) removeShared() error {
	in, err := s.shared()
	if err == nil {
		err = in.Delete(context.Background(), s.name())
	}
	if err != nil {
		return fmt.Errorf("forget tokens: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
	return nil
}

func (s *store) lockShared(ctx context.Context) (unlock func(), err error) {
	in, err := s.shared()
	if err == nil {
		unlock, err = in.Lock(ctx, s.name())
	}
	if err != nil {
		return nil, fmt.Errorf("lock login: %w", err)
	}
	return unlock, nil
}

// local returns the store of this machine, without the shared one.
func (s *store) local() *store {
	return &store{dir: s.dir, id: s.id, url: s.url, principal: s.principal, kind: s.kind, page: s.page, key: s.key, now: s.now, log: s.log}
}

// moveToShared moves a login of this machine to the shared records, once, unless they have one.
func (s *store) moveToShared(in Records) error {
	own := s.local()
	if r, err := own.readPublic(); err != nil || r == nil {
		return nil // one that cannot be read cannot be moved either
	}
	ctx, cancel := context.WithTimeout(context.Background(), grantTimeout)
	defer cancel()
	unlock, err := own.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := own.read()
	if err != nil || r == nil {
		return nil // another process was faster, or the keyring does not have it
	}
	r.Store = storeShared
	data, err := r.encode()
	if err != nil {
		return fmt.Errorf("move login: %w", err)
	}
	moved, err := in.Put(ctx, data, 0, s.name())
	if err != nil {
		return fmt.Errorf("move login: %w", err)
	}
	if err := own.remove(); err != nil {
		return err
	}
	s.log.Info("the login of this machine was moved to the store", "upstream", s.id, "had_one", !moved)
	return nil
}
