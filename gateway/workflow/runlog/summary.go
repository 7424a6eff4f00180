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
	// maxListed limits the Pending entries in a summary, maxText the length of a message in bytes.
	maxListed = 20
	maxText   = 2000
)

// summarize returns the run without its large parts.
func (r Run) summarize() Run {
	r.Inputs, r.Outputs = nil, nil
	r.Waiting = slices.Clone(r.Waiting[:min(len(r.Waiting), maxListed)])
	for i := range r.Waiting {
		r.Waiting[i].Form = nil
	}
	if r.Error != nil {
		fault := *r.Error
		fault.Message, fault.Hint = truncate(fault.Message), truncate(fault.Hint)
		r.Error = &fault
	}
	return r
}

func truncate(text string) string {
	if len(text) <= maxText {
		return text
	}
	runes := []rune(text[:maxText])
	return string(runes[:len(runes)-1]) + "…"
}

func (l *Logs) addSummary(ctx context.Context, run Run) error {
	data, err := json.Marshal(run.summarize())
	if err != nil {
		return err
	}
	_, err = l.index.Create(ctx, store.Key{run.ID}, data)
	return err
}

// PutSummary stores the summary of a run: without its inputs, its outputs, and its pending forms.
// Only the engine that has claimed the run may call it.
func (l *Logs) PutSummary(ctx context.Context, run Run) error {
	data, err := json.Marshal(run.summarize())
	if err == nil {
		_, err = l.index.Put(ctx, store.Key{run.ID}, data)
	}
	if err != nil {
		return fmt.Errorf("note run %s: %w", run.ID, err)
	}
	return nil
}

// Summary returns the summary of a run, or [store.ErrNotFound].
func (l *Logs) Summary(ctx context.Context, id string) (Run, error) {
	e, err := l.index.Get(ctx, store.Key{id})
	if err != nil {
		return Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return decodeSummary(e)
}

// Summaries iterates over the summaries of all runs, the least recently stored first. The summary of an unfinished run may be outdated.
func (l *Logs) Summaries(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for e, err := range l.index.List(ctx, nil) {
			if err != nil {
				yield(Run{}, err)
				return
			}
			run, err := decodeSummary(e)
			if !yield(run, err) || err != nil {
				return
			}
		}
	}
}

func decodeSummary(e store.Entry) (run Run, err error) {
	if err := json.Unmarshal(e.Value, &run); err != nil {
		return run, fmt.Errorf("%w: summary of run %s: %w", store.ErrCorrupt, e.Key, err)
	}
	return run, nil
}

const (
	// defaultRetention is how long finished runs are stored by default.
	defaultRetention = 30 * 24 * time.Hour
	// pruneAbove is the used share from which on the oldest finished runs are removed, until the share is at most roomy.
	pruneAbove = 0.75
	pruneTo    = 0.6
	// createBelow is the used share from which on no run can be created, so that unfinished runs can end.
	createBelow = 0.875
)

// makeRoom removes old runs if needed, and returns a [store.ErrFull] if there is no space for a new run.
func (l *Logs) makeRoom(ctx context.Context) error {
	used, err := l.usedShare(ctx)
	if err == nil && used > pruneAbove {
		if _, err = l.Prune(ctx); err == nil {
			used, err = l.usedShare(ctx)
		}
	}
	if err == nil && used > createBelow {
		err = fmt.Errorf("%w: active runs take %.0f %% of it", store.ErrFull, used*100)
	}
	return err
}

func (l *Logs) usedShare(ctx context.Context) (share float64, err error) {
	log, err := l.log.Usage(ctx)
	if err != nil {
		return 0, err
	}
	index, err := l.index.Usage(ctx)
	return max(log.Share, index.Share), err
}

// Prune removes finished runs after their retention, and, if more than three quarters of the space are used, the
// oldest finished runs. It returns how many. It also removes logs without a summary, which a loss of power can leave.
func (l *Logs) Prune(ctx context.Context) (removed int, err error) {
	logs, err := l.log.Keys(ctx) // read before the summaries: the summary of a run is created first
	if err != nil {
		return 0, err
	}
	known, over, err := l.listEnded(ctx)
	if err != nil {
		return 0, err
	}
	if damaged, err := l.lostRecords(ctx, indexPlace); err != nil || len(damaged) > 0 {
		logs = nil // logs without a summary may have lost it
	}
	for _, key := range logs {
		if err := l.removeOrphan(ctx, key, known); err != nil {
			return 0, err
		}
	}
	used, err := l.usedShare(ctx)
	making := used > pruneAbove
	for _, run := range over {
		if err != nil || time.Since(run.Ended) < l.retention && !making {
			break
		}
		if err = l.Remove(ctx, run.ID); err != nil {
			break
		}
		removed++
		if making {
			used, err = l.usedShare(ctx)
			making = used > pruneTo
		}
	}
	return removed, err
}

// removeOrphan removes a log unless its run is known.
func (l *Logs) removeOrphan(ctx context.Context, key store.Key, known map[string]bool) error {
	if known[key[0]] {
		return nil
	}
	return l.log.Remove(ctx, key)
}

// listEnded returns the ids of all runs, and the finished runs, the oldest end first.
func (l *Logs) listEnded(ctx context.Context) (known map[string]bool, over []Run, err error) {
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
