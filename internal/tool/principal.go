package tool

import "context"

// caller is on whose behalf something is done. It is one value in the context, which is copied when a part of it is set.
type caller struct {
	principal, session, workspace, client, operator string

	remote bool
	// scopes are those of its token, if scoped is true.
	scopes []Scope
	scoped bool
	// clock is that of the program that calls; nil for none.
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

// WithPrincipal returns ctx with its principal: the name of
// a token or the subject of one, as the face that checked it knows it.
func WithPrincipal(ctx context.Context, name string) context.Context {
	c := callerOf(ctx)
	c.principal = name
	return c.in(ctx)
}

// Principal returns the name that was set by WithPrincipal, "" without authentication.
func Principal(ctx context.Context) string { return callerOf(ctx).principal }

// WithSession returns ctx with the session of its principal.
func WithSession(ctx context.Context, id string) context.Context {
	c := callerOf(ctx)
	c.session = id
	return c.in(ctx)
}

// Session returns the session that was set by WithSession, "" for none.
func Session(ctx context.Context) string { return callerOf(ctx).session }

// WithWorkspace sets the default workspace. The name is not checked.
func WithWorkspace(ctx context.Context, name string) context.Context {
	c := callerOf(ctx)
	c.workspace = name
	return c.in(ctx)
}

// Workspace returns the workspace that was set by WithWorkspace, "" for none.
func Workspace(ctx context.Context) string { return callerOf(ctx).workspace }

// WithRemote says that the caller is connected by HTTP, not by stdio.
func WithRemote(ctx context.Context) context.Context {
	c := callerOf(ctx)
	c.remote = true
	return c.in(ctx)
}

// Remote reports whether WithRemote was called.
func Remote(ctx context.Context) bool { return callerOf(ctx).remote }

// WithOperator says that the caller runs the gateway: what is kept of all principals may be seen,
// and what waits for a person may be answered. The name is for the record, such as "cli" or "token:ops".
// Only the faces say it, of who came in by the control socket or whom http.operators names.
func WithOperator(ctx context.Context, name string) context.Context {
	c := callerOf(ctx)
	c.operator = name
	return c.in(ctx)
}

// Operator returns the name that was set by WithOperator, "" for callers that are no operators.
func Operator(ctx context.Context) string { return callerOf(ctx).operator }

// WithClient says with which program the caller is connected: a name and a version, as the client itself says
// them, which is not checked.
func WithClient(ctx context.Context, name string) context.Context {
	c := callerOf(ctx)
	c.client = name
	return c.in(ctx)
}

// Client returns what was set by WithClient, "" for nothing.
func Client(ctx context.Context) string { return callerOf(ctx).client }

// Detached returns a context without a deadline, with the identity of the caller in ctx
// and no other values of it.
func Detached(ctx context.Context) context.Context {
	c := callerOf(ctx)
	return caller{principal: c.principal, session: c.session, workspace: c.workspace, client: c.client, remote: c.remote}.in(context.Background())
}
