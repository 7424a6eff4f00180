package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"sallyport/internal/access"
	"sallyport/internal/expr"
	"sallyport/internal/tokenexchange"
)

// session is a person who signed in at a provider.
type session struct {
	provider *Provider
	state
}

// state is what is kept of a session. It is secret.
type state struct {
	Nonce     string `json:"nonce"`
	Subject   string `json:"subject"`
	Principal string `json:"principal"`
	// Refresh is "" if the provider gave no refresh token.
	Refresh string `json:"refresh,omitempty"`
}

// open returns the session of a state.
func (p *Provider) open(data []byte) (*session, error) {
	s := &session{provider: p}
	if err := json.Unmarshal(data, &s.state); err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return s, nil
}

// adopt verifies the ID token in a token response and returns its caller. A response to the redemption of a code must have the
// nonce; one to a refresh may lack it.
func (s *session) adopt(ctx context.Context, at *endpoints, token *oauth2.Token, nonce string) (access.Caller, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return access.Caller{}, errors.New("the provider gave no ID token")
	}
	claims, all, err := verifyID(ctx, at, s.provider.opts.Settings.Issuer, raw)
	if err != nil {
		return access.Caller{}, fmt.Errorf("verify ID token: %w", err)
	}
	switch {
	case claims.Nonce != s.Nonce && (nonce != "" || claims.Nonce != ""):
		return access.Caller{}, errors.New("verify ID token: it has another nonce")
	case s.Subject != "" && claims.Subject != s.Subject:
		return access.Caller{}, errors.New("verify ID token: it has another subject")
	case rp.VerifyAccessToken(token.AccessToken, claims.AccessTokenHash, claims.GetSignatureAlgorithm()) != nil:
		return access.Caller{}, errors.New("verify ID token: it is of another access token")
	}
	if s.provider.opts.Settings.Userinfo {
		if err := s.provider.addUserinfo(ctx, at, token.AccessToken, all); err != nil {
			return access.Caller{}, fmt.Errorf("read userinfo: %w", err)
		}
	}
	v, err := s.provider.opts.Caller(ctx, Claims{All: all, Issued: claims.GetIssuedAt(), Tokens: s.tokens(token, raw, claims)})
	if err != nil {
		return access.Caller{}, err
	}
	if s.Principal != "" && v.Principal != s.Principal {
		return access.Caller{}, errors.New("the claims name another principal now")
	}
	s.Subject, s.Principal = claims.Subject, v.Principal
	if token.RefreshToken != "" {
		s.Refresh = token.RefreshToken
	}
	return v, nil
}

// tokens returns the tokens of a response with a verified ID token.
func (s *session) tokens(token *oauth2.Token, raw string, claims *oidc.IDTokenClaims) []access.Subject {
	one := access.Subject{Issuer: s.provider.opts.Settings.Issuer, ID: claims.Subject}
	id, other := one, one
	id.Token, id.Kind, id.Expires = raw, tokenexchange.IDToken, claims.GetExpiration()
	other.Token, other.Kind, other.Expires = token.AccessToken, tokenexchange.AccessToken, token.Expiry
	return []access.Subject{id, other}
}

// verifyID returns the claims of an ID token: issued and signed by the provider, for this client, and not expired.
func verifyID(ctx context.Context, at *endpoints, issuer, raw string) (*oidc.IDTokenClaims, map[string]any, error) {
	verifier := rp.NewIDTokenVerifier(issuer, at.ClientID, at.keys, rp.WithSupportedSigningAlgorithms(Algorithms()...), rp.WithIssuedAtOffset(Leeway))
	verifier.Nonce = nil // adopt checks it
	claims, err := rp.VerifyIDToken[*oidc.IDTokenClaims](ctx, raw, verifier)
	if err != nil {
		return nil, nil, err
	}
	all, err := Decode(raw)
	return claims, all, err
}

// Decode returns the claims of a token, which the caller has verified.
func Decode(raw string) (map[string]any, error) {
	payload, err := oidc.ParseToken(raw, &struct{}{})
	if err != nil {
		return nil, err
	}
	value, err := expr.Decode(payload)
	all, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, errors.Join(errors.New("the claims are no object"), err)
	}
	return all, nil
}

// Renew reads the claims of a session again, and returns its new state: a refresh token may be valid once. The error is [access.ErrEnded]
// if the session must end; after others it may be tried again.
func (p *Provider) Renew(ctx context.Context, data []byte) (access.Caller, []byte, error) {
	s, err := p.open(data)
	if err != nil {
		return access.Caller{}, nil, fmt.Errorf("%w: %w", access.ErrEnded, err)
	}
	v, err := s.readAgain(ctx)
	if errors.Is(err, access.ErrEnded) {
		s.forget(ctx)
	}
	if err != nil {
		return access.Caller{}, nil, err
	}
	data, err = json.Marshal(s.state)
	return v, data, err
}

// forget deletes the tokens of the person, and what was got in exchange for them.
func (s *session) forget(ctx context.Context) { s.provider.opts.Subjects.Forget(ctx, s.Principal) }

func (s *session) readAgain(ctx context.Context) (access.Caller, error) {
	if s.Refresh == "" {
		return access.Caller{}, fmt.Errorf("%w: the provider gave no refresh token", access.ErrEnded)
	}
	at, err := s.provider.endpoints(ctx)
	if err != nil {
		return access.Caller{}, err
	}
	token, err := at.TokenSource(s.provider.context(ctx), &oauth2.Token{RefreshToken: s.Refresh}).Token()
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok && answer.Response.StatusCode < 500 && answer.Response.StatusCode != http.StatusTooManyRequests {
		return access.Caller{}, fmt.Errorf("%w: %w", access.ErrEnded, tokenError(err))
	}
	if err != nil {
		return access.Caller{}, tokenError(err)
	}
	v, err := s.adopt(ctx, at, token, "")
	if err != nil {
		return access.Caller{}, fmt.Errorf("%w: %w", access.ErrEnded, err)
	}
	return v, nil
}

// End deletes the tokens of the person of a session, and revokes the refresh token if the provider can.
func (p *Provider) End(ctx context.Context, data []byte) {
	s, err := p.open(data)
	if err != nil {
		return
	}
	s.forget(ctx)
	if at, err := p.endpoints(ctx); err == nil && s.Refresh != "" && at.revocation != "" {
		p.revoke(ctx, at, s.Refresh)
	}
}

// revoke revokes a refresh token.
func (p *Provider) revoke(ctx context.Context, at *endpoints, token string) {
	form := url.Values{"token": {token}, "token_type_hint": {"refresh_token"}}
	if at.Endpoint.AuthStyle == oauth2.AuthStyleInParams {
		form.Set("client_id", at.ClientID)
		if at.ClientSecret != "" {
			form.Set("client_secret", at.ClientSecret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if at.Endpoint.AuthStyle == oauth2.AuthStyleInHeader {
		r.SetBasicAuth(url.QueryEscape(at.ClientID), url.QueryEscape(at.ClientSecret))
	}
	if answer, err := p.web.Do(r); err == nil {
		_ = answer.Body.Close()
	}
}
