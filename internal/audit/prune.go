package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Prune removes the files of records beyond the limits of Options, and records which.
func (l *Log) Prune() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.withLock(func() error { return l.prune(time.Now()) }); err != nil {
		return fmt.Errorf("prune audit log: %w", err)
	}
	return nil
}

// prune removes a file if all its records are too old, or if all files together are too large, but never the last file. It
// writes the record first: a recorded file that still exists is harmless. It is called with the log locked, at its end.
func (l *Log) prune(now time.Time) error {
	all, err := segments(l.dir)
	if err != nil {
		return err
	}
	var total int64
	sizes := make([]int64, len(all))
	for i, s := range all {
		info, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		sizes[i] = info.Size()
		total += sizes[i]
	}
	for i := range max(0, len(all)-1) {
		last, _, _, err := lastRecord(all[i].path)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		old := l.opts.Keep > 0 && now.Sub(last.Time) > l.opts.Keep
		large := l.opts.Size > 0 && total > l.opts.Size
		if !old && !large {
			return nil
		}
		reason := "age"
		if large {
			reason = "size"
		}
		if err := l.remove(all[i], last, reason); err != nil {
			return err
		}
		total -= sizes[i]
	}
	return nil
}

func (l *Log) remove(s segment, last Record, reason string) error {
	if last.Seq > 0 {
		if err := l.write(Event{Kind: LogPruned, Through: last.Seq, Before: last.Hash, Rule: reason}); err != nil {
			return err
		}
	}
	return os.Remove(s.path)
}
