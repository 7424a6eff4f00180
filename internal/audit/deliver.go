package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/sanitize"
	"sallyport/internal/sleep"
)

// Sink is a destination of records. Send is called by one goroutine, with records in order. After an error it is called with
// the same records again: delivery is at least once.
type Sink interface {
	Send(ctx context.Context, records []Record) error
}

// ErrRefused is returned by Send, wrapped, if a retry cannot succeed. A batch is then sent in smaller parts, and a single
// refused record is skipped.
var ErrRefused = errors.New("the records were refused")

// State is the delivery state of a sink.
type State struct {
	Name string `json:"name"`
	// Seq is the last record that it accepted, Sent when.
	Seq  uint64    `json:"seq"`
	Sent time.Time `json:"sent"`
	// Error is why the last attempt failed, "" if it succeeded; Since when it has been failing, Failures the number of failures.
	Error    string    `json:"error,omitempty"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures,omitempty"`
	// Lost is how many records it will never get: those pruned before delivery, damaged or refused.
	Lost uint64 `json:"lost,omitempty"`
}

const (
	// sinksFolder has a state file for each sink. The process that holds its lock delivers.
	sinksFolder = "sinks"
	stateSuffix = ".json"
	// maxBatch bounds the records that are sent at once, maxBatchBytes their total size.
	maxBatch      = 200
	maxBatchBytes = 512 << 10
	// batchDelay is how long a record may wait to be sent together with others.
	batchDelay = 250 * time.Millisecond
	// sendTimeout bounds one attempt, finalTimeout the final attempt when delivery ends.
	sendTimeout  = 30 * time.Second
	finalTimeout = 2 * time.Second
	// minBackoff and maxBackoff are the least and the greatest delay between attempts.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// lockInterval is how often a process checks whether the one that delivers has ended.
	lockInterval = 5 * time.Second
)

// States returns the states of all sinks that records of a log were ever sent to.
func States(dir string) ([]State, error) {
	entries, err := os.ReadDir(filepath.Join(dir, sinksFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []State
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), stateSuffix); ok {
			if s, err := loadState(dir, name); err == nil {
				all = append(all, s)
			}
		}
	}
	return all, err
}

func statePath(dir, name string) string { return filepath.Join(dir, sinksFolder, name+stateSuffix) }

