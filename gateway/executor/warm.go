package executor

import (
	"context"
	"maps"
	"slices"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// Warm makes ready for programs: it opens the sandboxes, so that some wait for the
// first program, and begins to make the environments of the settings. It is for the
// background, and returns when all is on its way, or when ctx ends. What cannot be
// had now is tried again by the programs that need it.
func (ex *Executor) Warm(ctx context.Context) {
	ex.opts.Catalog.Settle(ctx) // a publish would make what waits useless
	if ctx.Err() != nil {
		return
	}
	host, release, err := ex.sandboxes.borrow()
	if err != nil {
		ex.opts.Logger.WarnContext(ctx, "programs cannot be run", "error", err)
		return
	}
	defer release()
	defaultKey := ""
	for _, name := range slices.Sorted(maps.Keys(ex.opts.Settings.Load().Environments)) {
		key, err := ex.opts.Environments.Ensure(ctx, name)
		if err == nil && name == "default" {
			defaultKey = key
		}
	}
	limits := ex.Limits(execution.Program{})
	host.Warm(
		sandbox.Job{Interpreter: sandbox.Python, Environment: defaultKey, Limits: limits},
		sandbox.Job{Interpreter: sandbox.Node, Environment: defaultKey, Limits: limits},
	)
}

// Warmed reports whether a sandbox waits for the next program in a language.
func (ex *Executor) Warmed(language string) bool {
	interpreter, err := execution.Interpreter(language)
	return err == nil && ex.sandboxes.Waiting(interpreter) > 0
}
