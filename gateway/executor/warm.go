package executor

import (
	"context"
	"maps"
	"slices"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// Warm prepares for programs: it opens the sandboxes, so that some are ready for the
// first program, and starts to build the environments of the settings. It is for the
// background, and returns when everything has been started, or when ctx ends. Programs
// retry what has failed.
func (ex *Executor) Warm(ctx context.Context) {
	ex.opts.Catalog.WaitConnected(ctx) // a later publish would discard ready sandboxes
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

// Warmed reports whether a sandbox is ready for the next program in a language.
func (ex *Executor) Warmed(language string) bool {
	interpreter, err := execution.Interpreter(language)
	return err == nil && ex.sandboxes.Waiting(interpreter) > 0
}
