package access

import (
	"slices"
	"sync"

	"sallyport/internal/tool"
)

// Role is what a caller may do. Each role of people may do what those before it may; [Metrics] is apart.
type Role string

// The roles.
const (
	// Viewer sees tools, upstreams, and its own executions, approvals, runs and files.
	Viewer Role = "viewer"
	// User also runs programs, calls tools, starts workflows and logs in at upstreams.
	User Role = "user"
	// RoleOperator also sees the data of all principals, answers approvals and forms, and restarts upstreams.
	RoleOperator Role = "operator"
	// Admin also approves and rejects quarantined definitions of tools, changes the settings, and sees the audit log and the plugins.
	Admin Role = "admin"
	// Metrics only reads the metrics and the health of the gateway. Only tokens of http.metrics have it.
	Metrics Role = "metrics"
)

// Roles returns the roles of people, from the least rights to the most.
func Roles() []Role { return []Role{Viewer, User, RoleOperator, Admin} }

// Includes reports whether a role may do all that the other, one of people, may.
func (r Role) Includes(other Role) bool {
	return slices.Contains(Roles(), other) && slices.Index(Roles(), r) >= slices.Index(Roles(), other)
}

// May reports whether a role may do an operation: see [Operations].
func (r Role) May(operation string) bool {
	if r == Metrics {
		return slices.Contains(metricsOperations, operation)
	}
	return r.Includes(operations()[operation])
}

// scopes returns the scopes of a role.
func (r Role) scopes() []tool.Scope {
	switch r {
	case Metrics:
		return []tool.Scope{tool.ScopeMetrics}
	case Viewer:
		return []tool.Scope{tool.ScopeRead}
	case RoleOperator, Admin:
		return tool.Scopes()
	}
	return tool.UserScopes()
}

// WithRole returns the caller with a role and its scopes. With "" it has the scopes of a token of http.tokens.
func (v Caller) WithRole(r Role) Caller {
	v.Role, v.Scopes = r, r.scopes()
	if r.Includes(RoleOperator) {
		v.Operator = v.Principal
	}
	return v
}

// pages begin the names of operations of the dashboard in [Operations], which follow them as METHOD and path.
const pages = "dashboard "

// PageOperation returns the name of an operation of the dashboard.
func PageOperation(method, path string) string { return pages + method + " " + path }

// Operations returns the least role of people that may do each operation: operations of the API by operationId, pages and forms of the
// dashboard by [PageOperation], and MCP as "mcp". A caller with a role may do no operation that is not in the table.
func Operations() map[string]Role {
	all := map[string]Role{}
	for role, names := range leastRole {
		for _, name := range names {
			all[name] = role
		}
	}
	return all
}

// Refuses reports whether the caller has a role that may not do an operation.
func (v Caller) Refuses(operation string) bool { return v.Role != "" && !v.Role.May(operation) }

var operations = sync.OnceValue(Operations)
