package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"sallyport/internal/store"
)

// errChanged: another process has written the record since this one read it, maybe without an answer to the question.
var errChanged = fmt.Errorf("%w, or changed by another process", ErrAnswered)

// maxTries bounds the attempts of an operation whose record other processes change.
const maxTries = 5

// retryChanged calls f again while its error is errChanged: the next call reads the records first.
func retryChanged(f func() error) (err error) {
	for range maxTries {
		if err = f(); !errors.Is(err, errChanged) {
			return err
		}
	}
	return err
}

// decodeRecord decodes a stored approval.
func decodeRecord(entry store.Entry) (*record, error) {
	var one stored
	if err := json.Unmarshal(entry.Value, &one); err != nil {
		return nil, fmt.Errorf("read approval: %w", err)
	}
	return &record{Approval: one.Approval, key: entry.Key, revision: entry.Revision, waiter: one.Waiter}, nil
}

// adopt takes over a stored record, unless this process has a newer one. It reports whether that changed anything, and is
// called with mu held.
func (b *Store) adopt(p *record) bool {
	known := b.records[p.ID]
	if known != nil && known.revision >= p.revision {
		return false
	}
	if known != nil {
		p.hasWaiter = known.hasWaiter
	}
	for id, other := range b.records { // another process has used its key for a newer question
		if id != p.ID && slices.Equal(other.key, p.key) {
			delete(b.records, id)
		}
	}
	b.records[p.ID] = p
	return true
}

// Subscribe takes over what other processes write to the bucket, until end is called, and calls changed after each change.
func (b *Store) Subscribe(log *slog.Logger, changed func()) (end func()) {
	return b.bucket.Subscribe(log, func(entry store.Entry) {
		p, err := decodeRecord(entry)
		if err != nil {
			return // load reports it
		}
		b.mu.Lock()
		is := b.adopt(p)
		if is {
			b.signalChange()
		}
		b.mu.Unlock()
		if is {
			changed()
		}
	})
}

// waitedElsewhere reports whether a call of another living process waits for a question. It is called with mu held.
func (b *Store) waitedElsewhere(ctx context.Context, p *record) bool {
	return p.waiter != "" && p.waiter != b.opts.Self && b.opts.Alive != nil && b.opts.Alive(ctx, p.waiter)
}
