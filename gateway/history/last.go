package history

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/journal/shared"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// maxLast is how many journals LastFailed reads, of this gateway and of others.
const maxLast = 50

// LastFailed returns the id of the caller's last execution that did not succeed, or that succeeded but whose answer was lost when its
// gateway was killed; preferably of the same session, "" for none. With a shared store, another gateway may have run it. Errors are
// *tool.Error.
func (h *History) LastFailed(ctx context.Context) (string, error) {
	if h.Root == "" {
		return "", nil
	}
	h.Flush(ctx, "")
	elsewhere, err := ranElsewhere(ctx, h, false)
	if err != nil {
		return "", err
	}
	var last, same journal.Header // of all, and of the session
	for _, f := range append(lastFailedHere(h, tool.Principal(ctx)), elsewhere...) {
		if !isLastFailed(ctx, h, f) {
			continue
		}
		if f.Started.After(last.Started) {
			last = f.Header
		}
		if f.Session == tool.Session(ctx) && f.Started.After(same.Started) {
			same = f.Header
		}
	}
	return cmp.Or(same.ID, last.ID), nil
}

// lastFailedHere returns the newest journals of this gateway, but for those of programs that succeeded and were answered.
func lastFailedHere(h *History, principal string) (all []shared.Found) {
	folder := h.Folder(principal)
	ids := slices.DeleteFunc(journal.List(folder), func(id string) bool { return journal.Succeeded(journal.Path(folder, id)) })
	for _, id := range ids[:min(len(ids), maxLast)] {
		if f, err := openJournal(h, filepath.Base(folder), id); err == nil {
			_ = f.Close() // nothing was written
			all = append(all, shared.Found{Contents: f.Contents})
		}
	}
	return all
}

// ranElsewhere returns the journals that this gateway does not have, of programs of the caller that others ran.
func ranElsewhere(ctx context.Context, h *History, succeeded bool) ([]shared.Found, error) {
	folder := h.Folder(tool.Principal(ctx))
	here := journal.List(folder)
	all, err := h.Copies.Recent(ctx, shared.Query{
		Folder: filepath.Base(folder), Succeeded: succeeded, Most: maxLast, Skip: func(id string) bool { return slices.Contains(here, id) },
	})
	if err != nil {
		return nil, toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	return all, nil
}

// isLastFailed reports whether the caller can resume an execution as its last one.
func isLastFailed(ctx context.Context, h *History, f shared.Found) bool {
	return isOwn(ctx, f) && f.Resumed == "" && (f.Kept || f.Lost || EndOf(f.Contents, time.Time{}).Record.Status != sandbox.OK) && !orphan(h, f.Contents)
}

// isOwn reports whether a program is one that the caller ran at this endpoint, and not of a workflow.
func isOwn(ctx context.Context, f shared.Found) bool {
	return f.Principal == tool.Principal(ctx) && !ofRun(f.Root) && ProgramOf(f.Contents).Endpoint == tool.Endpoint(ctx)
}

// LastSucceeded returns the id of the caller's last execution that succeeded and whose journal is kept, "" for none. Errors are *tool.Error.
func (h *History) LastSucceeded(ctx context.Context) (string, error) {
	all, err := ranElsewhere(ctx, h, true)
	if err != nil {
		return "", err
	}
	folder := h.Folder(tool.Principal(ctx))
	ids := slices.DeleteFunc(journal.List(folder), func(id string) bool { return !journal.Succeeded(journal.Path(folder, id)) })
	for _, id := range ids[:min(len(ids), maxLast)] {
		if f, err := journal.Open(journal.Path(folder, id)); err == nil {
			_ = f.Close()
			all = append(all, shared.Found{Contents: f.Contents})
		}
	}
	var last journal.Header
	for _, f := range all {
		if isOwn(ctx, f) && f.Started.After(last.Started) {
			last = f.Header
		}
	}
	return last.ID, nil
}
