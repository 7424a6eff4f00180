package runlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sallyport/internal/store"
)

// The store's names of the log and the index, as in [store.Damage].
const (
	logPlace   = "log_runs"
	indexPlace = "bucket_run_index"
)

// Verify returns a [store.ErrCorrupt] if records of a run's log may be lost. Such a run must not be continued, since a step whose end
// was lost would be repeated.
func (l *Logs) Verify(ctx context.Context, id string) error {
	lost, err := l.lostRecords(ctx, logPlace)
	if err != nil || len(lost) == 0 {
		return err
	}
	begin, begun := uint64(0), false
	for record, err := range l.log.Read(ctx, store.Key{id}, 0) {
		if err != nil {
			return err
		}
		begin, begun = record.Revision, true
		break
	}
	for _, d := range lost {
		if len(d.Key) == 1 && d.Key[0] == id || d.Key == nil && begun && begin < d.Revision {
			return fmt.Errorf("%w: events of run %s may be lost", store.ErrCorrupt, id)
		}
	}
	return nil
}

// lostRecords returns the damaged records of a place that could not be restored.
func (l *Logs) lostRecords(ctx context.Context, place string) (lost []store.Damage, err error) {
	all, err := l.store.ListDamage(ctx)
	for _, d := range all {
		if d.Place == place && !d.Restored && !d.Whole {
			lost = append(lost, d)
		}
	}
	return lost, err
}

// RestoreSummaries restores damaged summaries of runs from their logs, and returns those runs. It must be called before any other method.
func (l *Logs) RestoreSummaries(ctx context.Context) (mended []Run, err error) {
	lost, err := l.lostRecords(ctx, indexPlace)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	ids := map[string]bool{}
	for _, d := range lost {
		if len(d.Key) == 1 {
			ids[d.Key[0]] = true
			continue
		}
		keys, err := l.log.Keys(ctx) // the key is unknown: check all runs
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			ids[key[0]] = true
		}
	}
	for id := range ids {
		run, ok, err := l.restoreSummary(ctx, id)
		if err != nil {
			return mended, fmt.Errorf("mend run %s: %w", id, err)
		}
		if ok {
			mended = append(mended, run)
		}
	}
	return mended, nil
}

// restoreSummary restores one summary. ok is false if it exists, or if there is no log to restore it from.
func (l *Logs) restoreSummary(ctx context.Context, id string) (run Run, ok bool, err error) {
	if _, err := l.index.Get(ctx, store.Key{id}); !errors.Is(err, store.ErrNotFound) {
		return Run{}, false, err
	}
	for e, err := range l.Read(ctx, id, 0) {
		if err != nil {
			return Run{}, false, err
		}
		run.apply(e)
	}
	if run.ID != id {
		return Run{}, false, nil
	}
	return run, true, l.addSummary(ctx, run)
}

// apply applies an event to a summary.
func (r *Run) apply(e Event) {
	switch e.Kind {
	case Created:
		if s := e.Start; s != nil {
			*r = Run{ID: s.ID, Workflow: s.Workflow, Status: Running, Trigger: s.Trigger, Principal: s.Principal, Parent: s.Parent, Of: s.Of, Started: e.Time}
		}
	case Over:
		r.Status, r.Error, r.Ended = e.Status, e.Error, e.Time
	case Reentered:
		r.Status, r.Error, r.Ended = Running, nil, time.Time{}
	case Ended:
		r.Steps++
	}
}

// Missing compares logs and summaries: unlisted are runs without a summary, empty those without a log.
func (l *Logs) Missing(ctx context.Context) (unlisted, empty []string, err error) {
	keys, err := l.log.Keys(ctx)
	if err != nil {
		return nil, nil, err
	}
	logs := map[string]bool{}
	for _, key := range keys {
		logs[key[0]] = true
	}
	for run, err := range l.Summaries(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if !logs[run.ID] && time.Since(run.Started) > time.Minute { // the log of a new run may follow
			empty = append(empty, run.ID)
		}
		delete(logs, run.ID)
	}
	return slices.Sorted(maps.Keys(logs)), empty, nil
}
