package replay

import (
	"context"
	"fmt"
	"slices"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// repeatable reports whether a tool is currently marked read-only or idempotent.
func (rr *Replay) repeatable(id tool.ID) bool {
	if rr.readOnly(id) {
		return true
	}
	e, known := rr.opts.Catalog.Lookup(id)
	return known && e.Annotations.Idempotent != nil && *e.Annotations.Idempotent
}

// safeToRepeat reports whether an earlier call is safe to repeat: the tool is repeatable and its definition is unchanged.
func (rr *Replay) safeToRepeat(c journal.Call) bool {
	if rr.readOnly(c.Tool) {
		return true
	}
	e, known := rr.opts.Catalog.Lookup(c.Tool)
	return known && e.Digest() == c.Definition && rr.repeatable(c.Tool)
}

// uncertain reports whether a call without a known result may have been done: its end or its result is not in the journal, or it
// failed with an error that the upstream did not report.
func uncertain(c journal.Call) bool {
	switch {
	case c.Decision == journal.Skipped:
		return true
	case c.Decision == journal.Done, c.State == journal.Refused:
		return false
	case c.State == journal.Begun, c.Lost:
		return true
	case c.Err == nil:
		return false
	}
	return !c.Err.Retryable && !slices.Contains([]tool.Kind{tool.Failed, tool.Invalid, tool.NotFound}, c.Err.Kind)
}

// succeeded reports whether a call is known to have succeeded.
func succeeded(c journal.Call) bool {
	return c.State == journal.Ended && !c.Lost && c.Err == nil && !c.Result.IsError
}

// replayDoubt is a doubt about calls of the resumed execution. It implements [toolcall.Doubt].
type replayDoubt struct {
	replayer *replayer
	run      *toolcall.Execution
	attempt  *toolcall.Attempt
	text     string
	// calls are those that the new call may repeat: one identical call (exact), or calls of the same tool with
	// other arguments that may mean the same.
	calls []*entry
	exact bool
}

// doubtOf returns why a call may already have been done: found is the identical call of the resumed execution, kin are calls that
// may mean the same. It is nil if the call cannot have been done or is safe to repeat.
func (r *replayer) doubtOf(found *entry, kin []*entry, run *toolcall.Execution, made *toolcall.Attempt) *replayDoubt {
	switch {
	case found.task() != "": // its result is waited for
		return nil
	case found != nil && found.action == actionConfirm && !r.replay.safeToRepeat(found.Call):
		return &replayDoubt{r, run, made, doubtText(found.Call, "it", r.resumes), []*entry{found}, true}
	case found == nil && len(kin) > 0:
		text := doubtText(kin[0].Call, "a call with other arguments", r.resumes) + "; this may be the same call"
		return &replayDoubt{r, run, made, text, kin, false}
	}
	return nil
}

func (d *replayDoubt) Reason() string { return d.text }

func (d *replayDoubt) Origins() (origins []string) {
	for _, p := range d.calls {
		origins = append(origins, p.Origin)
	}
	return origins
}

func (d *replayDoubt) Decide(ctx context.Context, decision journal.Decision, result tool.Result, failed *tool.Error) error {
	if err := d.replayer.decide(d.run.Journal, d.attempt, d, decision, result, failed); err != nil {
		d.replayer.replay.logJournalError(ctx, d.run, err)
		return unwritableError(err)
	}
	return nil
}

// doubtText returns why a call, which what names, may have been done.
func doubtText(c journal.Call, what, resumes string) string {
	switch {
	case c.Decision == journal.Skipped:
		return fmt.Sprintf("%s was left in doubt in %s", what, resumes)
	case c.Lost:
		return fmt.Sprintf("%s was done in %s, and its result was too large to be kept", what, resumes)
	case c.State == journal.Begun:
		return fmt.Sprintf("%s ended while %s was in flight: it may have been done", resumes, what)
	}
	return fmt.Sprintf("%s failed in %s, but may have been done", what, resumes)
}
