package local

import (
	"context"
	"encoding/json"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Comparison is what one program costs a model, and what its calls would cost if the model made them directly. Everything is
// counted once, as for a client that caches; without a cache, each turn reads again what stands before it.
type Comparison struct {
	// Printed is what the program printed, Calls is how many calls it made.
	Printed string `json:"printed"`
	Calls   int    `json:"calls"`
	// Direct and Here are the parts of both ways.
	Direct Parts `json:"direct"`
	Here   Parts `json:"here"`
}

// Parts are the tokens of one way to do the work.
type Parts struct {
	// Definitions are those of tools, with instructions. Search is one search, Work are calls or programs, and their results.
	Definitions Count `json:"definitions"`
	Search      Count `json:"search"`
	Work        Count `json:"work"`
}

// Total is the sum of all parts.
func (p Parts) Total() Count { return p.Definitions.Plus(p.Search).Plus(p.Work) }

// Compare runs a program and counts. A program that fails is an error.
func (b *Bench) Compare(ctx context.Context, p execution.Program) (c Comparison, err error) {
	shown, err := b.Tokens(ctx)
	if err != nil {
		return c, err
	}
	e, err := b.gateway.Executor.Execute(ctx, p)
	if err != nil {
		return c, err
	}
	if e.Status != sandbox.OK {
		return c, &tool.Error{Kind: tool.Failed, Message: "the program failed: " + sanitize.Line(e.Ending(), 300), Hint: "run it with sallyport exec first"}
	}
	c.Printed = e.Text()
	c.Direct.Definitions, c.Here.Definitions = shown.PerTurn.Direct, shown.PerTurn.Here
	if shown.Search != nil {
		typical := int(shown.Search.Tokens.P50)
		c.Here.Search = Count{typical, typical}
	}
	if c.Here.Work, err = b.programWork(p, c.Printed); err != nil {
		return c, err
	}
	c.Calls, c.Direct.Work, err = b.directWork(ctx, e.ID)
	return c, err
}

// programWork counts a program and what it printed, as the model writes and reads it.
func (b *Bench) programWork(p execution.Program, printed string) (Count, error) {
	args, err := json.Marshal(map[string]string{"code": p.Code, "language": p.Language})
	if err != nil {
		return Count{}, err
	}
	turn := tokencount.Turn{Calls: []tokencount.Call{{Tool: suite.ExecuteCode, Args: args}}, Results: []tokencount.Result{{Text: printed}}}
	return b.counts(&tokencount.Transcript{Turns: []tokencount.Turn{turn}}, contextTokens)
}

// directWork counts the calls of an execution as if the model had made them.
func (b *Bench) directWork(ctx context.Context, id string) (calls int, all Count, err error) {
	done, err := b.gateway.History.Succeeded(ctx, id)
	if err != nil {
		return 0, all, err
	}
	var turn tokencount.Turn
	for _, call := range done.Did {
		name := call.Tool.String()
		if t, known := b.gateway.Catalog.Tool(call.Tool); known {
			name = definition(t).Name
		}
		text := shownResult(call.Result)
		if call.Err != nil {
			text = call.Err.Error()
		}
		turn.Calls = append(turn.Calls, tokencount.Call{Tool: name, Args: call.Arguments})
		turn.Results = append(turn.Results, tokencount.Result{Text: text})
	}
	all, err = b.counts(&tokencount.Transcript{Turns: []tokencount.Turn{turn}}, contextTokens)
	return len(turn.Calls), all, err
}
