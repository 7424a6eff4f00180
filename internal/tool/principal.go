package tool

import "context"

type (
	principalKey struct{}
	sessionKey   struct{}
	workspaceKey struct{}
	remoteKey    struct{}
	clientKey    struct{}
	operatorKey  struct{}
)

// WithPrincipal says on whose behalf what is done with ctx is done: the name of
// a token or the subject of one, as the face that checked it knows it.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name)
}

// Principal returns who WithPrincipal named, "" if nobody had to say who they are.
func Principal(ctx context.Context) string {
	name, _ := ctx.Value(principalKey{}).(string)
	return name
}

// WithSession says which session of the principal it is, where it has several.
func WithSession(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, sessionKey{}, id)
}

// Session returns which session WithSession named, "" if none was.
func Session(ctx context.Context) string {
	id, _ := ctx.Value(sessionKey{}).(string)
	return id
}

// WithWorkspace names the workspace of what names none itself; nobody has checked the name.
func WithWorkspace(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, workspaceKey{}, name)
}

// Workspace returns which workspace WithWorkspace named, "" if none was.
func Workspace(ctx context.Context) string {
	name, _ := ctx.Value(workspaceKey{}).(string)
	return name
}

// WithRemote says that whoever asks is connected by HTTP, not by the pipes of who started us.
func WithRemote(ctx context.Context) context.Context {
	return context.WithValue(ctx, remoteKey{}, true)
}

// Remote reports whether WithRemote was said.
func Remote(ctx context.Context) bool {
	remote, _ := ctx.Value(remoteKey{}).(bool)
	return remote
}

// WithOperator says that whoever asks runs the gateway: what is kept of all principals may be seen,
// and what waits for a person may be answered. The name is for the record, such as "cli" or "token:ops".
// Only the faces say it, of who came in by the control socket or whom http.operators names.
func WithOperator(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operatorKey{}, name)
}

// Operator returns the name that WithOperator gave, "" for everybody else.
func Operator(ctx context.Context) string {
	name, _ := ctx.Value(operatorKey{}).(string)
	return name
}

// WithClient says with which program whoever asks is connected: a name and a version, as the client itself says
// them, which nobody has checked.
func WithClient(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, clientKey{}, name)
}

// Client returns what WithClient named, "" if it named nothing.
func Client(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(string)
	return name
}

// Detached returns a context without an end that says of who is served what ctx
// does, and has nothing else of it.
func Detached(ctx context.Context) context.Context {
	bare := WithWorkspace(WithSession(WithPrincipal(context.Background(), Principal(ctx)), Session(ctx)), Workspace(ctx))
	if client := Client(ctx); client != "" {
		bare = WithClient(bare, client)
	}
	if Remote(ctx) {
		return WithRemote(bare)
	}
	return bare
}
