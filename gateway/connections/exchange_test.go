package connections_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/connections"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/access"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/tool"
)

const exchangeAudience = "https://tools.example.com/mcp"

// newExchangeHouse is a house whose upstream exchanges the tokens of principals.
func newExchangeHouse(t *testing.T) *house {
	t.Helper()
	targets := &authserver.Exchange{Audience: exchangeAudience}
	h := &house{t: t, subjects: access.NewSubjects(), as: authserver.New(t, &authserver.Options{OpenID: true, Exchange: targets, Clients: []authserver.Client{{ID: "gw", Secret: "secret-of-gw", Exchanges: true}}})}
	h.rs = oauthtest.New(t, h.as, nil)
	targets.Targets = []string{h.rs.URL}
	h.open(fmt.Sprintf("upstreams:\n  tickets: {url: %q, auth: {per: principal, store: file, exchange: {issuer: %q, client_id: gw, client_secret: secret-of-gw}}}\napproval: {wait: 20s}\nhttp: {oauth: {issuer: %[2]q, audience: %q}}\n",
		h.rs.URL, h.as.URL, exchangeAudience), &gateway.Options{Subjects: h.subjects})
	return h
}

// comes makes a principal come with a token of a user.
func (h *house) comes(who, user string) {
	h.t.Helper()
	ends := time.Now().Add(time.Hour)
	token := h.as.Sign(h.t, map[string]any{"iss": h.as.URL, "sub": user, "aud": exchangeAudience, "scope": "tools", "exp": ends.Unix()})
	h.subjects.Put(h.t.Context(), who, access.Subject{Token: token, Kind: "access_token", Issuer: h.as.URL, ID: user, Expires: ends})
}

// TestExchanged: each principal calls as the person whose token it came with. A logout, and another person under the same name, end
// what it got, and revoke it; all of it is in the audit log.
func TestExchanged(t *testing.T) {
	t.Parallel()
	h := newExchangeHouse(t)
	_, err := h.call(h.of("oauth:ada"), "whoami")
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind == tool.Internal {
		t.Errorf("without a token: %v", err)
	}
	h.comes("oauth:ada", "ada")
	h.comes("oauth:bob", "bob")
	if err := h.g.Catalog.Connect(h.of("oauth:ada"), "tickets"); err != nil {
		t.Fatal(err)
	}
	h.is("oauth:ada", "ada")
	h.is("oauth:bob", "bob")
	one, err := h.g.Connections.Connection(h.of("oauth:ada"), "tickets")
	if err != nil || !one.LoggedIn || !one.Exchanged || one.Provider != h.as.URL || !one.ExchangeOnly {
		t.Errorf("ada's connection: %+v, %v", one, err)
	}
	if _, err := h.g.Connections.Connect(h.of("oauth:ada"), "tickets", connections.How{}); err == nil {
		t.Error("a login has begun, which the settings do not have")
	}
	h.comes("oauth:ada", "eve") // another person under the name
	h.is("oauth:ada", "eve")
	h.subjects.Forget(t.Context(), "oauth:ada")
	if h.connected(h.of("oauth:ada")) || !h.connected(h.of("oauth:bob")) {
		t.Error("the wrong tokens are gone")
	}
	if got, err := h.call(h.of("oauth:ada"), "whoami"); err == nil {
		t.Errorf("after the logout ada is %s", got)
	}
	h.is("oauth:bob", "bob")
	if n := h.as.Count("revoke"); n != 2 {
		t.Errorf("%d tokens were revoked, want those of ada and of eve", n)
	}
	h.audited("upstream.login oauth:ada", "upstream.login oauth:bob", "upstream.logout oauth:ada", "upstream.login oauth:ada", "upstream.logout oauth:ada")
}
