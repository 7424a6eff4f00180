package oauth

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"sallyport/internal/sanitize"
)

// probeTimeout is how long the requests of isRegistered may take.
const probeTimeout = 10 * time.Second

// isRegistered reports whether the authorization server still knows the client of an earlier login. Some servers lose their
// registrations; the user would see an error in place of a login. A server that does not answer is assumed to know it.
func (h *Handler) isRegistered(ctx context.Context, found *issuer, old *record) bool {
	if old.Ended == clientForgotten {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if !h.pageRefuses(ctx, found, old) && !h.tokensRefuse(ctx, found, old) {
		return true
	}
	h.log.Info("the authorization server no longer knows the client, a new one is registered", "issuer", sanitize.Line(found.meta.Issuer, 200))
	return false
}

// pageRefuses reports whether the page of a login is an error. A server shows it and does not redirect if it does not know the
// client (RFC 6749, section 4.1.2.1).
func (h *Handler) pageRefuses(ctx context.Context, found *issuer, old *record) bool {
	a := &Authorization{State: rand.Text(), found: found, who: clientRegistration{client: h.clientOf(old)}, scopes: h.scopes(found, old, nil), verifier: oauth2.GenerateVerifier(), redirect: old.Redirect}
	if h.guard.check("authorization endpoint", a.page()) != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.page(), nil)
	if err != nil {
		return false
	}
	client := *h.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized
}

// tokensRefuse reports whether the token endpoint refuses the client when it redeems a code that does not exist. A server that
// knows the client refuses the code (RFC 6749, section 5.2).
func (h *Handler) tokensRefuse(ctx context.Context, found *issuer, old *record) bool {
	c := h.clientOf(old)
	c.tokenURL = found.meta.TokenEndpoint
	_, err := h.grant(ctx, c, url.Values{
		"grant_type": {"authorization_code"}, "code": {rand.Text()}, "redirect_uri": {old.Redirect}, "code_verifier": {oauth2.GenerateVerifier()}, "resource": {found.resource},
	})
	return endReason(err) == clientForgotten
}
