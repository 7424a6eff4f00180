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

// probeTimeout is how long the requests of isKnown may take.
const probeTimeout = 10 * time.Second

// registration is the client of an earlier login at an authorization server.
type registration struct {
	h     *Handler
	found *issuer
	old   *record
}

// isKnown reports whether the authorization server still knows the client. Some servers lose their
// registrations; the user would see an error in place of a login. A server that does not answer is assumed to know it.
func (r registration) isKnown(ctx context.Context) bool {
	if r.old.Ended == clientForgotten {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if !r.pageRefuses(ctx) && !r.tokensRefuse(ctx) {
		return true
	}
	r.h.log.Info("the authorization server no longer knows the client, a new one is registered", "issuer", sanitize.Line(r.found.meta.Issuer, 200))
	return false
}

// pageRefuses reports whether the page of a login is an error. A server shows it and does not redirect if it does not know the
// client (RFC 6749, section 4.1.2.1).
func (r registration) pageRefuses(ctx context.Context) bool {
	h, old := r.h, r.old
	a := &Authorization{State: rand.Text(), found: r.found, who: clientRegistration{client: h.clientOf(old)}, scopes: h.scopes(r.found, old, nil), verifier: oauth2.GenerateVerifier(), redirect: old.Redirect}
	if h.guard.check("authorization endpoint", a.page()) != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.page(), nil)
	if err != nil {
		return false
	}
	client := *h.web
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
func (r registration) tokensRefuse(ctx context.Context) bool {
	c := r.h.clientOf(r.old)
	c.tokenURL = r.found.meta.TokenEndpoint
	_, err := r.h.grant(ctx, c, url.Values{
		"grant_type": {"authorization_code"}, "code": {rand.Text()}, "redirect_uri": {r.old.Redirect}, "code_verifier": {oauth2.GenerateVerifier()}, "resource": {r.found.resource},
	})
	return endReason(err) == clientForgotten
}
