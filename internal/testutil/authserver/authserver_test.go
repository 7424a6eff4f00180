package authserver_test

import (
	"net/url"
	"testing"

	"golang.org/x/oauth2"

	"sallyport/internal/testutil/authserver"
)

func TestCodeFlow(t *testing.T) {
	s := authserver.New(t, &authserver.Options{Clients: []authserver.Client{{ID: "app", RedirectURIs: []string{"http://127.0.0.1/back"}}}})
	cfg := &oauth2.Config{
		ClientID: "app", RedirectURL: "http://127.0.0.1:7777/back", Scopes: []string{"read", "offline_access"},
		Endpoint: oauth2.Endpoint{AuthURL: s.URL + "/authorize", TokenURL: s.URL + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams},
	}
	verifier, resource := oauth2.GenerateVerifier(), oauth2.SetAuthURLParam("resource", "http://r.test/mcp")
	b := &authserver.Browser{Stop: true}
	if err := b.Open(t.Context(), cfg.AuthCodeURL("st", oauth2.S256ChallengeOption(verifier), resource)); err != nil {
		t.Fatal(err)
	}
	back, _ := url.Parse(b.Back)
	if q := back.Query(); q.Get("state") != "st" || q.Get("iss") != s.URL {
		t.Fatalf("redirected to %s", b.Back)
	}
	token, err := cfg.Exchange(t.Context(), back.Query().Get("code"), oauth2.VerifierOption(verifier), resource)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := s.Verify(t.Context(), token.AccessToken)
	if err != nil || claims.Audience[0] != "http://r.test/mcp" || claims.Scopes[0] != "read" || token.RefreshToken == "" {
		t.Errorf("claims %+v, %v", claims, err)
	}
	s.RevokeAccess()
	if _, err := s.Verify(t.Context(), token.AccessToken); err == nil {
		t.Error("a revoked token is taken for good")
	}
}

func TestDeny(t *testing.T) {
	s := authserver.New(t, &authserver.Options{Clients: []authserver.Client{{ID: "app", RedirectURIs: []string{"http://127.0.0.1/back"}}}})
	b := &authserver.Browser{Stop: true, Deny: true}
	err := b.Open(t.Context(), s.URL+"/authorize?response_type=code&client_id=app&scope=read&state=x&code_challenge=y&code_challenge_method=S256&resource=http://r&redirect_uri=http://127.0.0.1:1/back")
	back, _ := url.Parse(b.Back)
	if err != nil || back.Query().Get("error") != "access_denied" || back.Query().Get("iss") != s.URL {
		t.Errorf("redirected to %q, %v", b.Back, err)
	}
}
