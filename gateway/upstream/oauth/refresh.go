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

// exchange bounds one request for tokens once it is sent. It continues when its
// caller leaves: the server has spent the old refresh token by then, and the
// new one must not be lost.
const exchange = 30 * time.Second

// take waits for the turn of this process and then for that of all processes.
func (h *Handler) take(ctx context.Context) (release func(), err error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for tokens: %w", context.Cause(ctx))
	}
	unlock, err := h.store.lock(ctx)
	if err != nil {
		<-h.turn
		return nil, err
	}
	return func() { unlock(); <-h.turn }, nil
}

// refresh returns a record with a fresh token that is not refused. The one that
// waited finds what the first one got.
func (h *Handler) refresh(ctx context.Context, refused string) (*record, error) {
	release, err := h.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := h.store.read()
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, h.needLogin("it wants a login")
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

// renew asks for new tokens; the turn is taken.
func (h *Handler) renew(ctx context.Context, r *record, refused string) (*record, error) {
	token, err := h.grant(ctx, h.clientOf(r), url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {r.Secret.Refresh}, "resource": {r.Resource},
	})
	if err == nil {
		h.keep(r, token)
		h.log.Info("token refreshed", "expires", r.Expires)
		return r, h.store.write(r)
	}
	if reason := over(err); reason != "" {
		r.end(reason)
		h.log.Warn("login is over", "reason", reason)
		return nil, errors.Join(h.needLogin(reason), h.store.write(r))
	}
	if r.Secret.Access != refused && r.usable(h.opts.Now()) {
		h.log.Warn("token not refreshed, the old one is still good", "err", err)
		return r, nil
	}
	return nil, fmt.Errorf("refresh token: %w", err)
}

// over says why there is no use in asking again, "" if there is.
func over(err error) string {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		return ""
	}
	switch e.code {
	case "invalid_grant":
		return "the login has expired or was revoked"
	case "invalid_client", "unauthorized_client":
		return "the server no longer knows the client of the login"
	}
	return ""
}

// keep puts new tokens into a record. A server that rotates nothing sends no
// refresh token; the old one is good then.
func (h *Handler) keep(r *record, token *oauth2.Token) {
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
		r.Scopes = scopeTokens(strings.Fields(scope))
	}
}

// lifeOf is how long a token that was just sent is good for, 0 if that was not said.
func lifeOf(token *oauth2.Token) time.Duration {
	if token.Expiry.IsZero() {
		return 0
	}
	return max(time.Until(token.Expiry).Round(time.Second), time.Second)
}

// client is who asks for tokens, and where.
type client struct {
	id, secret, tokenURL string
	basic                bool
}

func (h *Handler) clientOf(r *record) client {
	c := client{id: r.ClientID, secret: r.Secret.ClientSecret, tokenURL: r.TokenURL, basic: r.Basic}
	if !r.Registered {
		c.secret = h.settings.ClientSecret
	}
	return c
}

// refusal is an error answer of a token endpoint, without its body.
type refusal struct{ code, text string }

func (e *refusal) Error() string { return "the authorization server refuses: " + e.text }

// passes says that the same request may have another answer later.
func (e *refusal) passes() bool {
	return slices.Contains([]string{"server_error", "temporarily_unavailable", "slow_down"}, e.code)
}

var codeForm = regexp.MustCompile(`^[a-z_]{1,40}$`)

// grant asks the token endpoint. One helper of x/oauth2 serves all grants,
// because it is the one that takes our parameters next to its own: the
// resource (RFC 8707) must be in each request.
func (h *Handler) grant(ctx context.Context, c client, params url.Values) (*oauth2.Token, error) {
	if err := h.guard.check("token endpoint", c.tokenURL); err != nil {
		return nil, err
	}
	cfg := clientcredentials.Config{
		ClientID: c.id, ClientSecret: c.secret, TokenURL: c.tokenURL, AuthStyle: oauth2.AuthStyleInParams, EndpointParams: maps.Clone(params),
	}
	if c.basic && c.secret != "" {
		cfg.AuthStyle = oauth2.AuthStyleInHeader
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchange)
	defer cancel()
	token, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, h.client))
	if err != nil {
		return nil, worded(err)
	}
	if !strings.EqualFold(token.Type(), "bearer") || !isToken(token.AccessToken) {
		return nil, errors.New("the authorization server sent no bearer token that can be used")
	}
	return token, nil
}

// worded leaves out the body of an answer, which may repeat what was sent.
func worded(err error) error {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return reason(err)
	}
	if !codeForm.MatchString(e.ErrorCode) {
		return fmt.Errorf("the authorization server answers %d", e.Response.StatusCode)
	}
	text := e.ErrorCode
	if e.ErrorDescription != "" {
		text += ": " + sanitize.Line(e.ErrorDescription, 200)
	}
	return &refusal{e.ErrorCode, text}
}

// reason takes the URL out of an error of net/http, for queries may hold secrets.
func reason(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// isToken says whether it can stand in a header (RFC 6750, with room for more).
func isToken(s string) bool {
	if s == "" || len(s) > 32<<10 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
