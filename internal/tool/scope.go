package tool

import (
	"context"
	"slices"
)

// Scope is one thing that somebody who came over HTTP may do. Who comes otherwise (the control socket, stdio) has none
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
	// ScopeOperate sees all of everybody, and answers what waits for a person: whoever has it is an [Operator] too.
	ScopeOperate Scope = "operate"
)

// Scopes are all scopes, in the order in which they are told.
func Scopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeExecute, ScopeCall, ScopeWorkflow, ScopeFiles, ScopeMetrics, ScopeOperate}
}

// UserScopes are those of whoever is let in without a token that says more or less: all but to read metrics and to operate.
func UserScopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeExecute, ScopeCall, ScopeWorkflow, ScopeFiles}
}

type scopesKey struct{}

// WithScopes says what whoever asks may do.
func WithScopes(ctx context.Context, scopes []Scope) context.Context {
	return context.WithValue(ctx, scopesKey{}, scopes)
}

// May reports whether whoever asks may do something. An operator may do all; without scopes in the context
// everybody may do what [UserScopes] says.
func May(ctx context.Context, scope Scope) bool {
	if Operator(ctx) != "" {
		return true
	}
	scopes, ok := ctx.Value(scopesKey{}).([]Scope)
	if !ok {
		scopes = UserScopes()
	}
	return slices.Contains(scopes, scope)
}
