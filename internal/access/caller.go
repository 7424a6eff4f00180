// Package access controls access over HTTP: tokens made by sallyport token ([Tokens]) with their scopes, browser
// sessions ([Sessions]) and rate limits ([Limits]). A [Caller] is the caller of a request.
package access

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/tool"
)

// AuthMethod is how a visitor is authenticated.
type AuthMethod string

// The ways of authentication.
const (
	// ByNothing: no token is required, or not for this request.
	ByNothing AuthMethod = ""
	// BySettings: a token of http.tokens.
	BySettings AuthMethod = "settings"
	// ByToken: a token of [Tokens].
	ByToken AuthMethod = "token"
	// ByOAuth: an access token.
	ByOAuth AuthMethod = "oauth"
	// BySession: a browser's session.
	BySession AuthMethod = "session"
)

// Caller is the caller of an HTTP request.
type Caller struct {
	// By is how it is authenticated.
	By AuthMethod
	// Principal is its name, "" without a token.
	Principal string
	// Scopes are the scopes that it has.
	Scopes []tool.Scope
	// Operator is the name of the operator for records, "" if it is not an operator.
	Operator string
	// Token is the id of the token of [Tokens] that authenticated it or opened its session.
	Token string
	// Expires is when it must log in again; zero: never.
	Expires time.Time
	// Role is its role by the settings of identities, "" without one: then only its scopes restrict it.
	Role Role
	// Rate is the rate limit of its token; zero: that of the settings.
	Rate Rate
	// Local says that it has logged in with a one-time code, which only the owner of the data directory gets.
	Local bool
	// Groups are its groups by the claims that were issued at GroupsAt, for a session of a provider.
	Groups   []string
	GroupsAt time.Time
}

// MayConfigure reports whether the visitor may change the settings, and with them which programs the gateway starts: tokens and
// http.operators may not.
func (v Caller) MayConfigure() bool { return v.Local || v.Role == Admin }

// May reports whether the visitor has a scope. An operator has all.
func (v Caller) May(scope tool.Scope) bool {
	return v.Operator != "" || slices.Contains(v.Scopes, scope)
}

type callerKey struct{}

// NewContext returns a context with the visitor, its principal and scopes, and whether it is an operator.
func (v Caller) NewContext(ctx context.Context) context.Context {
	ctx = tool.WithRemote(tool.WithPrincipal(context.WithValue(ctx, callerKey{}, v), v.Principal))
	ctx = tool.WithScopes(ctx, v.Scopes)
	if v.Operator != "" {
		ctx = tool.WithOperator(ctx, v.Operator)
	}
	return ctx
}

// CallerFrom returns the visitor in a context; false if the context is not of an HTTP request.
func CallerFrom(ctx context.Context) (Caller, bool) {
	v, ok := ctx.Value(callerKey{}).(Caller)
	return v, ok
}
