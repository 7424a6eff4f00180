package oauth_test

import (
	"crypto/rand"
	"maps"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/tokenexchange"
)

const assertionGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// assertionWorld is a world whose upstream has an authorization server of its own, which redeems assertions of the identity provider.
type assertionWorld struct {
	*exchangeWorld
	own *authserver.Server // of the upstream
}

func newAssertionWorld(t *testing.T) *assertionWorld {
	t.Helper()
	e := newExchangeWorld(t)
	e.as.Rotate(t) // all servers of a test begin with one key
	redeems := &authserver.Options{Provider: e.as, Clients: []authserver.Client{{ID: "gw-at-tickets", Secret: "secret-at-tickets", Redeems: true}}}
	redeems.Redeems = []string{"", "https://crm.example.com"}
	a := &assertionWorld{e, authserver.New(t, redeems)}
	e.rs = oauthtest.New(t, a.own, nil)
	redeems.Redeems[0] = e.rs.URL
	e.targets.Targets, e.targets.Assertions = []string{e.rs.URL}, map[string]string{a.own.URL: "gw-at-tickets"}
	return a
}

// comes makes the principal come with the ID token of a user.
func (a *assertionWorld) comes(user string, change map[string]any) {
	claims := map[string]any{"aud": "gw", "scope": nil, "client_id": nil}
	maps.Copy(claims, change)
	a.exchangeWorld.comes(user, claims)
}

// asserter returns a handler of the principal p.
func (a *assertionWorld) asserter(change func(x *oauth.Exchange, s *oauth.Settings)) *oauth.Handler {
	return a.exchanger(func(x *oauth.Exchange, s *oauth.Settings) {
		x.SubjectTokenType, x.RequestedTokenType = tokenexchange.IDToken, tokenexchange.IDJAG
		s.ClientID, s.ClientSecret = "gw-at-tickets", "secret-at-tickets"
		if change != nil {
			change(x, s)
		}
	})
}

// TestAssertion: the ID token of a person is exchanged for an assertion, which is redeemed at the authorization server of the upstream:
// once for each token. The logout revokes the token there.
func TestAssertion(t *testing.T) {
	a := newAssertionWorld(t)
	a.comes("ada", nil)
	h := a.asserter(nil)
	for range 2 {
		if got := a.who(h); got != "ada" {
			t.Fatalf("the caller is %q", got)
		}
	}
	a.own.RevokeAccess()
	if got := a.who(h); got != "ada" {
		t.Errorf("after the token was refused: %q", got)
	}
	a.comes("bob", nil)
	if got := a.who(h); got != "bob" {
		t.Errorf("bob is %q", got)
	}
	a.count(exchangeGrant, 3)
	if n := a.own.Count(assertionGrant); n != 3 {
		t.Errorf("%d assertions were redeemed", n)
	}
	status, err := h.Status()
	if err != nil || !status.Exchanged || status.Issuer != a.own.URL || status.Resource != a.rs.URL {
		t.Errorf("%+v, %v", status, err)
	}
	if text := a.readStored(); strings.Contains(text, a.person.Token) {
		t.Errorf("the ID token is stored: %s", text)
	}
	if was, revoked, err := h.Logout(t.Context()); err != nil || !was || !revoked || a.own.Count("revoke") != 1 {
		t.Errorf("logout: %v, %v, %v", was, revoked, err)
	}
}

