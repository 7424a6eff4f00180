// Package sharedrecords has records that several gateways read and write in a shared store, such as sessions and logins. [Records]
// remembers each record for a moment, or for [OutageLimit] while the store does not answer, and seals them if they are private.
package sharedrecords

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sallyport/internal/seal"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
)

const (
	// Recent is how long a record is used without asking the store again: what one gateway writes is known to all after this time.
	Recent = time.Second
	// OutageLimit is how long a record is used while the store does not answer. After that it may have been withdrawn elsewhere.
	OutageLimit = 5 * time.Minute
	// lockInterval is how often it is tried to take a lock of another process.
	lockInterval = 50 * time.Millisecond
)

// Records are the records of one bucket. It is safe for concurrent use.
type Records struct {
	name    string
	bucket  *store.Bucket
	claims  *store.Claims
	key     *seal.Key // nil: the records are not sealed
	breaker *store.Breaker
	recent  store.Breaker // for reads of records that are known: an old answer is better than a late one
	cache   cache

	mu     sync.Mutex
	locked map[string]chan struct{} // locks of this process, which its claims do not tell apart
}

// Open returns the records of a shared store in the bucket of store.PrivatePrefix and a name. They are not in backups.
func Open(in *store.Store, name string, limits store.Limits) (*Records, error) {
	return open(in, name, limits, nil)
}

// OpenSealed is Open for records that the servers must not be able to read. Without a key in the store the result is nil: then what is
// private stays with each gateway.
func OpenSealed(in *store.Store, name string, limits store.Limits) (*Records, error) {
	if in.Seal() == nil {
		return nil, nil
	}
	return open(in, name, limits, in.Seal())
}

func open(in *store.Store, name string, limits store.Limits, key *seal.Key) (*Records, error) {
	bucket, err := in.Bucket(store.PrivatePrefix+name, limits)
	if err != nil {
		return nil, err
	}
	claims, err := in.Claims(store.PrivatePrefix + name)
	if err != nil {
		return nil, err
	}
	return &Records{name: store.PrivatePrefix + name, bucket: bucket, claims: claims, key: key, breaker: in.Breaker(), cache: newCache(), locked: map[string]chan struct{}{}}, nil
}

// Get returns a record, with its revision for [Records.Put]; without one the revision is 0. With fresh it is what the store has now, else
// it may be of a moment ago, or the last known one while the store does not answer.
func (r *Records) Get(ctx context.Context, fresh bool, key ...string) (data []byte, revision uint64, err error) {
	name := nameOf(key)
	known, ok := r.cache.get(name)
	if !ok || fresh || known.stale || time.Since(known.asked) >= Recent {
		known, err = r.ask(ctx, key, known, ok && !fresh)
	}
	if err != nil || known.Revision == 0 {
		return nil, 0, err
	}
	data, err = r.open(known.Value, key)
	return data, known.Revision, err
}

// ask reads a record from the store. With fallback it returns the known one while the store does not answer.
func (r *Records) ask(ctx context.Context, key []string, known cached, fallback bool) (cached, error) {
	name, now := nameOf(key), time.Now()
	breaker := r.breaker
	if fallback {
		breaker = &r.recent
	}
	var found store.Entry
	err := breaker.Do(ctx, func(ctx context.Context) (err error) {
		found, err = r.bucket.Get(ctx, key)
		return err
	})
	switch {
	case err == nil:
		return r.cache.put(name, cached{Entry: found, asked: now}), nil
	case errors.Is(err, store.ErrNotFound):
		r.cache.remove(name)
		return cached{}, nil
	case fallback && ctx.Err() == nil && now.Sub(known.asked) < OutageLimit && isOutage(err):
		return known, nil
	}
	return cached{}, fmt.Errorf("read %s: %w", r.name, err)
}

