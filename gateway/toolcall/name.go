package toolcall

import (
	"context"
	"strings"

	"sallyport/internal/tool"
)

// TrimName returns a name from a request without surrounding space, truncated to MaxName bytes.
func TrimName(name string) string {
	return strings.TrimSpace(name[:min(len(name), MaxName)])
}

// MaxName is the maximum length of a name in a lookup, in bytes; names of tools are shorter.
const MaxName = 1 << 10

// NoTools is the caller for internal programs, which may not call tools.
type NoTools struct{}

// Call implements [bridge.Caller].
func (NoTools) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "this program calls no tools"}
}

// WorkflowsID is the upstream id of workflows as functions, and of their requests for approval.
const WorkflowsID = "workflows"

// GatewayID is the reserved upstream id of the gateway's own tools, see [tool.Identifier].
const GatewayID = "sallyport"

// SkillsID is the module that skills are imported from, and their upstream id in searches.
const SkillsID = "skills"
