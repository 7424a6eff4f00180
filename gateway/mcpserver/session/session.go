// Package session stores what identifies the MCP sessions of clients of older revisions, so that every gateway that shares
// the store can serve them.
package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"sallyport/internal/store"
)

const (
	// kept is how long a session is stored after its last change.
	kept = 7 * 24 * time.Hour
	// maxInitialize bounds the parameters of initialize, in bytes, and maxSubscribed the number of subscriptions of a session. A session
	// beyond a bound is known to its gateway only.
	maxInitialize, maxSubscribed = 64 << 10, 1000
)

// Record is what a session was opened with, and what its client has set since.
type Record struct {
	// Principal is the principal of the client, "" if the gateway has no tokens.
	Principal string `json:"principal,omitempty"`
	// Initialize has the parameters of initialize.
	Initialize json.RawMessage `json:"initialize"`
	// Level is the log level that the client set, "" for none.
	Level string `json:"level,omitempty"`
	// Subscribed has the resources that the client subscribed to.
	Subscribed []string `json:"subscribed,omitempty"`
}

// Store has the sessions of all gateways. It is safe for concurrent use.
type Store struct {
	bucket  *store.Bucket
	breaker *store.Breaker
}

// Open returns the sessions in a store, nil if no other gateway shares it.
func Open(in *store.Store) (*Store, error) {
	if !in.Shared() {
		return nil, nil
	}
	bucket, err := in.Bucket(store.PrivatePrefix+"mcp_sessions", store.Limits{Records: 200_000, Age: kept, Bytes: 128 << 20, Record: 2 << 20})
	if err != nil {
		return nil, err
	}
	return &Store{bucket: bucket, breaker: in.Breaker()}, nil
}

// key returns the key of a session. Its ID, which a client proves itself with, is not stored.
func key(endpoint, id string) store.Key {
	sum := sha256.Sum256([]byte(endpoint + "\x00" + id))
	return store.Key{hex.EncodeToString(sum[:])}
}

// Create stores a new session of an endpoint, "" for that of all upstreams.
func (s *Store) Create(ctx context.Context, endpoint, id string, r Record) error {
	if len(r.Initialize) > maxInitialize {
		return errors.New("the parameters of initialize are too large")
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.breaker.Do(ctx, func(ctx context.Context) error {
		_, err := s.bucket.Create(ctx, key(endpoint, id), data)
		return err
	})
}

// Load returns a session; ok is false if there is none.
func (s *Store) Load(ctx context.Context, endpoint, id string) (r Record, ok bool, err error) {
	err = s.breaker.Do(ctx, func(ctx context.Context) error {
		entry, err := s.bucket.Get(ctx, key(endpoint, id))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		return json.Unmarshal(entry.Value, &r)
	})
	return r, ok && err == nil, err
}

// Change changes a session of a principal that is stored.
func (s *Store) Change(ctx context.Context, endpoint, id, principal string, change func(r *Record)) error {
	return s.breaker.Do(ctx, func(ctx context.Context) error {
		_, err := s.bucket.Change(ctx, key(endpoint, id), func(before store.Entry) ([]byte, error) {
			if before.Revision == 0 {
				return nil, nil
			}
			var r Record
			if err := json.Unmarshal(before.Value, &r); err != nil {
				return nil, err
			}
			if r.Principal != principal {
				return nil, nil
			}
			change(&r)
			return json.Marshal(r)
		})
		return err
	})
}

// Remove removes a session that has ended.
func (s *Store) Remove(ctx context.Context, endpoint, id string) error {
	return s.breaker.Do(ctx, func(ctx context.Context) error { return s.bucket.Delete(ctx, key(endpoint, id), 0) })
}

// Subscribe adds a resource, as far as there is room.
func (r *Record) Subscribe(uri string) {
	if !slices.Contains(r.Subscribed, uri) && len(r.Subscribed) < maxSubscribed && len(uri) < 1<<10 {
		r.Subscribed = append(r.Subscribed, uri)
	}
}

// Unsubscribe removes a resource.
func (r *Record) Unsubscribe(uri string) {
	r.Subscribed = slices.DeleteFunc(r.Subscribed, func(known string) bool { return known == uri })
}
