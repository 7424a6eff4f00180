package toolcall

import (
	"context"
	"strings"

	"sallyport/internal/tool"
)

// TrimName is a name as it came in a request, cut where nothing can be called so.
func TrimName(name string) string {
	return strings.TrimSpace(name[:min(len(name), MaxName)])
}

// MaxName is the longest name that is looked for, in bytes; no tool has one that long.
const MaxName = 1 << 10

// NoTools is who calls tools from a program of ours that calls none.
type NoTools struct{}

// Call implements [bridge.Caller].
func (NoTools) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "this program calls no tools"}
}

// WorkflowsID is the upstream under which programs find workflows as functions, and questions of workflows stand.
const WorkflowsID = "workflows"
