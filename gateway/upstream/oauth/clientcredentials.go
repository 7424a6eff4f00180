package oauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// clientCredentials is the state of the client credentials grant. Its token is only in memory,
// since a new one takes one request and no user.
type clientCredentials struct {
	mu      sync.Mutex
	found   *issuer // nil until the first challenge
	scopes  []string
	token   string
	expires time.Time
	margin  time.Duration
}

// credentialsGrant gets tokens for the client of the settings.
type credentialsGrant struct{ *Handler }

// token returns the current token, a new one if it has expired,
// "" before the first challenge.
func (h credentialsGrant) token(ctx context.Context) (string, error) {
	token, known, fresh := h.credentials.state(h.opts.Now())
	if fresh || !known {
		return token, nil
	}
	return h.newToken(ctx, token)
}

func (m *clientCredentials) state(now time.Time) (token string, known, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh = m.token != "" && (m.expires.IsZero() || now.Add(m.margin).Before(m.expires))
	return m.token, m.found != nil, fresh
}

// renew handles a refusal by a new token, with more scopes if those are missing.
func (h credentialsGrant) renew(ctx context.Context, used string, ask challenge) error {
	m := &h.credentials
	if ask.scope {
		m.mu.Lock()
		more := subtract(ask.scopes, m.scopes)
		m.mu.Unlock()
		if len(more) == 0 {
			return &LoginError{Upstream: h.settings.ID, Reason: "the client lacks scopes", Client: true}
		}
	}
	if err := h.discoverAgain(ctx, ask); err != nil {
		return err
	}
	_, err := h.newToken(ctx, used)
	return err
}

// discoverAgain discovers the server again: it may have moved.
func (h credentialsGrant) discoverAgain(ctx context.Context, ask challenge) error {
	found, err := h.discover(ctx, ask)
	if err != nil {
		return err
	}
	m := &h.credentials
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found != nil && m.found.meta.Issuer != found.meta.Issuer {
		return errors.New("the upstream names another authorization server than before; its client's secret is not sent there")
	}
	wanted := h.settings.Scopes
	if len(wanted) == 0 {
		wanted = found.scopes
	}
	m.found, m.scopes = found, subtract(slices.Concat(m.scopes, wanted, ask.scopes), nil)
	return nil
}

// newToken gets a token other than the refused one. Concurrent callers share one request.
func (h credentialsGrant) newToken(ctx context.Context, refused string) (string, error) {
	select {
	case h.tokenLock <- struct{}{}:
		defer func() { <-h.tokenLock }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	m := &h.credentials
	if token, _, fresh := m.state(h.opts.Now()); fresh && token != refused {
		return token, nil
	}
	m.mu.Lock()
	found, scopes := m.found, m.scopes
	m.mu.Unlock()
	params := url.Values{"grant_type": {"client_credentials"}, "resource": {found.resource}}
	if len(scopes) > 0 {
		params.Set("scope", strings.Join(scopes, " "))
	}
	token, err := h.grant(ctx, client{
		id: h.settings.ClientID, secret: h.settings.ClientSecret, tokenURL: found.meta.TokenEndpoint,
		basic: prefersBasic(found.meta.TokenEndpointAuthMethodsSupported),
	}, params)
	if e, ok := errors.AsType[*refusal](err); ok && !e.isTransient() {
		return "", &LoginError{Upstream: h.settings.ID, Reason: e.Error(), Client: true}
	}
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.token, m.expires, m.margin = token.AccessToken, time.Time{}, 0
	if life := lifeOf(token); life > 0 {
		m.expires, m.margin = h.opts.Now().Add(life), min(30*time.Second, life/10)
	}
	return m.token, nil
}
