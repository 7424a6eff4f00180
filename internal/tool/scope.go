package tool

import (
	"context"
	"slices"
)

// Scope is a permission of a caller over HTTP. Other callers (the control socket, stdio) have none
// in the context, and may do all that [Operator] and the rest of the context let them.
type Scope string

// The scopes of tokens, as `sallyport token create NAME --scope` takes them.
const (
	// ScopeMCP speaks MCP, at /mcp.
	ScopeMCP Scope = "mcp"
	// ScopeRead sees tools and upstreams, and of executions, approvals, runs, skills and files what is one's own.
	ScopeRead Scope = "read"
	// ScopeExecute runs programs.
	ScopeExecute Scope = "execute"
	// ScopeCall calls single tools.
	ScopeCall Scope = "call"
	// ScopeWorkflow starts runs of workflows, and steers one's own.
	ScopeWorkflow Scope = "workflow"
	// ScopeFiles changes the files of one's own workspaces.
	ScopeFiles Scope = "files"
	// ScopeMetrics reads /metrics.
	ScopeMetrics Scope = "metrics"
	// ScopeOperate sees what all principals have, and answers approvals: its owner is an [Operator], too.
	ScopeOperate Scope = "operate"
)

// Scopes are all scopes, in the order of the documentation.
func Scopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeExecute, ScopeCall, ScopeWorkflow, ScopeFiles, ScopeMetrics, ScopeOperate}
}

// UserScopes are the scopes of a caller without a token that sets others: all but metrics and operate.
func UserScopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeExecute, ScopeCall, ScopeWorkflow, ScopeFiles}
}

// WithScopes says what the caller may do.
func WithScopes(ctx context.Context, scopes []Scope) context.Context {
	c := callerOf(ctx)
	c.scopes, c.scoped = scopes, true
	return c.in(ctx)
}

// May reports whether the caller may do something. An operator may do all; without scopes in the context
// everybody may do what [UserScopes] says.
func May(ctx context.Context, scope Scope) bool {
	c := callerOf(ctx)
	switch {
	case c.operator != "":
		return true
	case !c.scoped:
		return slices.Contains(UserScopes(), scope)
	}
	return slices.Contains(c.scopes, scope)
}
