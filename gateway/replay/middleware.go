package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// Attempt returns the description of a program's call.
func (rr *Replay) Attempt(c tool.Call) *toolcall.Attempt {
	m := &toolcall.Attempt{Tool: c.Tool}
	var defaults map[string]any
	if e, known := rr.opts.Catalog.Lookup(c.Tool); known {
		m.Definition, defaults = e.Digest(), e.DefaultArgs()
	}
	if rr.opts.Settings.Load().Journal.Successes {
		m.Args = toolcall.Compact(c.Args)
	}
	sum := sha256.Sum256(toolcall.Canonical(c.Args, defaults))
	m.Arguments = hex.EncodeToString(sum[:])
	return m
}

// Middleware answers calls from the journal of the resumed execution, if they are in it.
func (rr *Replay) Middleware(next toolcall.Handler) toolcall.Handler {
	next = rr.journalRefusals(next)
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if run, made := toolcall.ExecutionOf(ctx), toolcall.AttemptOf(ctx); run != nil && made != nil && run.Replay != nil {
			return run.Replay.Call(ctx, c, next)
		}
		if err := rr.rejectStaleTokens(ctx, toolcall.ExecutionOf(ctx), c, ""); err != nil {
			return tool.Result{}, err
		}
		return next(ctx, c)
	}
}

// journalRefusals records in the journal a program's call that was refused before it was sent.
func (rr *Replay) journalRefusals(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		result, err := next(ctx, c)
		run, made := toolcall.ExecutionOf(ctx), toolcall.AttemptOf(ctx)
		if err == nil || run == nil || made == nil || run.Journal == nil || made.Journaled || made.Replaces != nil {
			return result, err
		}
		if err := run.Journal.Refuse(made.Tool, made.Definition, made.Arguments, tool.AsError(err)); err != nil {
			rr.logJournalError(ctx, run, err)
		}
		return result, err
	}
}

// Call implements [toolcall.Replayer].
func (r *replayer) Call(ctx context.Context, c tool.Call, next toolcall.Handler) (tool.Result, error) {
	run, made := toolcall.ExecutionOf(ctx), toolcall.AttemptOf(ctx)
	found, kin, err := r.take(ctx, made, r.replay.safeToRepeat)
	if err != nil {
		return tool.Result{}, err
	}
	if found != nil && found.action == actionAnswer {
		return r.answer(ctx, c, run, made, found)
	}
	c.Task = found.task()
	inDoubt := r.doubtOf(found, kin, run, made)
	if inDoubt != nil {
		made.Doubt = inDoubt
	}
	if found != nil || inDoubt != nil {
		made.Replaces = func() []int { return r.replace(found, inDoubt) }
	}
	defer r.release(found)
	if err := r.replay.rejectStaleTokens(ctx, run, c, r.resumes); err != nil {
		return tool.Result{}, err
	}
	result, err := next(ctx, c)
	if c.Task != "" && err != nil && tool.AsError(err).Kind == tool.Upstream && r.replay.safeToRepeat(found.Call) {
		c.Task = "" // the upstream has lost it
		return next(ctx, c)
	}
	return result, err
}

// answer returns the recorded result of a call.
func (r *replayer) answer(ctx context.Context, c tool.Call, run *toolcall.Execution, made *toolcall.Attempt, found *entry) (tool.Result, error) {
	if err := r.markAsked(run.Journal, found); err != nil {
		r.replay.logJournalError(ctx, run, err)
	}
	made.Replayed = true
	r.replay.opts.Guard.TaintReplayed(ctx, c)
	r.replay.countEffect(run, found.Call)
	return found.answer()
}

// rejectStaleTokens refuses a call with privacy tokens, from a journal or a workflow's log, whose values are lost.
func (rr *Replay) rejectStaleTokens(ctx context.Context, run *toolcall.Execution, c tool.Call, resumes string) error {
	if run != nil && resumes == "" && !run.Unattended || run == nil && toolcall.ScopeOf(ctx).Run == "" {
		return nil
	}
	token := rr.opts.Privacy.UnknownToken(ctx, c)
	if token == "" {
		return nil
	}
	from, hint := "before the gateway was restarted", "start another run to get a new one"
	if resumes != "" {
		from, hint = "the journal of "+resumes, "run the program without resume to get a new one"
	}
	return &tool.Error{Kind: tool.Invalid, Message: "the value of " + token + " is lost: it came from " + from, Hint: hint}
}

// Journal records the start and the result of a call in the execution's journal.
func (rr *Replay) Journal(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		run, made := toolcall.ExecutionOf(ctx), toolcall.AttemptOf(ctx)
		if run == nil || made == nil || run.Journal == nil {
			return next(ctx, c)
		}
		var replaces []int
		if made.Replaces != nil {
			replaces = made.Replaces()
		}
		number, err := run.Journal.Begin(journal.Start{
			Tool: made.Tool, Definition: made.Definition, Arguments: made.Arguments, Args: made.Args,
			Replaces: replaces, Sync: rr.opts.Settings.Load().Journal.Sync && !rr.repeatable(made.Tool), Fence: !rr.repeatable(made.Tool),
		})
		if err != nil {
			rr.logJournalError(ctx, run, err)
			if !rr.repeatable(made.Tool) { // after a crash, it would be unknown
				return tool.Result{}, unwritableError(err)
			}
		}
		made.Journaled = true
		c.OnTask = func(id string) {
			if err := run.Journal.Task(number, id); err != nil {
				rr.logJournalError(ctx, run, err)
			}
		}
		result, err := next(ctx, c)
		ended := journal.Call{Tool: made.Tool, State: journal.Ended, Result: result}
		if c.Tool.Method() == "tools/call" {
			ended.Result.Raw = nil // programs get the parsed result
		}
		if err != nil {
			ended.Err = tool.AsError(err)
		}
		if err := run.Journal.End(number, ended.Result, ended.Err); err != nil {
			rr.logJournalError(ctx, run, err)
		}
		rr.countEffect(run, ended)
		return result, err
	}
}

// logJournalError logs once that a journal is incomplete.
func (rr *Replay) logJournalError(ctx context.Context, run *toolcall.Execution, err error) {
	run.JournalFailed.Do(func() {
		rr.opts.Logger.ErrorContext(ctx, "journal cannot be written: calls that must not be made twice are refused", "execution", run.ID, "error", err)
	})
}

func unwritableError(err error) error {
	if errors.Is(err, journal.ErrTaken) {
		return &tool.Error{Kind: tool.Canceled, Message: "another gateway has taken this execution over, because this one did not answer for a while", Hint: "resume the execution", Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "the journal cannot be written", Hint: "the operator's log says why", Err: err}
}

// countEffect counts successful calls that changed something.
func (rr *Replay) countEffect(r *toolcall.Execution, c journal.Call) {
	if c.Err == nil && !c.Result.IsError && !rr.readOnly(c.Tool) {
		r.Effects.Add(1)
	}
}

func (rr *Replay) readOnly(id tool.ID) bool {
	if id.Method() != "tools/call" {
		return true
	}
	e, known := rr.opts.Catalog.Lookup(id)
	return known && e.Annotations.ReadOnly != nil && *e.Annotations.ReadOnly
}