// loadState returns the state of a sink. Without a state file, delivery begins with the first record.
func loadState(dir, name string) (State, error) {
	s := State{Name: name}
	data, err := os.ReadFile(statePath(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

// delivery is the running delivery to one sink.
type delivery struct {
	log     *Log
	sink    Sink
	slog    *slog.Logger
	state   State
	persist bool // save the state in a file
	reader  *Reader
}

// Deliver sends all records to sinks, by their names, until ctx ends: the existing records, and then each new one. The sinks
// are independent of each other. One process delivers; others wait and take over when it ends.
func (l *Log) Deliver(ctx context.Context, sinks map[string]Sink) error {
	folder := filepath.Join(l.dir, sinksFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("deliver audit records: %w", err)
	}
	unlock, err := filelock.Dir(folder, 0)
	for errors.Is(err, filelock.ErrBusy) && sleep.For(ctx, lockInterval) == nil {
		unlock, err = filelock.Dir(folder, 0)
	}
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deliver audit records: %w", err)
	}
	defer unlock()
	var work sync.WaitGroup
	for name, sink := range sinks {
		work.Go(func() {
			state, err := loadState(l.dir, name)
			if err != nil {
				l.log.Warn("cannot read the state of a sink: it gets all records again", "sink", name, "error", err)
				state = State{Name: name}
			}
			d := &delivery{log: l, sink: sink, slog: l.log, state: state, persist: true}
			d.run(ctx)
		})
	}
	work.Wait()
	return nil
}

// run sends records until ctx ends, and then sends the remaining ones.
func (d *delivery) run(ctx context.Context) {
	d.reader = NewReader(d.log.dir, d.state.Seq+1)
	defer func() { _ = d.reader.Close() }()
	for ctx.Err() == nil {
		grown := d.log.notifier.wait()
		batch := d.batch()
		if len(batch) > 0 {
			if !d.send(ctx, batch) {
				d.rewind()
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-grown:
			_ = sleep.For(ctx, batchDelay)
		case <-time.After(2 * pollInterval): // other processes may append, too
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalTimeout)
	defer cancel()
	for batch := d.batch(); len(batch) > 0 && ctx.Err() == nil; batch = d.batch() {
		if d.sink.Send(ctx, batch) != nil {
			return
		}
		d.markSent(batch)
	}
}

// rewind moves the reader back to the first record that was not sent.
func (d *delivery) rewind() {
	_ = d.reader.Close()
	d.reader = NewReader(d.log.dir, d.state.Seq+1)
}

// batch reads the available records, up to the limits.
func (d *delivery) batch() (batch []Record) {
	size := 0
	for len(batch) < maxBatch && size < maxBatchBytes {
		r, err := d.reader.Next()
		if errors.Is(err, ErrDamaged) {
			d.state.Lost++
			d.slog.Error("a record is damaged and is not sent", "sink", d.state.Name, "error", err)
			continue
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				d.slog.Error("audit records cannot be read", "sink", d.state.Name, "error", err)
			}
			break
		}
		if r.Seq <= d.state.Seq {
			continue
		}
		batch = append(batch, r)
		size += len(r.Line)
	}
	return batch
}

// send retries until the sink has accepted all of a batch. It returns false if ctx ends before.
func (d *delivery) send(ctx context.Context, batch []Record) bool {
	rest := minBackoff
	for len(batch) > 0 {
		part, err := d.attempt(ctx, batch)
		if err == nil {
			d.markSent(part)
			batch, rest = batch[len(part):], minBackoff
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		d.markFailed(err)
		if sleep.For(ctx, rest/2+rand.N(rest)) != nil {
			return false
		}
		rest = min(2*rest, maxBackoff)
	}
	return true
}

// attempt sends a batch, or a smaller part from its beginning if it is refused, and returns the records that are done.
func (d *delivery) attempt(ctx context.Context, batch []Record) ([]Record, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, sendTimeout)
		err := d.sink.Send(bounded, batch)
		cancel()
		if !errors.Is(err, ErrRefused) {
			return batch, err
		}
		if len(batch) == 1 {
			d.state.Lost++
			d.slog.Error("a record was refused and is skipped", "sink", d.state.Name, "record", batch[0].Seq, "error", sanitize.Line(err.Error(), 300))
			return batch, nil
		}
		batch = batch[:len(batch)/2]
	}
}

// markSent updates the state after a successful attempt.
func (d *delivery) markSent(batch []Record) {
	if first := batch[0].Seq; d.state.Seq > 0 && first > d.state.Seq+1 && batch[0].Kind != LogGap {
		d.state.Lost += first - d.state.Seq - 1
	}
	if d.state.Error != "" {
		d.slog.Info("a sink accepts audit records again", "sink", d.state.Name, "failures", d.state.Failures)
	}
	d.state.Seq, d.state.Sent = batch[len(batch)-1].Seq, time.Now().UTC()
	d.state.Error, d.state.Since, d.state.Failures = "", time.Time{}, 0
	d.save()
}

func (d *delivery) markFailed(err error) {
	if d.state.Error == "" {
		d.state.Since = time.Now().UTC()
		d.slog.Warn("a sink accepts no audit records, retrying", "sink", d.state.Name, "error", sanitize.Line(err.Error(), 300))
	}
	d.state.Error = sanitize.Line(err.Error(), 300)
	d.state.Failures++
	d.save()
}

// save writes the state. If that fails, records may be sent again later.
func (d *delivery) save() {
	if !d.persist {
		return
	}
	data, err := json.Marshal(d.state)
	path := statePath(d.log.dir, d.state.Name)
	if err == nil {
		err = os.WriteFile(path+".tmp", append(data, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		d.slog.Error("cannot save the state of a sink", "sink", d.state.Name, "error", err)
	}
}

// isLogDamage reports whether an event is a sign of damage to the log.
func isLogDamage(k Kind) bool { return slices.Contains([]Kind{LogGap, LogTorn}, k) }

// Severity returns the severity of an event: "warn" for refusals, "error" for damage to the log, otherwise "info".
func (e Event) Severity() string {
	switch {
	case isLogDamage(e.Kind):
		return "error"
	case e.Decision == "deny" || e.Kind == LoginRefused:
		return "warn"
	}
	return "info"
}
