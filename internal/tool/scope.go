package tool

import (
	"context"
	"slices"
)

// Scope is a permission of a caller over HTTP. Other callers (the control socket, stdio) have no scopes in the
// context, and may do everything that [Operator] and the rest of the context allow.
type Scope string

// The scopes of tokens, as `sallyport token create NAME --scope` takes them.
const (
	// ScopeMCP allows MCP, at /mcp.
	ScopeMCP Scope = "mcp"
	// ScopeRead shows tools and upstreams, and the principal's own executions, approvals, runs, skills and files.
	ScopeRead Scope = "read"
	// ScopeExecute runs programs.
	ScopeExecute Scope = "execute"
	// ScopeCall calls single tools.
	ScopeCall Scope = "call"
	// ScopeWorkflow starts workflow runs, and controls the principal's own.
	ScopeWorkflow Scope = "workflow"
	// ScopeFiles changes the files of the principal's own workspaces.
	ScopeFiles Scope = "files"
	// ScopeMetrics reads /metrics.
	ScopeMetrics Scope = "metrics"
	// ScopeOperate shows data of all principals, and decides approvals: its owner is an [Operator], too.
	ScopeOperate Scope = "operate"
)

// Scopes returns all scopes, in the order of the documentation.
func Scopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeExecute, ScopeCall, ScopeWorkflow, ScopeFiles, ScopeMetrics, ScopeOperate}
}

// UserScopes returns the default scopes of a caller: all but metrics and operate.
func UserScopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeExecute, ScopeCall, ScopeWorkflow, ScopeFiles}
}

// WithScopes sets the caller's scopes.
func WithScopes(ctx context.Context, scopes []Scope) context.Context {
	c := callerOf(ctx)
	c.scopes, c.scoped = scopes, true
	return c.in(ctx)
}

// May reports whether the caller has a scope. An operator has all; without scopes in the context a caller has
// [UserScopes].
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
