package shared

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"sallyport/internal/sleep"
	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// idleTime is how long a workspace must not have changed for Tidy to compact it, by the clock of the servers.
const idleTime = 15 * time.Minute

// The intervals of Maintain.
const (
	takeoverRetry = 15 * time.Second
	tidyInterval  = time.Hour
)

// Maintain calls takeOver until it succeeds, and then keeps the store tidy, until ctx ends.
func (w *Workspaces) Maintain(ctx context.Context, log *slog.Logger, takeOver func(ctx context.Context) error) {
	for err := takeOver(ctx); err != nil; err = takeOver(ctx) {
		if ctx.Err() == nil {
			log.Warn("files of the data directory are not in the store yet", "files", w.name, "error", err)
		}
		if sleep.For(ctx, takeoverRetry) != nil {
			return
		}
	}
	for sleep.For(ctx, tidyInterval) == nil {
		if err := w.Tidy(ctx); err != nil && ctx.Err() == nil {
			log.Warn("unused contents are not removed", "files", w.name, "error", err)
		}
	}
}

// Tidy compacts the workspaces that have not changed for a while, and removes contents that no file has. One of the gateways does it.
func (w *Workspaces) Tidy(ctx context.Context) error {
	if err := w.claims.Take(ctx, store.Key{"tidy"}); err != nil {
		if _, held := errors.AsType[*store.HeldError](err); held {
			return nil
		}
		return storeError(err)
	}
	if _, err := w.clock.Put(ctx, store.Key{"tidied"}, nil); err != nil {
		return storeError(err)
	}
	now, err := w.clock.Get(ctx, store.Key{"tidied"}) // its time is that of the servers
	if err != nil {
		return storeError(err)
	}
	all, err := w.All(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range all {
		o := &origin{w, id.key()}
		if err := o.tidy(ctx, now.Time); err != nil {
			failed = append(failed, fmt.Errorf("workspace %s of %s: %w", id.Name, id.Folder, err))
		}
	}
	return errors.Join(failed...)
}

// tidy compacts a workspace that has commits or unused contents, and has not changed for a while.
func (o *origin) tidy(ctx context.Context, now time.Time) error {
	last, err := o.log.Last(ctx, o.key)
	if err != nil {
		return storeError(err)
	}
	if now.Sub(last.Time) < idleTime {
		return nil
	}
	head, err := o.Head(ctx)
	if err != nil {
		return err
	}
	if head.Depth == 0 {
		unused, err := o.unusedBefore(ctx)
		if err != nil || len(unused) == 0 {
			return err
		}
	}
	delta, err := o.Since(ctx, workspace.Point{})
	if err != nil {
		return err
	}
	_, err = o.compact(ctx, delta.Head, filesOf(delta))
	return err
}

// filesOf returns the files after all commits.
func filesOf(delta workspace.Delta) []workspace.Entry {
	files := map[string]workspace.Entry{}
	for _, e := range delta.Entries {
		if files[e.Path] = e; e.Gone {
			delete(files, e.Path)
		}
	}
	paths := slices.Sorted(maps.Keys(files))
	all := make([]workspace.Entry, len(paths))
	for i, path := range paths {
		all[i] = files[path]
	}
	return all
}
