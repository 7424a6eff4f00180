package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"sallyport/gateway/call"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// madeCall is one call of a program, on its way down the chain.
type madeCall struct {
	tool tool.ID
	// definition and arguments are digests; the latter is that of the arguments' canonical form.
	definition, arguments string
	kept                  []byte // the arguments, where the journal keeps them
	left                  bool   // its journal knows of it
	replayed              bool   // it was answered from the journal
	repeats               *past  // the call of before that is made again, nil for a new one
	doubt                 *doubt // why it may have been done already, nil if it cannot have been

	decided func(verdict) // has its record say what becomes of it
}

type madeKey struct{}

// madeBy returns the call of a program that is made within ctx, nil if none is.
func madeBy(ctx context.Context) *madeCall {
	m, _ := ctx.Value(madeKey{}).(*madeCall)
	return m
}

func (g *Gateway) newMadeCall(call tool.Call) *madeCall {
	m := &madeCall{tool: call.Tool}
	var defaults map[string]any
	if e, known := g.catalog.known(call.Tool); known {
		m.definition, defaults = e.digest(), e.defaults()
	}
	if g.cfg.Load().Journal.Successes {
		m.kept = compact(call.Args)
	}
	sum := sha256.Sum256(canonicalArguments(call.Args, defaults))
	m.arguments = hex.EncodeToString(sum[:])
	return m
}

// replayed answers a call from the journal of the execution that is resumed, where it has been made already.
func (g *Gateway) replayed(next call.Handler) call.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		run, made := runningOf(ctx), madeBy(ctx)
		if run == nil || made == nil || run.journal == nil {
			if err := g.strangers(ctx, run, call); err != nil {
				return tool.Result{}, err
			}
			return next(ctx, call)
		}
		found, kin, err := run.replay.take(ctx, made, g.harmless)
		if err != nil {
			return tool.Result{}, err
		}
		if found != nil && found.fate == answered {
			return g.answerFromJournal(ctx, call, run, made, found)
		}
		made.repeats, made.doubt = found, g.doubtOf(found, kin, run.replay)
		defer run.replay.release(made)
		if err := g.strangers(ctx, run, call); err != nil {
			return tool.Result{}, err
		}
		result, err := next(ctx, call)
		if err != nil && !made.left && made.repeats == nil && made.doubt == nil {
			if err := run.journal.Refused(made.tool, made.definition, made.arguments, tool.AsError(err)); err != nil {
				g.unjournaled(ctx, run, err)
			}
		}
		return result, err
	}
}

// answerFromJournal answers a call as it was answered before.
func (g *Gateway) answerFromJournal(ctx context.Context, call tool.Call, run *running, made *madeCall, found *past) (tool.Result, error) {
	if err := run.replay.asked(run.journal, found); err != nil {
		g.unjournaled(ctx, run, err)
	}
	made.replayed = true
	g.taint(ctx, call, noted(g.labelsOf(g.policies.rules.Load(), call.Tool)))
	run.finished(g, found.Call)
	return found.answer()
}

// strangers refuses a call with tokens that an answer from the journal brought, or a workflow's log, and that mean nothing any more.
func (g *Gateway) strangers(ctx context.Context, run *running, call tool.Call) error {
	if run != nil && run.replay == nil && !run.unwaited || run == nil && unwaitedBy(ctx) == "" {
		return nil
	}
	token := g.Privacy.Unknown(ctx, call)
	if token == "" {
		return nil
	}
	from, hint := "before the gateway was started anew", "get it anew: start another run"
	if run != nil && run.replay != nil {
		from, hint = "the journal of "+run.replay.resumes, "get it anew: run the program without resume"
	}
	return &tool.Error{Kind: tool.Invalid, Message: "what " + token + " stands for is forgotten: it came from " + from, Hint: hint}
}

// journaled notes in the execution's journal that a call begins, and what it came to.
func (g *Gateway) journaled(next call.Handler) call.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		run, made := runningOf(ctx), madeBy(ctx)
		if run == nil || made == nil || run.journal == nil {
			return next(ctx, call)
		}
		number, err := run.journal.Begin(journal.Start{
			Tool: made.tool, Definition: made.definition, Arguments: made.arguments, Args: made.kept,
			Replaces: run.replay.replace(made), Sync: g.cfg.Load().Journal.Sync && !g.repeatable(made.tool),
		})
		if err != nil {
			g.unjournaled(ctx, run, err)
			if made.doubt != nil { // that it is made again has to be on record first
				return tool.Result{}, &tool.Error{Kind: tool.Internal, Message: "the journal cannot be written", Hint: "the operator's log says why", Err: err}
			}
		}
		made.left = true
		result, err := next(ctx, call)
		ended := journal.Call{Tool: made.tool, State: journal.Ended, Result: result}
		if call.Tool.Method() == "tools/call" {
			ended.Result.Raw = nil // programs get what is made of it
		}
		if err != nil {
			ended.Err = tool.AsError(err)
		}
		if err := run.journal.End(number, ended.Result, ended.Err); err != nil {
			g.unjournaled(ctx, run, err)
		}
		run.finished(g, ended)
		return result, err
	}
}

// unjournaled says once that an execution cannot be resumed.
func (g *Gateway) unjournaled(ctx context.Context, run *running, err error) {
	run.unjournaled.Do(func() {
		g.log.ErrorContext(ctx, "journal cannot be written: the execution cannot be resumed", "execution", run.id, "error", err)
	})
}

// finished counts what it would be a pity to do again.
func (r *running) finished(g *Gateway, c journal.Call) {
	if c.Err == nil && !c.Result.IsError && !g.readOnly(c.Tool) {
		r.done.Add(1)
	}
}

func (g *Gateway) readOnly(id tool.ID) bool {
	if id.Method() != "tools/call" {
		return true
	}
	e, known := g.catalog.known(id)
	return known && e.Annotations.ReadOnly != nil && *e.Annotations.ReadOnly
}
