package shared

import (
	"context"
	"errors"
	"sync"
	"time"

	"sallyport/internal/journal"
	"sallyport/internal/store"
)

const (
	// patience is how long a copy waits for more before it begins: most programs have ended by then, and need none. pause is how long a
	// copy that has begun waits.
	patience, pause = time.Second, 20 * time.Millisecond
	// maxPending is the number of bytes for which a copy does not wait.
	maxPending = 1 << 20
)

// errClosed is the error of a closed copy with data that was not flushed.
var errClosed = errors.New("the copy of the journal is closed")

// journalCopy is the copy of one journal. It is safe for concurrent use.
type journalCopy struct {
	of  *Journals
	key store.Key

	mu       sync.Mutex
	size     int    // of what is stored
	pending  []byte // what is not
	revision uint64
	begun    bool
	taken    bool
	closed   bool
	sending  chan struct{} // closed when a batch has been sent; nil if none is
	timer    *time.Timer   // nil if no flush is due
}

// Load implements [journal.Copy].
func (c *journalCopy) Load() (journal.Loaded, error) {
	ctx := context.Background() // the store bounds the time
	loaded, revision, err := c.of.load(ctx, c.key)
	if err != nil || loaded.Data == nil {
		return journal.Loaded{}, err
	}
	if contents, err := journal.Parse(loaded.Data); err == nil {
		loaded.Running = c.of.in.Alive(ctx, contents.Gateway)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.revision, c.pending, c.begun, c.taken = len(loaded.Data), revision, nil, true, false
	return loaded, nil
}

// Append implements [journal.Copy].
func (c *journalCopy) Append(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.taken {
		return
	}
	c.pending = append(c.pending, data...)
	switch {
	case c.timer == nil && c.begun:
		c.timer = time.AfterFunc(pause, c.flushLater)
	case c.timer == nil:
		c.timer = time.AfterFunc(patience, c.flushLater)
	case len(c.pending) > maxPending:
		c.timer.Reset(0)
	}
}

// flushLater flushes, and does so again if the store does not answer.
func (c *journalCopy) flushLater() {
	c.mu.Lock()
	c.timer = nil
	c.mu.Unlock()
	if err := c.Flush(true); err != nil && !errors.Is(err, journal.ErrTaken) {
		c.of.logger.Warn("the copy of a journal lags", "execution", c.key[1], "error", err)
	}
}

// Flush implements [journal.Copy].
func (c *journalCopy) Flush(begin bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.taken:
			return journal.ErrTaken
		case c.sending != nil:
			c.wait()
			continue
		case len(c.pending) == 0 || !begin && !c.begun:
			return nil
		case c.closed:
			return errClosed
		}
		if err := c.send(); err != nil {
			return err
		}
	}
}

// wait waits until a batch has been sent. mu must be held, and is released meanwhile.
func (c *journalCopy) wait() {
	sent := c.sending
	c.mu.Unlock()
	<-sent
	c.mu.Lock()
}

// send sends what is pending as one batch. mu must be held, and is released meanwhile.
func (c *journalCopy) send() error {
	batch, after, sent := c.pending, c.revision, make(chan struct{})
	c.pending, c.begun, c.sending = nil, true, sent
	c.mu.Unlock()
	revision, err := c.store(after, batch)
	c.mu.Lock()
	c.sending, c.revision = nil, revision
	close(sent)
	switch {
	case err == nil:
		c.size += len(batch)
		return nil
	case errors.Is(err, store.ErrConflict):
		c.taken, c.pending = true, nil
		return journal.ErrTaken
	}
	if c.pending = append(batch, c.pending...); !c.closed && c.timer == nil && !errors.Is(err, store.ErrClosed) {
		c.timer = time.AfterFunc(patience, c.flushLater)
	}
	return err
}

// store appends a batch. The error is [store.ErrConflict] if another gateway has appended something, and not this one in an attempt
// with a lost answer.
func (c *journalCopy) store(after uint64, batch []byte) (uint64, error) {
	ctx := context.Background() // the store bounds the time
	revision, err := c.of.append(ctx, c.key, after, batch)
	if !errors.Is(err, store.ErrConflict) {
		return revision, err
	}
	loaded, last, failed := c.of.load(ctx, c.key)
	switch {
	case failed != nil:
		return revision, failed
	case endsWith(loaded, c.size, batch):
		return last, nil
	}
	return revision, err
}

// Close implements [journal.Copy].
func (c *journalCopy) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// Remove implements [journal.Copy].
func (c *journalCopy) Remove() error {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.sending != nil {
		c.wait()
	}
	if !c.begun || c.taken {
		return nil
	}
	return c.of.log.Remove(context.Background(), c.key) // the store bounds the time
}
