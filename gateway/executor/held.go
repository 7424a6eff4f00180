package executor

import (
	"context"
	"regexp"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

// missingTool matches the error of a program that imports a tool that is not there, in each language.
var missingTool = regexp.MustCompile(`servers[./](\w+) has no tool (\w+)`)

// explainHeld tells a program that imports a quarantined tool that it is there, and why it must not be called.
func explainHeld(ctx context.Context, opts Options, e *execution.Result) {
	if e.Fault == nil {
		return
	}
	found := missingTool.FindStringSubmatch(e.Fault.Message)
	if found == nil {
		return
	}
	id := tool.ID{Upstream: found[1], Name: found[2]}
	if _, held := opts.Catalog.Hold(id); !held || !opts.Endpoints.Of(ctx).Has(id) {
		return
	}
	if _, err := opts.Catalog.Current(id); err != nil {
		e.Fault.Message, e.Fault.Hint = tool.AsError(err).Message, tool.AsError(err).Hint
	}
}
