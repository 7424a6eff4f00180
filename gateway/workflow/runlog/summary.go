package runlog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"sallyport/internal/store"
)

const (
	maxSummary = 64 << 10
	// maxListed is how many of the things that a run waits for stand in its summary, maxText how much of a message does.
	maxListed = 20
	maxText   = 2000
)

// brief is a run without what may be large.
func (r Run) brief() Run {
	r.Inputs, r.Outputs = nil, nil
	r.Waiting = slices.Clone(r.Waiting[:min(len(r.Waiting), maxListed)])
	for i := range r.Waiting {
		r.Waiting[i].Form = nil
	}
	if r.Error != nil {
		fault := *r.Error
		fault.Message, fault.Hint = cut(fault.Message), cut(fault.Hint)
		r.Error = &fault
	}
	return r
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	runes := []rune(text[:maxText])
	return string(runes[:len(runes)-1]) + "…"
}

func (l *Logs) addSummary(ctx context.Context, run Run) error {
	data, err := json.Marshal(run.brief())
	if err != nil {
		return err
	}
	_, err = l.index.Create(ctx, store.Key{run.ID}, data)
	return err
}

// PutSummary notes how a run stands, for lists: without its inputs, its outputs, and the forms that it waits for.
// Only the engine that has the run may call it.
func (l *Logs) PutSummary(ctx context.Context, run Run) error {
	data, err := json.Marshal(run.brief())
	if err == nil {
		_, err = l.index.Put(ctx, store.Key{run.ID}, data)
	}
	if err != nil {
		return fmt.Errorf("note run %s: %w", run.ID, err)
	}
	return nil
}

// Summary returns what PutSummary noted last, or [store.ErrNotFound].
func (l *Logs) Summary(ctx context.Context, id string) (Run, error) {
	e, err := l.index.Get(ctx, store.Key{id})
	if err != nil {
		return Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return summary(e)
}

// Summaries walks over all runs, those first that were noted longest ago. One that is not over may have got further than its summary says.
func (l *Logs) Summaries(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for e, err := range l.index.List(ctx, nil) {
			if err != nil {
				yield(Run{}, err)
				return
			}
			run, err := summary(e)
			if !yield(run, err) || err != nil {
				return
			}
		}
	}
}

func summary(e store.Entry) (run Run, err error) {
	if err := json.Unmarshal(e.Value, &run); err != nil {
		return run, fmt.Errorf("%w: summary of run %s: %w", store.ErrCorrupt, e.Key, err)
	}
	return run, nil
}

const (
	// keepFor is how long a run is kept after its end, where KeepFor says nothing.
	keepFor = 30 * 24 * time.Hour
	// crowded is the part of the room from which on the oldest runs go that are over; they go until it is roomy.
	crowded = 0.75
	roomy   = 0.6
	// reserved is the part from which on no run begins, so that those under way can end.
	reserved = 0.875
)

// room makes room for one more run.
func (l *Logs) room(ctx context.Context) error {
	used, err := l.used(ctx)
	if err == nil && used > crowded {
		if _, err = l.Prune(ctx); err == nil {
			used, err = l.used(ctx)
		}
	}
	if err == nil && used > reserved {
		err = fmt.Errorf("%w: the runs that are not over take %.0f %% of it", store.ErrFull, used*100)
	}
	return err
}

func (l *Logs) used(ctx context.Context) (share float64, err error) {
	log, err := l.log.Usage(ctx)
	if err != nil {
		return 0, err
	}
	index, err := l.index.Usage(ctx)
	return max(log.Share, index.Share), err
}

// Prune removes runs that have been over for as long as KeepFor says, and, where more than three quarters of the room are used, those
// that have been over longest; it returns how many. What a loss of power brought back of a run that was removed goes too.
func (l *Logs) Prune(ctx context.Context) (removed int, err error) {
	logs, err := l.log.Keys(ctx) // before the summaries: a run has its summary first
	if err != nil {
		return 0, err
	}
	known, over, err := l.ended(ctx)
	if err != nil {
		return 0, err
	}
	if damaged, err := l.lost(ctx, indexPlace); err != nil || len(damaged) > 0 {
		logs = nil // what has no summary may have lost it
	}
	for _, key := range logs {
		if err := l.sweep(ctx, key, known); err != nil {
			return 0, err
		}
	}
	used, err := l.used(ctx)
	making := used > crowded
	for _, run := range over {
		if err != nil || time.Since(run.Ended) < l.keep && !making {
			break
		}
		if err = l.Remove(ctx, run.ID); err != nil {
			break
		}
		removed++
		if making {
			used, err = l.used(ctx)
			making = used > roomy
		}
	}
	return removed, err
}

// sweep removes a log that is of no run.
func (l *Logs) sweep(ctx context.Context, key store.Key, known map[string]bool) error {
	if known[key[0]] {
		return nil
	}
	return l.log.Remove(ctx, key)
}

// ended returns which runs there are, and those that are over, the oldest end first.
func (l *Logs) ended(ctx context.Context) (known map[string]bool, over []Run, err error) {
	known = map[string]bool{}
	for run, err := range l.Summaries(ctx) {
		if err != nil {
			return nil, nil, err
		}
		known[run.ID] = true
		if run.Status.Over() {
			over = append(over, run)
		}
	}
	slices.SortStableFunc(over, func(a, b Run) int { return cmp.Compare(a.Ended.UnixNano(), b.Ended.UnixNano()) })
	return known, over, nil
}
