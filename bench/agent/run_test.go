package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
)

// scripted is a model that makes these moves, whatever it sees.
type scripted []agent.Move

func (s *scripted) Next(ctx context.Context, t *tokencount.Transcript) (agent.Move, error) {
	if len(t.Turns) >= len(*s) {
		<-ctx.Done() // it thinks for ever
		return agent.Move{}, ctx.Err()
	}
	return (*s)[len(t.Turns)], nil
}

// bench has one tool, and one that appears when the first was called.
type bench struct{ called []string }

func (*bench) Instructions() []string               { return []string{"be quick"} }
func (*bench) Definitions() []tokencount.Definition { return []tokencount.Definition{{Name: "find"}} }

func (b *bench) Call(_ context.Context, call tokencount.Call) (tokencount.Result, error) {
	b.called = append(b.called, call.Tool)
	if call.Tool == "broken" {
		return tokencount.Result{}, errors.New("the server is gone")
	}
	return tokencount.Result{Text: "found", Shows: []tokencount.Definition{{Name: "hidden"}, {Name: "broken"}}}, nil
}

func calls(names ...string) (all []tokencount.Call) {
	for _, name := range names {
		all = append(all, tokencount.Call{Tool: name, Args: json.RawMessage("{}")})
	}
	return all
}

func run(ctx context.Context, limits agent.Limits, moves ...agent.Move) (*tokencount.Transcript, agent.Usage, *bench, error) {
	model, tools, t := scripted(moves), &bench{}, &tokencount.Transcript{Task: "try", Prompt: "do it"}
	used, err := agent.Run(ctx, &model, tools, t, limits)
	return t, used, tools, err
}

func TestRunWritesDownWhatWasRead(t *testing.T) {
	got, used, _, err := run(t.Context(), agent.Limits{},
		agent.Move{Calls: calls("hidden", "find", "find"), Usage: agent.Usage{Input: 10, Output: 2}},
		agent.Move{Calls: calls("hidden"), Usage: agent.Usage{Input: 20, Cached: 10, Output: 3}},
		agent.Move{Text: "42"})
	if err != nil {
		t.Fatal(err)
	}
	found := tokencount.Result{Text: "found", Shows: []tokencount.Definition{}}
	want := &tokencount.Transcript{
		Task: "try", Prompt: "do it", Instructions: []string{"be quick"}, Definitions: []tokencount.Definition{{Name: "find"}}, Answer: "42",
		Turns: []tokencount.Turn{
			// What was shown once is not shown again.
			{Calls: calls("hidden", "find", "find"), Results: []tokencount.Result{
				{Text: "No such tool available: hidden", Error: true},
				{Text: "found", Shows: []tokencount.Definition{{Name: "hidden"}, {Name: "broken"}}},
				found,
			}},
			{Calls: calls("hidden"), Results: []tokencount.Result{found}},
			{Text: "42"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := (agent.Usage{Input: 30, Cached: 10, Output: 5}); used != want {
		t.Errorf("used %+v, want %+v", used, want)
	}
}

func TestRunPassesOnNoArgumentsThatAreNone(t *testing.T) {
	for _, args := range []string{``, `[]`, `null`, `"{}"`, `{"a":`, `{} {}`} {
		got, _, tools, err := run(t.Context(), agent.Limits{}, agent.Move{Calls: []tokencount.Call{{Tool: "find", Args: json.RawMessage(args)}}}, agent.Move{Text: "done"})
		if err != nil || len(tools.called) != 0 || !got.Turns[0].Results[0].Error {
			t.Errorf("arguments %q: %v, called %q, %+v", args, err, tools.called, got.Turns[0].Results)
		}
	}
}

func TestRunEnds(t *testing.T) {
	gone, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	ask := agent.Move{Calls: calls("find")}
	for _, test := range []struct {
		name   string
		ctx    func() context.Context
		limits agent.Limits
		moves  []agent.Move
		want   error
		turns  int
	}{
		{"after its turns", t.Context, agent.Limits{Turns: 2}, []agent.Move{ask, ask, ask}, agent.ErrLimit, 2},
		{"when its time is over", t.Context, agent.Limits{Time: time.Millisecond}, []agent.Move{ask}, agent.ErrLimit, 1},
		{"when somebody interrupts", func() context.Context { return gone }, agent.Limits{Time: time.Hour}, []agent.Move{ask}, interrupted, 1},
		{"when a server is gone", t.Context, agent.Limits{}, []agent.Move{ask, {Calls: calls("broken")}}, nil, 2},
	} {
		got, _, _, err := run(test.ctx(), test.limits, test.moves...)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || len(got.Turns) != test.turns {
			t.Errorf("%s: %v after %d turns", test.name, err, len(got.Turns))
		}
	}
}
