package tool

import "context"

// caller is the identity on whose behalf a request runs. It is one value in the context, which is copied when a part
// of it is set.
type caller struct {
	principal, session, workspace, client, operator, endpoint string

	remote bool
	// scopes are those of its token, if scoped is true.
	scopes []Scope
	scoped bool
	// clock is the clock of the calling program; nil for none.
	clock Clock
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

func (c caller) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// with returns ctx with a changed copy of its caller.
func with(ctx context.Context, change func(*caller)) context.Context {
	c := callerOf(ctx)
	change(&c)
	return c.in(ctx)
}

// WithPrincipal returns ctx with its principal: the name or the subject of a token, as authenticated by the API.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return with(ctx, func(c *caller) { c.principal = name })
}

// Principal returns the name set by WithPrincipal, "" without authentication.
func Principal(ctx context.Context) string { return callerOf(ctx).principal }

// WithSession returns ctx with the principal's session.
func WithSession(ctx context.Context, id string) context.Context {
	return with(ctx, func(c *caller) { c.session = id })
}

// Session returns the session that was set by WithSession, "" for none.
func Session(ctx context.Context) string { return callerOf(ctx).session }

// WithWorkspace sets the default workspace. The name is not checked.
func WithWorkspace(ctx context.Context, name string) context.Context {
	return with(ctx, func(c *caller) { c.workspace = name })
}

// Workspace returns the workspace that was set by WithWorkspace, "" for none.
func Workspace(ctx context.Context) string { return callerOf(ctx).workspace }

// WithRemote marks the caller as connected over HTTP, not stdio.
func WithRemote(ctx context.Context) context.Context {
	return with(ctx, func(c *caller) { c.remote = true })
}

// Remote reports whether WithRemote was called.
func Remote(ctx context.Context) bool { return callerOf(ctx).remote }

// WithOperator marks the caller as an operator of the gateway: it may see data of all principals and decide pending
// approvals. The name is for the record, such as "cli" or "token:ops". Only the APIs set it, for callers from the
// control socket or those that http.operators names.
func WithOperator(ctx context.Context, name string) context.Context {
	return with(ctx, func(c *caller) { c.operator = name })
}

// Operator returns the name set by WithOperator, "" for other callers.
func Operator(ctx context.Context) string { return callerOf(ctx).operator }

// WithClient sets the caller's client program: a name and a version, as reported by the client and not checked.
func WithClient(ctx context.Context, name string) context.Context {
	return with(ctx, func(c *caller) { c.client = name })
}

// Client returns the value set by WithClient, "" for none.
func Client(ctx context.Context) string { return callerOf(ctx).client }

// IsPrincipal reports whether a name in the settings means a principal: it is the principal, or the name of its token.
func IsPrincipal(name, principal string) bool {
	return principal != "" && (name == principal || "token:"+name == principal)
}

// WithEndpoint confines the caller to the tools of an endpoint of the settings, by its name. It cannot be undone: with ""
// ctx stays as it is.
func WithEndpoint(ctx context.Context, name string) context.Context {
	if name == "" {
		return ctx
	}
	return with(ctx, func(c *caller) { c.endpoint = name })
}

// Endpoint returns the name set by WithEndpoint, "" for a caller who is not confined.
func Endpoint(ctx context.Context) string { return callerOf(ctx).endpoint }

// Detach returns a context without a deadline, with the caller's identity from ctx and no other values.
func Detach(ctx context.Context) context.Context {
	c := callerOf(ctx)
	return caller{principal: c.principal, session: c.session, workspace: c.workspace, client: c.client, endpoint: c.endpoint, remote: c.remote}.in(context.Background())
}
