package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/audit"
	"sallyport/internal/journal"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

const (
	// takeOverEvery is how often a gateway looks for executions of gateways that have died.
	takeOverEvery = 5 * time.Second
	// minCopied is the shortest time for which the copies of journals are kept.
	minCopied = time.Hour
)

// takeover records the executions of gateways that have died, from the copies of their journals. Of several gateways, the one that first
// writes the end to the copy does so; the gateway that only seemed dead cannot write there any more, so it makes no further calls.
type takeover struct{ *History }

func (h takeover) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-h.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	<-h.recovered
	for sleep.For(ctx, takeOverEvery) == nil {
		if h.opts.Records.Available() != nil {
			continue
		}
		recovery(h).again()
		if err := h.Copies.Left(ctx, recovery(h).one); err != nil && ctx.Err() == nil {
			h.opts.Logger.Warn("cannot look for executions of other gateways", "error", err)
		}
	}
}

// record stores the record of an execution. With a copy, the end is written there first, unless the execution had one: the error is
// [journal.ErrTaken] if another gateway has written it.
func (h recovery) record(f *journal.File, end End) error {
	if h.Copies == nil {
		return h.write(context.Background(), end.Record)
	}
	if f.Over == nil {
		if err := h.take(f, &end); err != nil {
			return err
		}
	}
	if err := h.audit(f, end); err != nil {
		return err
	}
	_, err := h.records.Get(context.Background(), KeyOf(end.Record.Principal, f.ID)) // the gateway that ran it may have stored it
	if errors.Is(err, store.ErrNotFound) {
		err = h.write(context.Background(), end.Record)
	}
	return err
}

// take writes the end of an execution of a gateway that was lost, as taken by this one.
func (h recovery) take(f *journal.File, end *End) error {
	written := newEnd(end.Record, nil)
	written.TakenBy = h.Copies.Gateway()
	end.TakenBy = written.TakenBy
	data, err := json.Marshal(written)
	if err != nil {
		return err
	}
	if err := f.End(data); err != nil {
		return err
	}
	h.opts.Logger.Warn("an execution was interrupted, because its gateway was lost", "execution", f.ID, "gateway", f.Gateway)
	return nil
}

// audit records that this gateway took an execution over. If the gateway that wrote the end was lost before it recorded that, this one
// does; if that gateway may be alive, the error is [journal.ErrTaken]. Until it succeeds, the execution is not on record, and it is
// called again: so the event is recorded at least once.
func (h recovery) audit(f *journal.File, end End) error {
	switch {
	case end.TakenBy == "" || h.opts.OnTaken == nil:
		return nil
	case end.TakenBy != h.Copies.Gateway() && h.Copies.Alive(end.TakenBy):
		return journal.ErrTaken
	}
	r := end.Record
	return h.opts.OnTaken(tool.WithSession(tool.WithPrincipal(context.Background(), r.Principal), r.Session), takenEvent(r, f.Gateway))
}

// takenEvent returns the event that an execution of a lost gateway was taken over.
func takenEvent(r Record, gateway string) audit.Event {
	code := sha256.Sum256([]byte(r.Code))
	e := audit.Event{
		Kind: audit.ExecutionTaken, Execution: r.ID, Resumes: r.Resumes, Gateway: gateway, Language: r.Language, Environment: r.Environment, Workspace: r.Workspace,
		Code: hex.EncodeToString(code[:]), Outcome: string(r.Status), Micros: r.Duration.Microseconds(), Calls: r.Made, Note: "no call is in doubt",
	}
	if doubts := unfinished(r.Calls); len(doubts) > 0 {
		e.Note = "may have been done, or not: " + strings.Join(doubts, ", ")
	}
	return e
}

// openLeft opens the journal of an execution to resume it. If its gateway has died and no other has recorded that, this one does so now.
func openLeft(h *History, principal, id string) (*journal.File, error) {
	folder := workspace.Folder(principal)
	h.taking.Lock()
	defer h.taking.Unlock()
	f, err := openJournal(h, folder, id)
	if err != nil || f.Over != nil || h.Copies == nil {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	_ = recovery{h}.recover(folder, id, h.opts.onRecord) // opening it says what is wrong
	return openJournal(h, folder, id)
}

// endTaken makes the result of a program that of an execution that another gateway has taken over.
func endTaken(e *execution.Result) {
	e.Status, e.Value, e.Fault, e.Resume = execution.Interrupted, nil, nil, e.ID
	e.Notes = append(e.Notes, "this gateway did not answer for a while, and another one has recorded the execution as interrupted: what it did since is not on record")
}
