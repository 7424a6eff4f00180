package oauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"sallyport/internal/sanitize"
)

// grantTimeout bounds one request for tokens. It continues after its caller's context
// ends: the server may have invalidated the old refresh token by then, and the new
// one must not be lost.
const grantTimeout = 30 * time.Second

// acquire acquires the lock of this process and then the one of all processes.
func (h *Handler) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.tokenLock <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for tokens: %w", context.Cause(ctx))
	}
	unlock, err := h.store.lock(ctx)
	if err != nil {
		<-h.tokenLock
		return nil, err
	}
	return func() { unlock(); <-h.tokenLock }, nil
}

// refresh returns a record with a fresh token other than refused. Concurrent callers
// share one refresh.
func (h *Handler) refresh(ctx context.Context, refused string) (*record, error) {
	release, err := h.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := h.store.read()
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, h.needLogin("login required")
	case r.Secret.Access != refused && r.fresh(h.opts.Now()):
		return r, nil
	case r.Secret.Refresh == "":
		return h.withoutRefresh(r, refused)
	}
	return h.renew(ctx, r, refused)
}

func (h *Handler) withoutRefresh(r *record, refused string) (*record, error) {
	if r.Secret.Access != refused && r.usable(h.opts.Now()) {
		return r, nil
	}
	if r.Ended == "" {
		r.end("the login has expired")
		if err := h.store.write(r); err != nil {
			return nil, err
		}
	}
	return nil, h.needLogin(r.Ended)
}

// renew requests new tokens. The caller holds the lock.
func (h *Handler) renew(ctx context.Context, r *record, refused string) (*record, error) {
	token, err := h.grant(ctx, h.clientOf(r), url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {r.Secret.Refresh}, "resource": {r.Resource},
	})
	if err == nil {
		h.updateRecord(r, token)
		h.log.Info("token refreshed", "expires", r.Expires)
		return r, h.store.write(r)
	}
	if reason := endReason(err); reason != "" {
		r.end(reason)
		h.log.Warn("login ended", "reason", reason)
		return nil, errors.Join(h.needLogin(reason), h.store.write(r))
	}
	if r.Secret.Access != refused && r.usable(h.opts.Now()) {
		h.log.Warn("token not refreshed, the old one is still good", "err", err)
		return r, nil
	}
	return nil, fmt.Errorf("refresh token: %w", err)
}

// clientForgotten is the reason of a login that ended because the authorization server lost the registration of its client.
const clientForgotten = "the server no longer knows the client of the login"

// endReason returns why a login has ended, "" if the request may be retried.
func endReason(err error) string {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		return ""
	}
	switch e.code {
	case "invalid_grant":
		return "the login has expired or was revoked"
	case "invalid_client", "unauthorized_client":
		return clientForgotten
	}
	return ""
}

// updateRecord stores new tokens in a record. A server that does not rotate refresh tokens
// sends none; the old one stays valid.
func (h *Handler) updateRecord(r *record, token *oauth2.Token) {
	now := h.opts.Now()
	r.Renewed, r.Ended, r.Secret.Access = now, "", token.AccessToken
	r.Expires, r.Life = time.Time{}, 0
	if r.Life = lifeOf(token); r.Life > 0 {
		r.Expires = now.Add(r.Life)
	}
	if token.RefreshToken != "" {
		r.Secret.Refresh = token.RefreshToken
	}
	r.Renewable = r.Secret.Refresh != ""
	if scope, ok := token.Extra("scope").(string); ok && scope != "" {
		r.Scopes = validScopes(strings.Fields(scope))
	}
}

// lifeOf returns the lifetime of a new token, 0 if the server did not send it.
func lifeOf(token *oauth2.Token) time.Duration {
	if token.Expiry.IsZero() {
		return 0
	}
	return max(time.Until(token.Expiry).Round(time.Second), time.Second)
}

// client is an OAuth client and its token endpoint.
type client struct {
	id, secret, tokenURL string
	basic                bool
}

func (h *Handler) clientOf(r *record) client {
	c := client{id: r.ClientID, secret: r.Secret.ClientSecret, tokenURL: r.TokenURL, basic: r.Basic}
	switch {
	case h.exchange.issued(r):
		c.secret = h.exchange.Secret()
	case !r.Registered:
		c.secret = h.settings.ClientSecret
	}
	return c
}

// refusal is an error response of a token endpoint, without its body.
type refusal struct{ code, text string }

func (e *refusal) Error() string { return "the authorization server refuses: " + e.text }

// isTransient reports whether the same request may succeed later.
func (e *refusal) isTransient() bool {
	return slices.Contains([]string{"server_error", "temporarily_unavailable", "slow_down"}, e.code)
}

var errorCodePattern = regexp.MustCompile(`^[a-z_]{1,40}$`)

// grant requests a bearer token of the authorization server of the upstream.
func (h *Handler) grant(ctx context.Context, c client, params url.Values) (*oauth2.Token, error) {
	token, err := requestToken(ctx, h.route, c, params)
	if err != nil {
		return nil, err
	}
	return token, checkBearer(token)
}

func checkBearer(token *oauth2.Token) error {
	if !strings.EqualFold(token.Type(), "bearer") || !isToken(token.AccessToken) {
		return errors.New("the authorization server sent no usable bearer token")
	}
	return nil
}

// requestToken requests a token. It uses the client credentials helper of x/oauth2 for all
// grants, because only that accepts additional parameters: each request must have
// the resource (RFC 8707).
func requestToken(ctx context.Context, by route, c client, params url.Values) (*oauth2.Token, error) {
	if err := by.guard.check("token endpoint", c.tokenURL); err != nil {
		return nil, err
	}
	cfg := clientcredentials.Config{
		ClientID: c.id, ClientSecret: c.secret, TokenURL: c.tokenURL, AuthStyle: oauth2.AuthStyleInParams, EndpointParams: maps.Clone(params),
	}
	if c.basic && c.secret != "" {
		cfg.AuthStyle = oauth2.AuthStyleInHeader
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grantTimeout)
	defer cancel()
	token, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, by.web))
	if err != nil {
		return nil, grantError(err)
	}
	return token, nil
}

// grantError returns the error without the body of the response, which may repeat secrets.
func grantError(err error) error {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return withoutURL(err)
	}
	if !errorCodePattern.MatchString(e.ErrorCode) {
		return fmt.Errorf("the authorization server answers %d", e.Response.StatusCode)
	}
	text := e.ErrorCode
	if e.ErrorDescription != "" {
		text += ": " + sanitize.Line(e.ErrorDescription, 200)
	}
	return &refusal{e.ErrorCode, text}
}

// withoutURL removes the URL from an error of net/http, since queries may contain secrets.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// isToken reports whether s is safe in a header (more permissive than RFC 6750).
func isToken(s string) bool {
	if s == "" || len(s) > 32<<10 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
