package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/sleep"
)

// HeldError says that another living process has a claim.
type HeldError struct{ By Member }

// Error names the process.
func (e *HeldError) Error() string { return "it belongs to " + e.By.String() }

// Claims are exclusive claims of processes on keys. A claim of a process that has died can be taken by another. It does
// not stop a process that counts as dead and still works: writes of what is claimed must be fenced ([Log.AppendAfter],
// [Bucket.Update]). In a store of one process, every claim succeeds. It is safe for concurrent use.
type Claims struct {
	bucket *Bucket
	store  *Store

	mu    sync.Mutex
	taken map[string]time.Time
}

// Claims returns the claims of that name. The result is the same for the same name.
func (s *Store) Claims(name string) (*Claims, error) {
	if s.members == nil {
		return &Claims{store: s}, nil
	}
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	if known := s.members.claims[name]; known != nil {
		return known, nil
	}
	bucket, err := s.Bucket("claims_"+name, Limits{Records: 100_000, Bytes: 32 << 20, Record: 1 << 10})
	if err != nil {
		return nil, err
	}
	if s.members.claims == nil {
		s.members.claims = map[string]*Claims{}
	}
	made := &Claims{bucket: bucket, store: s, taken: map[string]time.Time{}}
	s.members.claims[name] = made
	return made, nil
}

// Take claims a key for this process. If another living process has it, the error is a *[HeldError].
func (c *Claims) Take(ctx context.Context, key Key) error {
	if c.bucket == nil {
		return nil
	}
	id := c.store.members.self.ID
	for range 3 {
		err := c.take(ctx, key, id)
		if !errors.Is(err, ErrConflict) { // else another process was faster
			return err
		}
	}
	return &HeldError{}
}

func (c *Claims) take(ctx context.Context, key Key, id string) error {
	held, err := c.bucket.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		_, err = c.bucket.Create(ctx, key, []byte(id))
	case err != nil:
		return err
	case string(held.Value) == id:
	default:
		by, alive, err := c.store.members.alive(ctx, string(held.Value))
		if err != nil {
			return err
		}
		if alive {
			return &HeldError{by}
		}
		if _, err := c.bucket.Update(ctx, key, []byte(id), held.Revision); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name, err := key.encode()
	if c.taken[name].IsZero() {
		c.taken[name] = time.Now()
	}
	return err
}

// TakenFor returns how long this process has had a claim, 0 if it has none.
func (c *Claims) TakenFor(key Key) time.Duration {
	name, err := key.encode()
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.taken[name]; err == nil && !at.IsZero() {
		return time.Since(at)
	}
	return 0
}

// Release gives up a claim of this process. A missing one is not an error.
func (c *Claims) Release(ctx context.Context, key Key) error {
	if c.bucket == nil {
		return nil
	}
	name, err := key.encode()
	if err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.taken, name)
	c.mu.Unlock()
	held, err := c.bucket.Get(ctx, key)
	if errors.Is(err, ErrNotFound) || err == nil && string(held.Value) != c.store.members.self.ID {
		return nil
	}
	if err != nil {
		return err
	}
	return c.bucket.removeUpTo(ctx, key, held.Revision)
}

// leadInterval is how often a process checks whether it may lead.
const leadInterval = 2 * time.Second

// Lead calls do in one process at a time of those that share a store, again in another when that one has died. The
// context of do ends when this process may count as dead. Lead returns what do returns, unless that is because of this, or
// the error of ctx. In a store of one process it only calls do.
func (s *Store) Lead(ctx context.Context, name string, do func(ctx context.Context) error) error {
	if s.members == nil {
		return do(ctx)
	}
	claims, err := s.Claims("leaders")
	if err != nil {
		return err
	}
	for key := (Key{name}); ; {
		var held *HeldError
		switch err := claims.Take(ctx, key); {
		case errors.Is(err, ErrClosed), errors.Is(err, ErrRefused), errors.Is(err, ErrNewer):
			return err
		case err == nil:
			s.log.Debug("this process leads", "work", name)
			err, lost := s.leadOnce(ctx, do)
			released := claims.Release(context.WithoutCancel(ctx), key)
			if ctx.Err() != nil || !lost {
				return err
			}
			s.log.Warn("this process no longer leads", "work", name, "error", errors.Join(err, released))
		case !errors.As(err, &held) && ctx.Err() == nil:
			s.log.Warn("it is not known which process leads", "work", name, "error", err)
		}
		if err := sleep.For(ctx, leadInterval); err != nil {
			return err
		}
	}
}

// leadOnce calls do until it returns or the store is unreachable.
func (s *Store) leadOnce(ctx context.Context, do func(ctx context.Context) error) (err error, lost bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for sleep.For(ctx, leadInterval/2) == nil {
			if err := s.Available(); err != nil {
				cancel(fmt.Errorf("cannot lead: %w", err))
			}
		}
	})
	err = do(ctx)
	lost = errors.Is(context.Cause(ctx), ErrUnreachable) || errors.Is(err, ErrUnreachable)
	cancel(nil)
	work.Wait()
	return err, lost
}
