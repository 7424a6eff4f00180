package workflow

import (
	"context"
	"encoding/json"

	"sallyport/gateway/workflow/spec"
)

// Instead is asked before each attempt of a step that does something by itself: a tool, code, skill, workflow, or a wait
// for time, not one that holds others, a form or an approval. The input are its arguments, in JSON. Where done, output (JSON) or
// err is what the attempt came to, after what the step's "output" would make of it; all else (log, retries, timeouts) is as ever.
// Tests of workflows have their stubs in it ([Options].Instead); a gateway has none. It may be called from several goroutines.
type Instead func(ctx context.Context, path string, step *spec.Step, input json.RawMessage) (output json.RawMessage, done bool, err error)

// At returns the run, and the path of the step (see [Event]), that a call of [Door] is made for: "" for none.
func At(ctx context.Context) (run, path string) {
	p, _ := ctx.Value(stepKey{}).(stepPlace)
	return p.run, p.path
}

type stepPlace struct{ run, path string }

type stepKey struct{}

// atStep is ctx for what a step of a run does.
func atStep(ctx context.Context, run, path string) context.Context {
	return context.WithValue(ctx, stepKey{}, stepPlace{run, path})
}
