package workflow

import (
	"context"
	"encoding/json"

	"sallyport/gateway/workflow/spec"
)

// Stub can replace an attempt of a step: a tool, code, skill, task or workflow step, or a wait for time, but not
// a block, a form or an approval. It is called before each attempt; input are the arguments in JSON. If done, output (JSON) or
// err is the result of the attempt, to which the step's "output" is not applied; log, retries and timeouts work as usual.
// Workflow tests set it as [Options].Instead; a gateway does not. It must be safe for concurrent use.
type Stub func(ctx context.Context, path string, step *spec.Step, input json.RawMessage) (output json.RawMessage, done bool, err error)

// StepFromContext returns the run and the step path (see [Event]) that a call of [Caller] is made for, "" for none.
func StepFromContext(ctx context.Context) (run, path string) {
	p, _ := ctx.Value(stepKey{}).(stepPlace)
	return p.run, p.path
}

type stepPlace struct{ run, path string }

type stepKey struct{}

// atStep returns ctx with the run and step path, see [StepFromContext].
func atStep(ctx context.Context, run, path string) context.Context {
	return context.WithValue(ctx, stepKey{}, stepPlace{run, path})
}
