package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"sallyport/internal/sanitize"
)

// issuer is the authorization server found by an upstream's metadata.
type issuer struct {
	resource string
	// scopes are those of the challenge or else of the resource's metadata.
	scopes []string
	meta   *oauthex.AuthServerMeta
	// known reports that meta was found, not built by the rules of 2025-03-26.
	known bool
}

// discover finds the authorization server of the upstream.
func (h *Handler) discover(ctx context.Context, ask challenge) (*issuer, error) {
	resource, err := h.resource(ctx, ask)
	if err != nil {
		return nil, err
	}
	if len(resource.AuthorizationServers) == 0 {
		return nil, errors.New("the upstream's metadata names no authorization server")
	}
	at := resource.AuthorizationServers[0]
	if err := h.guard.check("authorization server", at); err != nil {
		return nil, err
	}
	if want := h.settings.Issuer; want != "" && strings.TrimSuffix(at, "/") != strings.TrimSuffix(want, "/") {
		return nil, fmt.Errorf("the upstream names another authorization server than the settings: %s", sanitize.Line(at, 200))
	}
	found := &issuer{resource: resource.Resource, scopes: ask.scopes}
	if len(found.scopes) == 0 {
		found.scopes = validScopes(resource.ScopesSupported)
	}
	found.meta, err = auth.GetAuthServerMetadata(ctx, at, h.web)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of the authorization server: %s", sanitize.Line(withoutURL(err).Error(), 300))
	}
	if found.known = found.meta != nil; !found.known {
		base := strings.TrimSuffix(at, "/")
		found.meta = &oauthex.AuthServerMeta{
			Issuer: at, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register",
		}
	}
	return found, h.checkEndpoints(found)
}

// checkEndpoints checks the URLs in the metadata, and the support of PKCE.
func (h *Handler) checkEndpoints(found *issuer) error {
	m := found.meta
	if found.known && !slices.Contains(m.CodeChallengeMethodsSupported, "S256") {
		return errors.New("the authorization server does not know PKCE with S256")
	}
	if err := h.guard.check("token endpoint", m.TokenEndpoint); err != nil {
		return err
	}
	for what, at := range map[string]string{
		"authorization endpoint": m.AuthorizationEndpoint, "registration endpoint": m.RegistrationEndpoint, "revocation endpoint": m.RevocationEndpoint,
	} {
		if at == "" {
			continue
		}
		if err := h.guard.check(what, at); err != nil {
			return err
		}
	}
	return nil
}

// metadataLocation is a possible URL of a resource's metadata, and the resources that it may describe.
type metadataLocation struct {
	url       string
	resources []string
}

// metadataLocations returns them in the order of the specification. A resource is the endpoint,
// or the whole origin, as many servers identify themselves.
func (h *Handler) metadataLocations(ask challenge) ([]metadataLocation, error) {
	u, err := url.Parse(h.settings.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("its url is invalid")
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host}
	origin := root.String()
	mine := []string{h.settings.URL}
	for _, other := range []string{strings.TrimSuffix(h.settings.URL, "/"), origin, origin + "/"} {
		if !slices.Contains(mine, other) {
			mine = append(mine, other)
		}
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	var all []metadataLocation
	if ask.metadata != "" {
		if err := h.guard.check("metadata URL", ask.metadata); err != nil {
			return nil, err
		}
		all = append(all, metadataLocation{ask.metadata, mine})
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		all = append(all, metadataLocation{origin + wellKnown + "/" + path, mine})
	}
	return append(all, metadataLocation{origin + wellKnown, mine}), nil
}

// mismatch is part of the SDK's error for metadata of another resource.
const mismatch = "got metadata resource"

// resource returns the upstream's metadata, or the default of revision 2025-03-26,
// which had no metadata: the upstream's origin is its authorization server.
func (h *Handler) resource(ctx context.Context, ask challenge) (*oauthex.ProtectedResourceMetadata, error) {
	places, err := h.metadataLocations(ask)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		found, err := h.metadataAt(ctx, p)
		if err == nil {
			return found, nil
		}
		if strings.Contains(err.Error(), mismatch) {
			return nil, fmt.Errorf("the upstream's metadata describes another resource: %s", sanitize.Line(err.Error(), 300))
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read the upstream's metadata: %w", err)
		}
	}
	u, err := url.Parse(h.settings.URL)
	if err != nil {
		return nil, err
	}
	if h.settings.Issuer != "" { // an API, or a server older than metadata: the settings say whose tokens it accepts
		return &oauthex.ProtectedResourceMetadata{Resource: h.settings.URL, AuthorizationServers: []string{h.settings.Issuer}}, nil
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host}
	return &oauthex.ProtectedResourceMetadata{Resource: h.settings.URL, AuthorizationServers: []string{root.String()}}, nil
}

// metadataAt requests the metadata once for each possible resource.
func (h *Handler) metadataAt(ctx context.Context, p metadataLocation) (found *oauthex.ProtectedResourceMetadata, err error) {
	for _, resource := range p.resources {
		found, err = oauthex.GetProtectedResourceMetadata(ctx, p.url, resource, h.web)
		if err == nil || !strings.Contains(err.Error(), mismatch) {
			return found, err
		}
	}
	return nil, err
}

// probe sends the first request of an MCP client, without a token, and returns the
// challenge in the response, which is empty if the server accepts the request.
func (h *Handler) probe(ctx context.Context) (challenge, error) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sallyport","version":"auth"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.settings.URL, bytes.NewReader([]byte(hello)))
	if err != nil {
		return challenge{}, errors.New("its url is invalid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := h.web.Do(req)
	if err != nil {
		return challenge{}, fmt.Errorf("reach the upstream: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	return parseChallenge(resp), nil
}
