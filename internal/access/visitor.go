// Package access knows who may come in over HTTP, and with what: tokens made by sallyport token ([Tokens]), what they
// may do, browser sessions ([Sessions]) and rate limits ([Limits]). A [Visitor] is the caller of a request.
package access

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/tool"
)

// Way is how a visitor came in.
type Way string

// The ways to come in.
const (
	// ByNothing: no token is asked for, or not for what was asked.
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

// Visitor is who makes a request over HTTP.
type Visitor struct {
	// By says how it came in.
	By Way
	// Principal is its name, "" without a token.
	Principal string
	// Scopes are what it may do.
	Scopes []tool.Scope
	// Operator is the name of an operator for the record, "" for everybody else.
	Operator string
	// Token is the id of the token of [Tokens] that it came in by, itself or when its session began.
	Token string
	// Expires is when it must log in again; zero: never.
	Expires time.Time
	// Rate is how many requests its token is good for, instead of the settings'.
	Rate Rate
}

// May reports whether the visitor may do something. An operator may do all.
func (v Visitor) May(scope tool.Scope) bool {
	return v.Operator != "" || slices.Contains(v.Scopes, scope)
}

type visitorKey struct{}

// Into says in a context who asks, for all that stand below: principal, scopes and whether it is an operator.
func (v Visitor) Into(ctx context.Context) context.Context {
	ctx = tool.WithRemote(tool.WithPrincipal(context.WithValue(ctx, visitorKey{}, v), v.Principal))
	ctx = tool.WithScopes(ctx, v.Scopes)
	if v.Operator != "" {
		ctx = tool.WithOperator(ctx, v.Operator)
	}
	return ctx
}

// VisitorOf returns who makes the request of a context; false where it is none over HTTP.
func VisitorOf(ctx context.Context) (Visitor, bool) {
	v, ok := ctx.Value(visitorKey{}).(Visitor)
	return v, ok
}
