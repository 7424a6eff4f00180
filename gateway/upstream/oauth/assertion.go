package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"sallyport/internal/access"
	"sallyport/internal/sanitize"
	"sallyport/internal/tokenexchange"
)

// redeem exchanges the ID token of a principal for an assertion of its identity (ID-JAG), and redeems that at the authorization server of
// the upstream: the extension enterprise-managed-authorization of MCP. The SDK's handler of it keeps its token itself, authenticates
// by parameters only and needs a provider with PKCE.
func (e *exchanger) redeem(ctx context.Context, at endpoints, subject access.Subject) (*record, error) {
	ask, err := e.h.probe(ctx)
	if err != nil {
		return nil, err
	}
	found, err := e.h.discover(ctx, ask)
	if err != nil {
		return nil, err
	}
	c := e.clientAt(found)
	assertion, err := e.assertion(ctx, at, subject, found, c.id)
	if err != nil {
		return nil, err
	}
	token, err := e.h.grant(ctx, c, url.Values{"grant_type": {tokenexchange.AssertionGrantType}, "assertion": {assertion}, "resource": {found.resource}})
	if err != nil {
		return nil, fmt.Errorf("redeem the assertion at %s: %w", sanitize.Line(found.meta.Issuer, 200), withoutToken(err, assertion))
	}
	r := &record{Resource: found.resource, Issuer: found.meta.Issuer, TokenURL: c.tokenURL, RevokeURL: found.meta.RevocationEndpoint, ClientID: c.id, Basic: c.basic}
	e.fill(r, subject, token)
	return r, nil
}

// clientAt returns the client of the settings at the authorization server of the upstream.
func (e *exchanger) clientAt(found *issuer) client {
	s := e.h.settings
	return client{id: cmp.Or(s.ClientID, s.ClientMetadata), secret: s.ClientSecret, tokenURL: found.meta.TokenEndpoint, basic: prefersBasic(found.meta.TokenEndpointAuthMethodsSupported)}
}

// assertion returns an assertion of the identity of a principal for a client of an authorization server.
func (e *exchanger) assertion(ctx context.Context, at endpoints, subject access.Subject, found *issuer, clientID string) (string, error) {
	audience, resource := cmp.Or(e.Audience, found.meta.Issuer), cmp.Or(e.Resource, found.resource)
	token, err := e.request(ctx, at, subject, audience, resource)
	if err != nil {
		return "", err
	}
	return token.AccessToken, e.checkAssertion(token, subject, audience, resource, clientID)
}

// assertionType is the type of the header of an ID-JAG.
const assertionType = "oauth-id-jag+jwt"

// checkAssertion checks an assertion: with another one the upstream would act for another person, or for another client.
func (e *exchanger) checkAssertion(token *oauth2.Token, subject access.Subject, audience, resource, clientID string) error {
	claims, ok := tokenexchange.Decode(token.AccessToken)
	switch {
	case !ok || !isToken(token.AccessToken) || !strings.EqualFold(strings.TrimPrefix(claims.Type, "application/"), assertionType):
		return errors.New("the identity provider issued no ID-JAG: its header lacks the type " + assertionType)
	case !strings.EqualFold(token.TokenType, "N_A"):
		return errors.New("the identity provider issued an ID-JAG as an access token")
	case strings.TrimSuffix(claims.Issuer, "/") != strings.TrimSuffix(e.Issuer, "/"):
		return errors.New("the ID-JAG is of another issuer")
	case claims.Subject != subject.ID:
		return errors.New("the ID-JAG is of another subject")
	case !claims.For(audience):
		return fmt.Errorf("the ID-JAG is for another audience than %s", sanitize.Line(audience, 200))
	case len(claims.Resource) > 0 && !claims.Of(resource):
		return fmt.Errorf("the ID-JAG is for another resource than %s", sanitize.Line(resource, 200))
	case claims.ClientID != clientID:
		return errors.New("the ID-JAG is for another client than auth.client_id")
	}
	return nil
}
