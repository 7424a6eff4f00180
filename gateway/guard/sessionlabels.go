package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/policy"
	"sallyport/internal/store"
)

const (
	// sessionLabelsKept is how long the labels of a session are in the store after their last write. Those of a session that is used
	// are written again after sessionLabelsRenewed.
	sessionLabelsKept, sessionLabelsRenewed = 3 * sessionMemory, sessionMemory
)

// sessionLabels stores the labels that sessions have read, for all gateways of a store: the next request of a session may
// come to another gateway. nil stores none.
type sessionLabels struct {
	bucket  *store.Bucket
	breaker *store.Breaker
	log     *slog.Logger
}

// openSessionLabels returns the labels in a store, nil if no other gateway shares it.
func openSessionLabels(in *store.Store, log *slog.Logger) (*sessionLabels, error) {
	if !in.Shared() {
		return nil, nil
	}
	bucket, err := in.Bucket("session_labels", store.Limits{Records: 200_000, Age: sessionLabelsKept, Bytes: 32 << 20, Record: 64 << 10})
	if err != nil {
		return nil, err
	}
	return &sessionLabels{bucket: bucket, breaker: in.Breaker(), log: log}, nil
}

// hashedKey returns the key in the store of a session, or of a count. A name may be longer than a key.
func hashedKey(name string) store.Key {
	sum := sha256.Sum256([]byte(name))
	return store.Key{hex.EncodeToString(sum[:16])}
}

// read returns the stored origins of a session. If they cannot be read, the session has read private and untrusted data.
func (s *sessionLabels) read(session string) (all []toolcall.Origin) {
	if s == nil {
		return nil
	}
	err := s.breaker.Do(context.Background(), func(ctx context.Context) (err error) {
		all, err = s.get(ctx, hashedKey(session))
		return err
	})
	if err != nil {
		s.log.Error("labels of a session cannot be read, it is taken to have read private and untrusted data", "error", err)
		return []toolcall.Origin{{Label: policy.Private}, {Label: policy.Untrusted}}
	}
	return all
}

func (s *sessionLabels) get(ctx context.Context, at store.Key) (all []toolcall.Origin, err error) {
	entry, err := s.bucket.Get(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if time.Since(entry.Time) > sessionLabelsRenewed {
		if _, err := s.bucket.Update(ctx, at, entry.Value, entry.Revision); err != nil && !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
	}
	return all, json.Unmarshal(entry.Value, &all)
}

// add adds origins of a session to those in the store. When it returns nil, every gateway knows them.
func (s *sessionLabels) add(session string, origins []toolcall.Origin) error {
	return s.breaker.Do(context.Background(), func(ctx context.Context) error {
		_, err := s.bucket.Change(ctx, hashedKey(session), func(before store.Entry) ([]byte, error) {
			var stored []toolcall.Origin
			if before.Revision > 0 {
				if err := json.Unmarshal(before.Value, &stored); err != nil {
					return nil, err
				}
			}
			var trail toolcall.Trail
			trail.Add(stored...)
			trail.Add(origins...)
			return json.Marshal(trail.Origins())
		})
		return err
	})
}
