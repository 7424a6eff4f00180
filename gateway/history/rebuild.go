package history

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

// The names of the record buckets in [store.Damage].
const (
	executionsPlace = "bucket_executions"
	approvalsPlace  = "bucket_approvals"
)

// rebuilder rebuilds damaged records: those of executions from their journals, or else from the audit log, which has no
// results and, by default, no program. An approval is marked as lost, and its call requests it again.
type rebuilder struct {
	recorder *History
	book     *approval.Store
	damaged  func(ctx context.Context) ([]store.Damage, error)
	audit    string // the folder of the audit log, "" for none
	log      *slog.Logger
}

// RebuildWith enables the rebuild of damaged records, with those of approvals in book. It does nothing if records are in memory.
func (h *History) RebuildWith(book *approval.Store) {
	if h.opts.Records == nil {
		return
	}
	b := &rebuilder{recorder: h, book: book, damaged: h.opts.Records.ListDamage, log: h.opts.Logger}
	if h.opts.DataDir != "" {
		b.audit = audit.Dir(h.opts.DataDir)
	}
	h.rebuild = b.run
}

// run rebuilds the damaged records, and logs what it did.
func (b *rebuilder) run(ctx context.Context) {
	places, lost, err := b.findLost(ctx)
	if err == nil && len(places) > 0 {
		err = b.rebuild(ctx, places, lost)
	}
	if err != nil && ctx.Err() == nil {
		b.log.Error("damaged records are not rebuilt", "error", err)
	}
}

func (b *rebuilder) rebuild(ctx context.Context, places map[string]bool, lost map[string]string) error {
	for id, folder := range lost {
		if r, ok := b.recordFromJournal(folder, id); ok {
			b.save(ctx, r)
			delete(lost, id)
		}
	}
	if b.audit != "" {
		missing, err := findMissing(ctx, b.audit, b.recorder.opts.keep(), b.recorder.records, b.book)
		if err != nil {
			return err
		}
		if places[approvalsPlace] {
			b.markApprovalsLost(ctx, missing.Approvals)
		}
		if places[executionsPlace] {
			for _, e := range missing.Executions {
				lost[e.Execution] = workspace.Folder(e.Principal)
			}
			if err := b.rebuildAudited(ctx, lost); err != nil {
				return err
			}
		}
	}
	for id := range lost {
		b.log.Error("the record of an execution is lost", "execution", id)
	}
	return nil
}

// findLost returns the buckets with damage, and the folders of principals by the id of their executions without a valid record.
func (b *rebuilder) findLost(ctx context.Context) (places map[string]bool, lost map[string]string, err error) {
	all, err := b.damaged(ctx)
	places, lost = map[string]bool{}, map[string]string{}
	for _, d := range all {
		if d.Restored || d.Whole || time.Since(d.Found) > lookBack {
			continue
		}
		places[d.Place] = true
		if d.Place != executionsPlace || len(d.Key) != 2 {
			continue
		}
		if _, err := b.recorder.records.Get(ctx, d.Key); errors.Is(err, store.ErrNotFound) {
			lost[d.Key[1]] = d.Key[0]
		}
	}
	if !places[executionsPlace] && !places[approvalsPlace] {
		places = nil
	}
	return places, lost, err
}

// recordFromJournal returns the record from a journal.
func (b *rebuilder) recordFromJournal(folder, id string) (Record, bool) {
	if b.recorder.Root == "" || !filepath.IsLocal(folder) {
		return Record{}, false
	}
	path := journal.Path(filepath.Join(b.recorder.Root, folder), id)
	f, err := journal.Open(path)
	if err != nil {
		return Record{}, false
	}
	defer func() { _ = f.Close() }()
	r := EndOf(f.Contents, modTime(path)).Record
	return r, r.ID == id && workspace.Folder(r.Principal) == folder
}

