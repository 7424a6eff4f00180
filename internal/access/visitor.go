// Package access controls access over HTTP: tokens made by sallyport token ([Tokens]) with their scopes, browser
// sessions ([Sessions]) and rate limits ([Limits]). A [Visitor] is the caller of a request.
package access

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/tool"
)

// Way is how a visitor is authenticated.
type Way string

// The ways of authentication.
const (
	// ByNothing: no token is required, or not for this request.
	ByNothing Way = ""
	// BySettings: a token of http.tokens.
	BySettings Way = "settings"
	// ByToken: a token of [Tokens].
	ByToken Way = "token"
	// ByOAuth: an access token.
	ByOAuth Way = "oauth"
	// BySession: a browser's session.
	BySession Way = "session"
)

// Visitor is the caller of an HTTP request.
type Visitor struct {
	// By is how it is authenticated.
	By Way
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
	// Rate is the rate limit of its token; zero: that of the settings.
	Rate Rate
}

// May reports whether the visitor has a scope. An operator has all.
func (v Visitor) May(scope tool.Scope) bool {
	return v.Operator != "" || slices.Contains(v.Scopes, scope)
}

type visitorKey struct{}

// Into returns a context with the visitor, its principal and scopes, and whether it is an operator.
func (v Visitor) Into(ctx context.Context) context.Context {
	ctx = tool.WithRemote(tool.WithPrincipal(context.WithValue(ctx, visitorKey{}, v), v.Principal))
	ctx = tool.WithScopes(ctx, v.Scopes)
	if v.Operator != "" {
		ctx = tool.WithOperator(ctx, v.Operator)
	}
	return ctx
}

// VisitorOf returns the visitor in a context; false if the context is not of an HTTP request.
func VisitorOf(ctx context.Context) (Visitor, bool) {
	v, ok := ctx.Value(visitorKey{}).(Visitor)
	return v, ok
}
