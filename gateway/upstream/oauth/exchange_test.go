package oauth_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/access"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tokenexchange"
)

const (
	gatewayAudience = "https://tools.example.com/mcp"
	exchangeGrant   = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// exchangeWorld is a world whose authorization server is also the identity provider of the gateway.
type exchangeWorld struct {
	*world
	targets *authserver.Exchange
	person  access.Subject // with whose token the principal comes; none without a token
}

func newExchangeWorld(t *testing.T) *exchangeWorld {
	t.Helper()
	e := &exchangeWorld{targets: &authserver.Exchange{Audience: gatewayAudience}}
	e.world = newWorld(t, &authserver.Options{OpenID: true, Exchange: e.targets, Clients: []authserver.Client{
		{ID: "gw", Secret: "secret-of-gw", Exchanges: true}, {ID: "post", Secret: "secret-of-post", Post: true, Exchanges: true}, {ID: "idle", Secret: "secret-of-idle"},
	}}, nil)
	e.targets.Targets = []string{e.rs.URL, "tickets"}
	return e
}

// comes makes the principal come with a token of a user, whose claims may be changed.
func (e *exchangeWorld) comes(user string, change map[string]any) {
	e.t.Helper()
	claims := map[string]any{
		"iss": e.as.URL, "sub": user, "aud": gatewayAudience, "scope": "tools", "client_id": "agent", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	kind := tokenexchange.AccessToken
	if claims["scope"] == nil {
		kind = tokenexchange.IDToken
	}
	e.person = access.Subject{Token: e.as.Sign(e.t, claims), Kind: kind, Issuer: e.as.URL, ID: user, Seen: time.Now()}
}

// exchanger returns a handler of the principal p.
func (e *exchangeWorld) exchanger(change func(x *oauth.Exchange, s *oauth.Settings)) *oauth.Handler {
	return e.handler(func(s *oauth.Settings) {
		x := &oauth.Exchange{Exchange: *tokenexchange.New()}
		x.Issuer, x.ClientID, x.ClientSecret = e.as.URL, "gw", "secret-of-gw"
		x.Subject = func(issuer, kind string) (access.Subject, bool) {
			return e.person, e.person.Token != "" && e.person.Issuer == issuer && e.person.Kind == kind
		}
		s.Principal, s.Exchange = "p", x
		if change != nil {
			change(x, s)
		}
	})
}

// who calls the upstream, which answers by identity.
func (e *exchangeWorld) who(h *oauth.Handler) string {
	e.t.Helper()
	session, err := e.connect(h)
	if err != nil {
		return "error: " + err.Error()
	}
	result, err := session.CallTool(e.t.Context(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// TestExchange: the token of a person is exchanged once, and again when the result expires or is refused. It is stored nowhere.
func TestExchange(t *testing.T) {
	e := newExchangeWorld(t)
	e.comes("ada", nil)
	h := e.exchanger(nil)
	if got := e.who(h); got != "ada" {
		t.Fatalf("the caller is %q", got)
	}
	if got := e.who(e.exchanger(nil)); got != "ada" { // another process
		t.Errorf("with the stored token: %q", got)
	}
	e.count(exchangeGrant, 1)
	status, err := h.Status()
	if err != nil || !status.LoggedIn || !status.Exchanged || status.Issuer != e.as.URL || status.Resource != e.rs.URL {
		t.Errorf("status %+v, %v", status, err)
	}
	e.late.Store(int64(2 * time.Hour))
	if got := e.who(h); got != "ada" {
		t.Errorf("after the token has expired: %q", got)
	}
	e.late.Store(0)
	e.count(exchangeGrant, 2)
	e.as.RevokeAccess()
	if got := e.who(h); got != "ada" {
		t.Errorf("after the token was refused: %q", got)
	}
	e.count(exchangeGrant, 3)
	files, err := filepath.Glob(filepath.Join(e.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), e.person.Token) || strings.Contains(string(data), "secret-of-gw") {
			t.Errorf("%s: %v, %s", file, err, data)
		}
	}
	if was, revoked, err := h.Logout(t.Context()); err != nil || !was || !revoked {
		t.Errorf("logout: %v, %v, %v", was, revoked, err)
	}
	e.count("revoke", 1)
}

// TestExchangeWays: the token goes to the endpoint of the settings, in the way that the client is registered for.
func TestExchangeWays(t *testing.T) {
	for name, test := range map[string]struct {
		person map[string]any
		change func(e *exchangeWorld, x *oauth.Exchange)
	}{
		"audience": {nil, func(e *exchangeWorld, x *oauth.Exchange) { x.Audience, x.Resource = "tickets", e.rs.URL }},
		"endpoint": {nil, func(e *exchangeWorld, x *oauth.Exchange) { x.TokenEndpoint = e.as.URL + "/oauth/token" }},
		"jwt":      {nil, func(_ *exchangeWorld, x *oauth.Exchange) { x.RequestedTokenType = tokenexchange.JWT }},
		"id token": {map[string]any{"aud": "gw", "scope": nil, "client_id": nil}, func(_ *exchangeWorld, x *oauth.Exchange) { x.SubjectTokenType = tokenexchange.IDToken }},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExchangeWorld(t)
			e.comes("ada", test.person)
			if got := e.who(e.exchanger(func(x *oauth.Exchange, _ *oauth.Settings) { test.change(e, x) })); got != "ada" {
				t.Errorf("the caller is %q", got)
			}
		})
	}
}

// TestExchangeRefused: the provider refuses what it must, and the error says why, without the token.
func TestExchangeRefused(t *testing.T) {
	for name, test := range map[string]struct {
		person map[string]any
		change func(x *oauth.Exchange, s *oauth.Settings)
		want   string
	}{
		"audience":     {map[string]any{"aud": "https://other.example.com"}, nil, "refuses: invalid_request: the subject token is for another audience"},
		"type":         {map[string]any{"scope": nil, "aud": "gw"}, func(x *oauth.Exchange, _ *oauth.Settings) { x.SubjectTokenType = tokenexchange.AccessToken }, "this caller has none that is valid"},
		"expired":      {map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, nil, "refuses: invalid_request: the subject token is not valid"},
		"target":       {nil, func(x *oauth.Exchange, _ *oauth.Settings) { x.Audience = "crm" }, "refuses: invalid_target: there is no target crm"},
		"secret":       {nil, func(x *oauth.Exchange, _ *oauth.Settings) { x.ClientSecret = "secret-of-nobody" }, "refuses: invalid_client"},
		"client":       {nil, func(x *oauth.Exchange, _ *oauth.Settings) { x.ClientID = "unknown" }, "refuses: invalid_client"},
		"not allowed":  {nil, func(x *oauth.Exchange, _ *oauth.Settings) { x.ClientID, x.ClientSecret = "idle", "secret-of-idle" }, "refuses: unauthorized_client"},
		"other issuer": {nil, func(x *oauth.Exchange, _ *oauth.Settings) { x.Issuer = "https://sso.example.com" }, "from https://sso.example.com, to exchange it: this caller has none that is valid"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExchangeWorld(t)
			e.comes("ada", test.person)
			got := e.who(e.exchanger(test.change))
			if !strings.Contains(got, test.want) || strings.Contains(got, e.person.Token[:30]) || strings.Contains(got, "secret-of") {
				t.Errorf("%s", got)
			}
			if e.rs.Token.Load() != nil {
				t.Error("a token was sent to the upstream")
			}
		})
	}
}

// TestExchangeAttacks: what a provider answers is used only if it is a token of the same person for the upstream.
func TestExchangeAttacks(t *testing.T) {
	e := newExchangeWorld(t)
	foreign := authserver.New(t, nil)
	sign := func(change map[string]any) string {
		claims := map[string]any{"iss": e.as.URL, "sub": "ada", "aud": e.rs.URL, "scope": "read", "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(claims, change)
		return e.as.Sign(t, claims)
	}
	for name, test := range map[string]struct {
		change map[string]any
		want   string
	}{
		"another subject":  {map[string]any{"access_token": sign(map[string]any{"sub": "bob"})}, "a token of another subject"},
		"another audience": {map[string]any{"access_token": sign(map[string]any{"aud": []string{"https://crm.example.com"}})}, "a token for another audience: https://crm.example.com, not " + e.rs.URL},
		"another type":     {map[string]any{"issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, "a token of another type"},
		"no type":          {map[string]any{"issued_token_type": nil}, "a token of another type"},
		"not bearer":       {map[string]any{"token_type": "DPoP"}, "no usable bearer token"},
		"unusable":         {map[string]any{"access_token": "a b\r\nX: y"}, "no usable bearer token"},
	} {
		e.comes("ada", nil)
		e.as.ChangeExchanged(func(response map[string]any) { maps.Copy(response, test.change) })
		if got := e.who(e.exchanger(nil)); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	e.as.ChangeExchanged(nil)
	caught := make(chan string, 9)
	thief := tlstest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { caught <- r.FormValue("subject_token") }))
	e.as.RedirectTokens(thief.URL)
	if got := e.who(e.exchanger(nil)); !strings.HasPrefix(got, "error: ") {
		t.Errorf("with a redirect: %s", got)
	}
	e.as.RedirectTokens("")
	if got := e.who(e.exchanger(func(x *oauth.Exchange, _ *oauth.Settings) { x.TokenEndpoint = foreign.URL + "/oauth/token" })); !strings.Contains(got, "unsupported_grant_type") && !strings.Contains(got, "invalid_client") {
		t.Errorf("at a server without exchange: %s", got)
	}
	if len(caught) > 0 || e.rs.Token.Load() != nil {
		t.Error("a token went where it must not")
	}
}

// TestExchangePerson: a principal that is another person than before gets another token; without a token to exchange the cached one
// is used until it expires.
func TestExchangePerson(t *testing.T) {
	e := newExchangeWorld(t)
	h := e.exchanger(nil)
	_, err := h.Token(t.Context())
	login, ok := errors.AsType[*oauth.LoginError](err)
	if !ok || !login.Exchange || !strings.Contains(err.Error(), "upstream tickets needs the access token with which its client calls the gateway from "+e.as.URL) {
		t.Errorf("without a token: %v", err)
	}
	if _, err := e.connect(h); err == nil {
		t.Error("connected without a token")
	}
	e.comes("ada", nil)
	if got := e.who(h); got != "ada" {
		t.Errorf("ada is %q", got)
	}
	e.comes("bob", nil)
	if got := e.who(h); got != "bob" {
		t.Errorf("bob is %q", got)
	}
	e.person = access.Subject{}
	if got := e.who(h); got != "bob" {
		t.Errorf("without a token, with a cached one: %q", got)
	}
	if got := e.who(e.exchanger(func(x *oauth.Exchange, _ *oauth.Settings) { x.Audience = "tickets" })); !strings.Contains(got, "this caller has none that is valid") {
		t.Errorf("a cached token of other settings: %s", got)
	}
	if got := e.who(e.exchanger(func(_ *oauth.Exchange, s *oauth.Settings) { s.Principal = "q" })); !strings.Contains(got, "this caller has none that is valid") {
		t.Errorf("a cached token of another principal: %s", got)
	}
	if _, err := e.connect(e.handler(func(s *oauth.Settings) { s.Principal = "p" })); err == nil {
		t.Error("an exchanged token was used as a login")
	}
	e.late.Store(int64(2 * time.Hour))
	if got := e.who(h); !strings.Contains(got, "this caller has none that is valid") {
		t.Errorf("after the cached token has expired: %s", got)
	}
}

// TestExchangeOrLogin: where the settings allow a login, a principal without a token logs in, and its login counts.
func TestExchangeOrLogin(t *testing.T) {
	e := newExchangeWorld(t)
	both := func(x *oauth.Exchange, s *oauth.Settings) {
		x.Login, s.LoginPage = true, "https://tools.example.com/ui/connections/tickets"
	}
	h := e.exchanger(both)
	_, err := e.connect(h)
	wantLogin(t, err, "login required: open https://tools.example.com/ui/connections/tickets")
	if err := e.tryLogin(h, &authserver.Browser{User: "eve"}); err != nil {
		t.Fatal(err)
	}
	if got := e.who(h); got != "eve" {
		t.Errorf("after the login: %q", got)
	}
	e.comes("ada", nil)
	if got := e.who(h); got != "eve" {
		t.Errorf("with a token, after the login: %q", got)
	}
	if _, _, err := h.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.who(h); got != "ada" {
		t.Errorf("after the logout: %q", got)
	}
	if err := e.tryLogin(e.exchanger(nil), &authserver.Browser{}); err == nil || !strings.Contains(err.Error(), "it needs no login") {
		t.Errorf("a login that the settings do not have: %v", err)
	}
}

// TestExchangeKeepsNothing: a refresh token is not stored, and an error does not show the token that a provider repeats.
func TestExchangeKeepsNothing(t *testing.T) {
	e := newExchangeWorld(t)
	e.comes("ada", nil)
	e.as.ChangeExchanged(func(response map[string]any) { response["refresh_token"] = "refresh-token-of-ada" })
	if got := e.who(e.exchanger(nil)); got != "ada" {
		t.Errorf("the caller is %q", got)
	}
	if text := e.readStored(); strings.Contains(text, "refresh-token-of-ada") {
		t.Errorf("stored: %s", text)
	}
	echo := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_request", "error_description": "bad token " + r.FormValue("subject_token")})
	}))
	_, err := e.exchanger(func(x *oauth.Exchange, _ *oauth.Settings) { x.TokenEndpoint = echo.URL + "/token" }).Token(t.Context())
	wantText(t, err, "refuses: invalid_request")
	if strings.Contains(err.Error(), "bad token") {
		t.Errorf("the error repeats the token: %v", err)
	}
}

// TestExchangeAndLogout: what a person gets who logs out during an exchange is not stored.
func TestExchangeAndLogout(t *testing.T) {
	e := newExchangeWorld(t)
	e.comes("ada", nil)
	h := e.exchanger(nil)
	e.as.ChangeExchanged(func(map[string]any) { e.person = access.Subject{} })
	if token, err := h.Token(t.Context()); err == nil {
		t.Errorf("a token after the logout: %q", token)
	}
	if status, err := h.Status(); err != nil || status.LoggedIn {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestExchangeOnce: concurrent requests of a principal share one exchange.
func TestExchangeOnce(t *testing.T) {
	e := newExchangeWorld(t)
	e.comes("ada", nil)
	h, other := e.exchanger(nil), e.exchanger(nil)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			one := h
			if i%2 == 1 {
				one = other
			}
			if token, err := one.Token(t.Context()); err != nil || authserver.Subject(token) != "ada" {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
	work.Wait()
	e.count(exchangeGrant, 1)
}
