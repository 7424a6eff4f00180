package agent

import (
	"context"
	"fmt"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

// Script is a model that runs the script of a task.
type Script struct{ player *suite.Player }

// NewScript returns the model that runs the script of task in one mode. The caller must Close it.
func NewScript(task *suite.Task, w *suite.World, mode suite.Mode) *Script {
	return &Script{task.Play(w, mode)}
}

// Next implements [Model]: the script sees the results of the last turn.
func (s *Script) Next(_ context.Context, t *tokencount.Transcript) (Move, error) {
	var last []tokencount.Result
	if n := len(t.Turns); n > 0 {
		last = t.Turns[n-1].Results
	}
	calls, answer, err := s.player.Next(last)
	return Move{Text: answer, Calls: calls}, err
}

// Close ends the script, wherever it is.
func (s *Script) Close() { s.player.Stop() }

// Check returns what is wrong with a completed task: its answer, or its effects on the world.
func Check(task *suite.Task, w *suite.World, t *tokencount.Transcript) error {
	if want := task.Want(w); t.Answer != want {
		return fmt.Errorf("check %s: answered %.200q, not %.200q", task.Name, t.Answer, want)
	}
	if task.Done == nil {
		return nil
	}
	if err := task.Done(w); err != nil {
		return fmt.Errorf("check %s: %w", task.Name, err)
	}
	return nil
}
