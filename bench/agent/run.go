package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sallyport/bench/tokencount"
)

// ErrLimit is the error of a task without an answer within its limits.
var ErrLimit = errors.New("no answer within the limits")

// Run runs m on the task of t until it makes a turn without calls. The text of that turn is the answer. t has task, mode and
// prompt; Run fills the rest, also when it returns an error. A limit of zero means none.
func Run(ctx context.Context, m Model, tools Tools, t *tokencount.Transcript, limits Limits) (used Usage, err error) {
	if limits.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limits.Time, fmt.Errorf("%w: %s are over", ErrLimit, limits.Time))
		defer cancel()
	}
	t.Instructions, t.Definitions = tools.Instructions(), tools.Definitions()
	for {
		if limits.Turns > 0 && len(t.Turns) == limits.Turns {
			return used, fmt.Errorf("run %s: %w: %d turns are over", t.Task, ErrLimit, limits.Turns)
		}
		move, err := m.Next(ctx, t)
		if err != nil {
			return used, fmt.Errorf("run %s: %w", t.Task, contextCause(ctx, err))
		}
		used.add(move.Usage)
		turn := tokencount.Turn{Text: move.Text, Calls: move.Calls}
		turn.Results, err = results(ctx, tools, t, move.Calls)
		t.Turns = append(t.Turns, turn)
		if err != nil {
			return used, fmt.Errorf("run %s: %w", t.Task, contextCause(ctx, err))
		}
		if len(move.Calls) == 0 {
			t.Answer = move.Text
			return used, nil
		}
	}
}

// contextCause returns the cause of ctx's end, if it has ended, and err otherwise.
func contextCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (u *Usage) add(more Usage) {
	u.Input += more.Input
	u.Cached += more.Cached
	u.Stored += more.Stored
	u.Output += more.Output
}

// results makes the calls of a turn, in order. Calls that no client would forward get an error result here.
func results(ctx context.Context, tools Tools, t *tokencount.Transcript, calls []tokencount.Call) (all []tokencount.Result, err error) {
	known := map[string]bool{}
	for _, name := range t.KnownTools() {
		known[name] = true
	}
	for _, call := range calls {
		var r tokencount.Result
		switch {
		case !known[call.Tool]:
			r = unknown(call.Tool)
		case !object(call.Args):
			r = tokencount.Result{Text: "The arguments are no JSON object.", Error: true}
		default:
			if r, err = tools.Call(ctx, call); err != nil {
				return all, fmt.Errorf("call %s: %w", call.Tool, err)
			}
		}
		// What the model has seen already does not come into the context again.
		r.Shows = slices.DeleteFunc(r.Shows, func(def tokencount.Definition) bool { return known[def.Name] })
		for _, def := range r.Shows {
			known[def.Name] = true
		}
		all = append(all, r)
	}
	return all, nil
}

func object(args json.RawMessage) bool {
	return json.Valid(args) && bytes.HasPrefix(bytes.TrimSpace(args), []byte("{"))
}
