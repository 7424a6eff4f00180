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

// NoTools is the bridge of internal programs, which call no tools.
type NoTools struct{}

// Call implements [bridge.Caller].
func (NoTools) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "this program calls no tools"}
}

// WorkflowsID is the upstream id of workflows as functions, and of their requests for approval.
const WorkflowsID = "workflows"

// GatewayID is the upstream id under which programs reach the gateway itself. No other upstream has it: see [tool.Identifier].
const GatewayID = "sallyport"

// SkillsID is what skills are imported from, and the upstream id of them in searches.
const SkillsID = "skills"
