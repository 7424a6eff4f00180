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

// Sink is another place that records go to. Send is called by one goroutine, with records in their order; after an error it gets
// the same ones again, so that a record may come twice and never not at all.
type Sink interface {
	Send(ctx context.Context, records []Record) error
}

// ErrRefused is what Send returns, wrapped, when the other side will not take these records whenever they come: of several it
// gets a part then, and one that is refused alone is passed over.
var ErrRefused = errors.New("the records were refused")

// State tells how far a sink is.
type State struct {
	Name string `json:"name"`
	// Seq is the last record that it took, Sent when.
	Seq  uint64    `json:"seq"`
	Sent time.Time `json:"sent"`
	// Error is why the last attempt failed, "" if it did not; Since when it fails, Failures how often it did.
	Error    string    `json:"error,omitempty"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures,omitempty"`
	// Lost is how many records it will never get: pruned before it took them, or refused.
	Lost uint64 `json:"lost,omitempty"`
}

const (
	// sinksFolder has a state for each sink. The process with its lock delivers.
	sinksFolder = "sinks"
	stateSuffix = ".json"
	// maxBatch is how many records are sent at once, maxBatchBytes how large they are together.
	maxBatch      = 200
	maxBatchBytes = 512 << 10
	// gather is how long a record may wait for others, to be sent with them.
	gather = 250 * time.Millisecond
	// sendTime bounds one attempt, lastTime the last one before the end.
	sendTime = 30 * time.Second
	lastTime = 2 * time.Second
	// firstRest and longestRest are between attempts.
	firstRest   = time.Second
	longestRest = time.Minute
	// lockRest is how often a process looks whether the one that delivers has gone.
	lockRest = 5 * time.Second
)

// States returns how far the sinks of a log are that were ever sent to.
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

// loadState returns the state of a sink; one that was never sent to has none, and begins with the first record.
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

// delivery is one sink while it is sent to.
type delivery struct {
	log   *Log
	sink  Sink
	slog  *slog.Logger
	state State
	keep  bool // the state is in a file
	in    *Reader
}

// Deliver sends all records to sinks, by their names, until ctx ends: those that are there, and then each as it comes. Each
// sink has a line of its own. Of several processes one delivers; the others take over when it goes.
func (l *Log) Deliver(ctx context.Context, sinks map[string]Sink) error {
	folder := filepath.Join(l.dir, sinksFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("deliver audit records: %w", err)
	}
	unlock, err := filelock.Dir(folder, 0)
	for errors.Is(err, filelock.ErrBusy) && sleep.For(ctx, lockRest) == nil {
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
				l.log.Warn("how far a sink was is not known, so it gets all records again", "sink", name, "error", err)
				state = State{Name: name}
			}
			d := &delivery{log: l, sink: sink, slog: l.log, state: state, keep: true}
			d.run(ctx)
		})
	}
	work.Wait()
	return nil
}

// run sends until ctx ends, and then what is there once more.
func (d *delivery) run(ctx context.Context) {
	d.in = NewReader(d.log.dir, d.state.Seq+1)
	defer func() { _ = d.in.Close() }()
	for ctx.Err() == nil {
		grown := d.log.wakes.wait()
		batch := d.batch()
		if len(batch) > 0 {
			if !d.send(ctx, batch) {
				d.again()
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-grown:
			_ = sleep.For(ctx, gather)
		case <-time.After(2 * pollEvery): // another process may append, too
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	for batch := d.batch(); len(batch) > 0 && ctx.Err() == nil; batch = d.batch() {
		if d.sink.Send(ctx, batch) != nil {
			return
		}
		d.sent(batch)
	}
}

// again has what was not sent read again.
func (d *delivery) again() {
	_ = d.in.Close()
	d.in = NewReader(d.log.dir, d.state.Seq+1)
}

// batch reads what is there, up to a limit.
func (d *delivery) batch() (batch []Record) {
	size := 0
	for len(batch) < maxBatch && size < maxBatchBytes {
		r, err := d.in.Next()
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

// send tries until the sink has all of a batch, and reports false when ctx has ended before.
func (d *delivery) send(ctx context.Context, batch []Record) bool {
	rest := firstRest
	for len(batch) > 0 {
		part, err := d.attempt(ctx, batch)
		if err == nil {
			d.sent(part)
			batch, rest = batch[len(part):], firstRest
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		d.failed(err)
		if sleep.For(ctx, rest/2+rand.N(rest)) != nil {
			return false
		}
		rest = min(2*rest, longestRest)
	}
	return true
}

// attempt sends a batch, or as much of its beginning as is not refused, and returns what is done.
func (d *delivery) attempt(ctx context.Context, batch []Record) ([]Record, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, sendTime)
		err := d.sink.Send(bounded, batch)
		cancel()
		if !errors.Is(err, ErrRefused) {
			return batch, err
		}
		if len(batch) == 1 {
			d.state.Lost++
			d.slog.Error("a record was refused and is passed over", "sink", d.state.Name, "record", batch[0].Seq, "error", sanitize.Line(err.Error(), 300))
			return batch, nil
		}
		batch = batch[:len(batch)/2]
	}
}

// sent notes how far the sink is.
func (d *delivery) sent(batch []Record) {
	if first := batch[0].Seq; d.state.Seq > 0 && first > d.state.Seq+1 && batch[0].Kind != LogGap {
		d.state.Lost += first - d.state.Seq - 1
	}
	if d.state.Error != "" {
		d.slog.Info("a sink takes audit records again", "sink", d.state.Name, "failures", d.state.Failures)
	}
	d.state.Seq, d.state.Sent = batch[len(batch)-1].Seq, time.Now().UTC()
	d.state.Error, d.state.Since, d.state.Failures = "", time.Time{}, 0
	d.save()
}

func (d *delivery) failed(err error) {
	if d.state.Error == "" {
		d.state.Since = time.Now().UTC()
		d.slog.Warn("a sink takes no audit records, it is tried again", "sink", d.state.Name, "error", sanitize.Line(err.Error(), 300))
	}
	d.state.Error = sanitize.Line(err.Error(), 300)
	d.state.Failures++
	d.save()
}

// save keeps the state. One that is lost has records sent again.
func (d *delivery) save() {
	if !d.keep {
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
		d.slog.Error("how far a sink is cannot be kept", "sink", d.state.Name, "error", err)
	}
}

// grave reports whether a person should look at it.
func grave(k Kind) bool { return slices.Contains([]Kind{LogGap, LogTorn}, k) }

// Severity says how much an event matters: "info", "warn" for what was refused, "error" for what is wrong with the record itself.
func (e Event) Severity() string {
	switch {
	case grave(e.Kind):
		return "error"
	case e.Decision == "deny" || e.Kind == LoginRefused:
		return "warn"
	}
	return "info"
}
