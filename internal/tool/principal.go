package tool

import "context"

type principalKey struct{}

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