// rebuildAudited rebuilds records of executions from the audit log, and removes them from lost.
func (b *rebuilder) rebuildAudited(ctx context.Context, lost map[string]string) error {
	running := map[string]*Record{}
	for r, err := range audit.Read(b.audit, 1) {
		switch folder, wanted := lost[r.Execution]; {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, audit.ErrDamaged):
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case wanted && folder == workspace.Folder(r.Principal) && addEvent(running, r.Event):
			b.save(ctx, *running[r.Execution])
			delete(lost, r.Execution)
		}
		if len(lost) == 0 {
			break
		}
	}
	return nil
}

// FromAudit returns what the audit log in a folder says about an execution: its calls with decisions and outcomes, no results, and
// by default no program. One without an end is interrupted. The error for an unknown one is fs.ErrNotExist.
func FromAudit(ctx context.Context, folder, id string) (Record, error) {
	running := map[string]*Record{}
	for r, err := range audit.Read(folder, 1) {
		if ctx.Err() != nil {
			return Record{}, ctx.Err()
		}
		if err != nil && !errors.Is(err, audit.ErrDamaged) {
			return Record{}, err
		}
		if err == nil && r.Execution == id && addEvent(running, r.Event) {
			break
		}
	}
	found := running[id]
	if found == nil {
		return Record{}, fs.ErrNotExist
	}
	found.Status = cmp.Or(found.Status, execution.Interrupted)
	found.Made = max(found.Made, len(found.Calls))
	return *found, nil
}

// addEvent applies an event to the records of running programs, and reports whether it ended one.
func addEvent(running map[string]*Record, e audit.Event) (over bool) {
	r := running[e.Execution]
	switch {
	case e.Kind == audit.ExecutionStart:
		running[e.Execution] = &Record{ID: e.Execution, Principal: e.Principal, Language: e.Language, Environment: e.Environment, Workspace: e.Workspace,
			Resumes: e.Resumes, Code: e.Text, Started: e.Time}
	case r == nil:
	case e.Kind == audit.Call:
		if id, err := tool.ParseID(e.Tool); err == nil && len(r.Calls) < toolcall.MaxRecords {
			r.Calls = append(r.Calls, toolcall.RecordedCall{Tool: id, Digest: e.Definition, Decision: e.Decision, Rule: e.Rule, Approval: e.Approval, Outcome: toolcall.Unfinished, Begun: e.Time})
		}
	case e.Kind == audit.Result:
		addResult(r, e)
	case e.Kind == audit.ExecutionEnd || e.Kind == audit.ExecutionTaken:
		r.Status, r.Made, r.Duration = sandbox.Status(e.Outcome), e.Calls, time.Duration(e.Micros)*time.Microsecond
		return true
	}
	return false
}

func addResult(r *Record, e audit.Event) {
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Tool.String() == e.Tool && c.Outcome == toolcall.Unfinished {
			c.Outcome, c.Duration, c.Size = e.Outcome, time.Duration(e.Micros)*time.Microsecond, e.Bytes
			return
		}
	}
}

// save stores a record, unless the store has it.
func (b *rebuilder) save(ctx context.Context, r Record) {
	if _, err := b.recorder.records.Get(ctx, KeyOf(r.Principal, r.ID)); !errors.Is(err, store.ErrNotFound) {
		return
	}
	if err := b.recorder.write(ctx, r); err != nil {
		b.log.Error("execution is not recorded", "execution", r.ID, "error", err)
		return
	}
	b.log.Warn("a damaged record of an execution was rebuilt", "execution", r.ID)
}

// markApprovalsLost marks approvals as lost.
func (b *rebuilder) markApprovalsLost(ctx context.Context, missing []audit.Event) {
	for _, e := range missing {
		a := approval.Approval{ID: e.Approval, State: approval.Lost, Asked: e.Time, Expires: e.Time, Note: "its record was damaged: the call asks again when it is made again",
			Request: approval.Request{Principal: e.Principal, Execution: e.Execution, Root: e.Execution, Tool: e.Tool, Rule: e.Rule}}
		if err := b.book.MarkLost(ctx, a); err != nil {
			b.log.Error("a lost approval is not noted", "approval", e.Approval, "error", err)
		}
		b.log.Error("an approval is lost: its record was damaged", "approval", e.Approval, "execution", e.Execution, "tool", e.Tool, "was", e.Outcome)
	}
}