// TestAssertionRefused: the provider and the authorization server refuse what they must.
func TestAssertionRefused(t *testing.T) {
	for name, test := range map[string]struct {
		person map[string]any
		change func(a *assertionWorld, x *oauth.Exchange, s *oauth.Settings)
		want   string
	}{
		"of another client": {map[string]any{"aud": "other"}, nil, "invalid_request: the subject token is for another audience than gw"},
		"expired":           {map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, nil, "invalid_request: the subject token is not valid"},
		"audience":          {nil, func(_ *assertionWorld, x *oauth.Exchange, _ *oauth.Settings) { x.Audience = "https://crm.example.com" }, "invalid_target: no identities are asserted"},
		"resource":          {nil, func(_ *assertionWorld, x *oauth.Exchange, _ *oauth.Settings) { x.Resource = "https://crm.example.com" }, "invalid_target: there is no resource"},
		"secret":            {nil, func(_ *assertionWorld, _ *oauth.Exchange, s *oauth.Settings) { s.ClientSecret = "secret-of-nobody" }, "refuses: invalid_client"},
		"client":            {nil, func(_ *assertionWorld, _ *oauth.Exchange, s *oauth.Settings) { s.ClientID = "unknown" }, "for another client than auth.client_id"},
		"other server":      {nil, func(_ *assertionWorld, _ *oauth.Exchange, s *oauth.Settings) { s.Issuer = "https://login.example.com" }, "names another authorization server than the settings"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssertionWorld(t)
			a.comes("ada", test.person)
			got := a.who(a.asserter(func(x *oauth.Exchange, s *oauth.Settings) {
				if test.change != nil {
					test.change(a, x, s)
				}
			}))
			if !strings.Contains(got, test.want) || strings.Contains(got, a.person.Token[:30]) {
				t.Errorf("%s", got)
			}
			if a.rs.Token.Load() != nil {
				t.Error("a token was sent to the upstream")
			}
		})
	}
}

// TestAssertionAttacks: only an assertion of the same person for this client, this upstream and its server is redeemed, and it is
// redeemed once.
func TestAssertionAttacks(t *testing.T) {
	a := newAssertionWorld(t)
	good := func(change map[string]any) string {
		claims := map[string]any{
			"iss": a.as.URL, "sub": "ada", "aud": a.own.URL, "client_id": "gw-at-tickets", "resource": a.rs.URL, "jti": rand.Text(), "exp": time.Now().Add(time.Minute).Unix(),
		}
		maps.Copy(claims, change)
		text, err := a.as.SignAssertion(claims)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, test := range map[string]struct {
		change map[string]any
		want   string
	}{
		"subject":  {map[string]any{"access_token": good(map[string]any{"sub": "bob"})}, "the ID-JAG is of another subject"},
		"issuer":   {map[string]any{"access_token": good(map[string]any{"iss": a.own.URL})}, "the ID-JAG is of another issuer"},
		"audience": {map[string]any{"access_token": good(map[string]any{"aud": "https://crm.example.com"})}, "for another audience than " + a.own.URL},
		"resource": {map[string]any{"access_token": good(map[string]any{"resource": "https://crm.example.com"})}, "for another resource than " + a.rs.URL},
		"client":   {map[string]any{"access_token": good(map[string]any{"client_id": "other"})}, "for another client than auth.client_id"},
		"type":     {map[string]any{"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}, "a token of another type"},
		"header":   {map[string]any{"access_token": a.as.Sign(t, map[string]any{"iss": a.as.URL, "sub": "ada"})}, "no ID-JAG: its header lacks the type"},
		"bearer":   {map[string]any{"token_type": "Bearer"}, "an ID-JAG as an access token"},
		"opaque":   {map[string]any{"access_token": "opaque"}, "no ID-JAG"},
	} {
		a.comes("ada", nil)
		a.as.ChangeExchanged(func(response map[string]any) { maps.Copy(response, test.change) })
		if got := a.who(a.asserter(nil)); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := a.own.Count(assertionGrant); n != 0 {
		t.Errorf("%d bad assertions were redeemed", n)
	}
	replayed := good(nil)
	a.as.ChangeExchanged(func(response map[string]any) { response["access_token"] = replayed })
	if got := a.who(a.asserter(nil)); got != "ada" {
		t.Errorf("with a good assertion: %s", got)
	}
	a.own.RevokeAccess()
	if got := a.who(a.asserter(nil)); !strings.Contains(got, "invalid_grant: the assertion was redeemed before") {
		t.Errorf("with a replayed assertion: %s", got)
	}
	a.as.ChangeExchanged(func(response map[string]any) {
		response["access_token"] = good(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})
	})
	if got := a.who(a.asserter(nil)); !strings.Contains(got, "invalid_grant") {
		t.Errorf("with an expired assertion: %s", got)
	}
}
