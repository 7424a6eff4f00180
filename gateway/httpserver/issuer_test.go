package httpserver_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/identity"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
)

// token gets an access token as a service does.
func token(t *testing.T, as *authserver.Server, resource, scope string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"svc"}, "client_secret": {"pw"}, "scope": {scope}, "resource": {resource}}
	resp, err := http.PostForm(as.URL+"/oauth/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("token: %d %v", resp.StatusCode, err)
	}
	return answer.Token
}

func TestAccessTokens(t *testing.T) {
	t.Parallel()
	const audience = "https://gw.example/mcp"
	opts := authserver.Options{Clients: []authserver.Client{{ID: "svc", Secret: "pw", Post: true, Service: true}}}
	as := authserver.New(t, &opts)
	late := opts
	late.Life = -time.Hour
	expired, foreign := authserver.New(t, &late), authserver.New(t, &opts)
	settings := func(issuer string) *httpserver.Options {
		return &httpserver.Options{Logger: testutil.Logger(t), Settings: config.HTTP{
			Body: config.MiB, Grace: time.Second, OAuth: &config.ResourceServer{Issuer: issuer, Audience: audience, Scopes: []string{"read"}},
		}}
	}
	origin := serve(t, settings(as.URL))
	resp, _ := request(t, "POST", origin+"/mcp", "{}")
	challenge := resp.Header.Get("WWW-Authenticate")
	if resp.StatusCode != 401 || !strings.Contains(challenge, `resource_metadata="https://gw.example/.well-known/oauth-protected-resource/mcp"`) || !strings.Contains(challenge, `scope="read"`) {
		t.Errorf("challenge: %d %s", resp.StatusCode, challenge)
	}
	if _, body := request(t, "GET", origin+"/.well-known/oauth-protected-resource/mcp", ""); !strings.Contains(body, `"authorization_servers":["`+as.URL+`"]`) || !strings.Contains(body, `"resource":"`+audience+`"`) {
		t.Errorf("metadata: %s", body)
	}
	good := token(t, as, audience, "read write")
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	for name, test := range map[string]struct {
		token  string
		status int
	}{
		"good":             {good, 200},
		"another audience": {token(t, as, "https://other.example/mcp", "read"), 401},
		"no audience":      {token(t, as, "", "read"), 401},
		"missing scope":    {token(t, as, audience, "write"), 403},
		"another issuer":   {token(t, foreign, audience, "read"), 401},
		"another key":      {parts[0] + "." + parts[1] + "." + strings.Split(token(t, foreign, audience, "read"), ".")[2], 401},
		"forged":           {forgeToken(t, as.URL, audience), 401},
		"no signature":     {none + "." + parts[1] + ".", 401},
		"none, signed":     {none + "." + parts[1] + "." + parts[2], 401},
		"nonsense":         {"a.b.c", 401},
	} {
		if resp, body := request(t, "POST", origin+"/mcp", "{}", "Authorization: Bearer "+test.token); resp.StatusCode != test.status || strings.Contains(body, "issuer") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	endpointToken := token(t, as, audience+"/finance", "read")
	for path, status := range map[string]int{"/mcp/finance": 200, "/mcp": 401, "/mcp/direct": 401, "/mcp/other": 401} {
		if resp, body := request(t, "POST", origin+path, "{}", "Authorization: Bearer "+endpointToken); resp.StatusCode != status {
			t.Errorf("a token for an endpoint at %s: %d %s", path, resp.StatusCode, body)
		}
	}
	if resp, body := request(t, "POST", origin+"/mcp/finance", "{}", "Authorization: Bearer "+good); resp.StatusCode != 200 {
		t.Errorf("a token for all at an endpoint: %d %s", resp.StatusCode, body)
	}
	for _, name := range []string{"finance", "unknown"} { // the metadata does not say which endpoints there are
		resp, _ := request(t, "POST", origin+"/mcp/"+name, "{}")
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || !strings.Contains(got, `/.well-known/oauth-protected-resource/mcp/`+name+`"`) {
			t.Errorf("challenge of %s: %d %s", name, resp.StatusCode, got)
		}
		if _, body := request(t, "GET", origin+"/.well-known/oauth-protected-resource/mcp/"+name, ""); !strings.Contains(body, `"resource":"`+audience+"/"+name+`"`) {
			t.Errorf("metadata of %s: %s", name, body)
		}
	}
	if _, body := request(t, "GET", origin+"/.well-known/oauth-protected-resource/mcp/direct", ""); !strings.Contains(body, `"resource":"`+audience+`"`) {
		t.Errorf("metadata of direct mode: %s", body)
	}
	origin = serve(t, settings(expired.URL))
	if resp, _ := request(t, "POST", origin+"/mcp", "{}", "Authorization: Bearer "+token(t, expired, audience, "read")); resp.StatusCode != 401 {
		t.Errorf("expired: %d", resp.StatusCode)
	}
}

// TestAccessTokenRoles: an access token of an MCP client has the principal, the groups and the role of its claims.
func TestAccessTokenRoles(t *testing.T) {
	t.Parallel()
	const audience = "https://gw.example/mcp"
	as := authserver.New(t, &authserver.Options{Clients: []authserver.Client{{ID: "svc", Secret: "pw", Post: true, Service: true}}})
	directory := access.NewDirectory()
	origin := serve(t, &httpserver.Options{Logger: testutil.Logger(t), API: http.HandlerFunc(sayWho), Directory: directory, Settings: config.HTTP{
		OAuth: &config.ResourceServer{Issuer: as.URL, Audience: audience},
		Identity: identity.Expressions{Principal: "claims.client", Groups: "claims.realm_access.roles",
			Roles: identity.Roles{Viewer: `"seer" in groups`, User: `"worker" in groups`, Admin: `"boss" in groups`}},
	}})
	for _, test := range []struct{ group, mcp, api string }{
		{"boss", `200 /mcp as "oauth:robot" operator "oauth:robot"`, `200 /executions as "oauth:robot" operator "oauth:robot"`},
		{"worker", `200 /mcp as "oauth:robot" operator ""`, `200 /executions as "oauth:robot" operator ""`},
		{"seer", "403 ", `200 /executions as "oauth:robot" operator "" may execute false`},
		{"stranger", "403 ", "403 "},
	} {
		as.SetUser("svc", map[string]any{"client": "robot", "realm_access": map[string]any{"roles": []string{test.group}}})
		auth := "Authorization: Bearer " + token(t, as, audience, "read")
		for path, want := range map[string]string{"/mcp": test.mcp, "/executions": test.api} {
			resp, body := request(t, "GET", origin+path, "", auth)
			if got := fmt.Sprint(resp.StatusCode, " ", body); !strings.HasPrefix(got, want) {
				t.Errorf("%s %s: %s, want %s", test.group, path, got, want)
			}
		}
		if groups, known := directory.Groups("oauth:robot"); test.group != "stranger" && (!known || groups[0] != test.group) {
			t.Errorf("the groups of a %s are %v", test.group, groups)
		}
	}
}

// forgeToken is a token with all the right claims, signed with a key of ours.
func forgeToken(t *testing.T, issuer, audience string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claims := oidc.NewAccessTokenClaims(issuer, "root", []string{audience}, time.Now().Add(time.Hour), "1", "svc", 0)
	claims.Scopes = []string{"read"}
	return signToken(t, key, claims)
}

// signToken is a JWT.
func signToken(t *testing.T, key *rsa.PrivateKey, claims any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signing := encode([]byte(`{"alg":"RS256","kid":"k1","typ":"at+jwt"}`)) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signing))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signing + "." + encode(signature)
}