// isOutage reports whether the store did not answer, or was not asked because of that.
func isOutage(err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// Put writes a record in place of the one with a revision, 0 for none. It returns false if another process has written it since.
func (r *Records) Put(ctx context.Context, data []byte, revision uint64, key ...string) (ok bool, err error) {
	name, now := nameOf(key), time.Now()
	if r.key != nil {
		data = r.key.Seal(data, r.place(key)...)
	}
	err = r.breaker.Do(ctx, func(ctx context.Context) error {
		if revision == 0 {
			revision, err = r.bucket.Create(ctx, key, data)
		} else {
			revision, err = r.bucket.Update(ctx, key, data, revision)
		}
		return err
	})
	if err != nil {
		r.cache.distrust(name)
		if errors.Is(err, store.ErrConflict) {
			return false, nil
		}
		return false, fmt.Errorf("write %s: %w", r.name, err)
	}
	r.cache.put(name, cached{Entry: store.Entry{Value: data, Revision: revision}, asked: now})
	return true, nil
}

// Delete deletes a record, if there is one. It is not used again here, even if the store does not answer.
func (r *Records) Delete(ctx context.Context, key ...string) error {
	name := nameOf(key)
	r.cache.remove(name)
	defer r.cache.remove(name) // it may have been read in the meantime
	if err := r.breaker.Do(ctx, func(ctx context.Context) error { return r.bucket.Delete(ctx, key, 0) }); err != nil {
		return fmt.Errorf("delete in %s: %w", r.name, err)
	}
	return nil
}

// Lock waits until no other caller, here or in another process, has the lock of a key. That of a process that has died is taken. The lock
// does not stop a process that counts as dead and still works: its Put fails.
func (r *Records) Lock(ctx context.Context, key ...string) (unlock func(), err error) {
	release, err := r.lockHere(ctx, nameOf(key))
	if err != nil {
		return nil, err
	}
	for {
		err := r.breaker.Do(ctx, func(ctx context.Context) error { return r.claims.Take(ctx, key) })
		if _, held := errors.AsType[*store.HeldError](err); !held && err != nil {
			r.unlock(ctx, key, release) // it may have been taken
			return nil, fmt.Errorf("lock %s: %w", r.name, err)
		} else if err == nil {
			return func() { r.unlock(ctx, key, release) }, nil
		}
		if err := sleep.For(ctx, lockInterval); err != nil {
			release()
			return nil, fmt.Errorf("lock %s: %w", r.name, context.Cause(ctx))
		}
	}
}

// unlock releases the claim and the lock of this process. If the store does not answer, the claim is released in the background when it
// does: others would wait for it as long as this process lives.
func (r *Records) unlock(ctx context.Context, key []string, release func()) {
	ctx = context.WithoutCancel(ctx)
	released := r.releaseClaim(ctx, key)
	release()
	if released {
		return
	}
	go func() {
		for !released && sleep.For(ctx, Recent) == nil {
			release, err := r.lockHere(ctx, nameOf(key)) // not while a caller of this process has it
			if err != nil {
				return
			}
			released = r.releaseClaim(ctx, key)
			release()
		}
	}()
}

// releaseClaim reports whether a claim was released, or cannot be.
func (r *Records) releaseClaim(ctx context.Context, key []string) bool {
	err := r.breaker.Do(ctx, func(ctx context.Context) error { return r.claims.Release(ctx, key) })
	return err == nil || !isOutage(err)
}

func (r *Records) lockHere(ctx context.Context, name string) (release func(), err error) {
	done := make(chan struct{})
	for {
		r.mu.Lock()
		wait := r.locked[name]
		if wait == nil {
			r.locked[name] = done
		}
		r.mu.Unlock()
		if wait == nil {
			return func() { r.mu.Lock(); delete(r.locked, name); r.mu.Unlock(); close(done) }, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w", r.name, context.Cause(ctx))
		}
	}
}

// List calls do with the key and the data of each record, until do returns false. Records that cannot be opened are left out.
func (r *Records) List(ctx context.Context, do func(key []string, data []byte) bool) error {
	for e, err := range r.bucket.List(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list %s: %w", r.name, err)
		}
		if data, err := r.open(e.Value, e.Key); err == nil && !do(e.Key, data) {
			return nil
		}
	}
	return nil
}

func (r *Records) open(value []byte, key []string) ([]byte, error) {
	if r.key == nil {
		return value, nil
	}
	data, err := r.key.Open(value, r.place(key)...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.name, err)
	}
	return data, nil
}

// place returns the place for which a record is sealed.
func (r *Records) place(key []string) []string { return append([]string{r.name}, key...) }

// nameOf returns a text for a key: its parts never have the separator.
func nameOf(key []string) string { return strings.Join(key, "\x00") }
