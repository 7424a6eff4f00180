package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/tlstest"
)

func TestLogin(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	if _, err := w.connect(h); err == nil {
		t.Fatal("connected without a login")
	} else {
		wantLogin(t, err, "login required: run `sallyport auth login tickets`")
	}
	w.login(h)
	w.callEcho(h)
	w.callEcho(w.handler(nil)) // a new process
	w.count("register", 1)
	w.count("refresh_token", 0)
	status, err := h.Status()
	if err != nil || !status.LoggedIn || !status.Renewable || status.Store != "file" || status.Issuer != w.as.URL || status.Resource != w.rs.URL {
		t.Errorf("status %+v, %v", status, err)
	}
	if got := strings.Join(status.Scopes, " "); got != "read offline_access" {
		t.Errorf("scopes %q", got)
	}
	for path, want := range map[string]os.FileMode{w.file(): 0o600, w.dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s: %v, %v", path, info.Mode(), err)
		}
	}
}

// Settings are printed by mistake sooner or later.
func TestSettingsHideSecret(t *testing.T) {
	s := oauth.Settings{ID: "tickets", ClientSecret: "s3cret"}
	text, _ := json.Marshal(map[string]any{"s": s.String()})
	if strings.Contains(string(text), "s3cret") || strings.Contains(s.String(), "s3cret") {
		t.Errorf("shown: %s", text)
	}
}

func TestLoginRefused(t *testing.T) {
	for name, test := range map[string]struct {
		as   *authserver.Options
		b    authserver.Browser
		want string
	}{
		"denied":               {nil, authserver.Browser{Deny: true}, "the authorization server refuses: access_denied"},
		"state mismatch":       {nil, authserver.Browser{Tamper: set("state", "other")}, "state mismatch"},
		"wrong issuer":         {nil, authserver.Browser{Tamper: set("iss", "https://evil.test")}, "from another authorization server: https://evil.test"},
		"no issuer":            {nil, authserver.Browser{Tamper: set("iss", "")}, "lacks the iss parameter"},
		"issuer not announced": {&authserver.Options{NoIss: true}, authserver.Browser{Tamper: set("iss", "x")}, "from another authorization server: x"},
		"no code":              {nil, authserver.Browser{Tamper: set("code", "")}, "the response has no code"},
		"foreign code":         {nil, authserver.Browser{Tamper: set("code", "stolen")}, "the authorization server refuses: invalid_grant"},
		"registration refused": {&authserver.Options{RefuseRegistration: true}, authserver.Browser{}, "set auth.client_id"},
		"no registration":      {&authserver.Options{NoRegistration: true}, authserver.Browser{}, "does not register clients"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.as, nil)
			h := w.handler(nil)
			wantText(t, w.tryLogin(h, &test.b), "log in to tickets: ", test.want)
			if status, err := h.Status(); err != nil || status.LoggedIn {
				t.Errorf("status %+v, %v", status, err)
			}
		})
	}
}

func TestIssuerNotAnnounced(t *testing.T) {
	w := newWorld(t, &authserver.Options{NoIss: true}, nil)
	h := w.handler(nil)
	w.login(h)
	w.callEcho(h)
}

func TestMetadataRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *oauthex.ProtectedResourceMetadata)
		want   string
	}{
		"another resource": {func(m *oauthex.ProtectedResourceMetadata) { m.Resource = "https://other.test/mcp" }, "metadata describes another resource"},
		"no issuer":        {func(m *oauthex.ProtectedResourceMetadata) { m.AuthorizationServers = nil }, "names no authorization server"},
		"plain http": {func(m *oauthex.ProtectedResourceMetadata) { m.AuthorizationServers = []string{"http://as.test"} },
			""},
		"wrong path": {func(m *oauthex.ProtectedResourceMetadata) { m.AuthorizationServers[0] += "/tenant" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, &oauthtest.Options{Metadata: test.change})
			err := w.tryLogin(w.handler(nil), &authserver.Browser{})
			if err == nil {
				t.Error("logged in")
			}
			wantText(t, err, "log in to tickets: ", test.want)
			w.count("authorization_code", 0)
		})
	}
}

// Before there was metadata of resources, a server's origin was its issuer.
func TestLoginWithoutResourceMetadata(t *testing.T) {
	w := newWorld(t, nil, &oauthtest.Options{NoMetadata: true})
	front := tlstest.NewServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		target := w.as.URL + "/.well-known/oauth-authorization-server"
		if r.URL.Path != "/.well-known/oauth-authorization-server" {
			http.NotFound(rw, r)
			return
		}
		answer, err := http.Get(target)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		var all map[string]any
		_ = json.NewDecoder(answer.Body).Decode(&all)
		all["issuer"], all["authorization_response_iss_parameter_supported"] = "https://"+r.Host, false
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(all)
	}))
	defer front.Close()
	h := w.handler(func(s *oauth.Settings) { s.URL, s.Scopes = front.URL+"/mcp", []string{"read"} })
	if err := w.tryLogin(h, &authserver.Browser{Tamper: set("iss", "")}); err != nil {
		t.Fatal(err)
	}
	if status, _ := h.Status(); status.Issuer != front.URL || status.Resource != front.URL+"/mcp" {
		t.Errorf("status %+v", status)
	}
}

func TestPreregistered(t *testing.T) {
	clients := []authserver.Client{
		{ID: "public", RedirectURIs: []string{"http://127.0.0.1/callback"}},
		{ID: "basic", Secret: "s3cret basic+%", RedirectURIs: []string{"http://127.0.0.1/callback"}},
		{ID: "post", Secret: "s3cret-post", Post: true, RedirectURIs: []string{"http://127.0.0.1/callback"}},
	}
	for _, c := range clients {
		t.Run(c.ID, func(t *testing.T) {
			w := newWorld(t, &authserver.Options{Clients: clients, NoRegistration: true}, nil)
			mine := func(s *oauth.Settings) { s.ClientID, s.ClientSecret = c.ID, c.Secret }
			h := w.handler(mine)
			w.login(h)
			w.callEcho(h)
			w.as.RevokeAccess()
			w.callEcho(h)
			w.count("refresh_token", 1)
			if c.Secret != "" && strings.Contains(w.readStored(), c.Secret) {
				t.Error("the client's secret was stored")
			}
			if was, revoked, err := h.Logout(t.Context()); !was || !revoked || err != nil {
				t.Errorf("logout: %v, %v, %v", was, revoked, err)
			}
		})
	}
}

// A token of one client is not used when the settings name another.
func TestOtherClient(t *testing.T) {
	clients := []authserver.Client{{ID: "one", RedirectURIs: []string{"http://127.0.0.1/callback"}}}
	w := newWorld(t, &authserver.Options{Clients: clients}, nil)
	w.login(w.handler(func(s *oauth.Settings) { s.ClientID = "one" }))
	_, err := w.connect(w.handler(func(s *oauth.Settings) { s.ClientID = "two" }))
	wantLogin(t, err, "client_id in the settings is not that of the login")
}

func TestClientMetadataDocument(t *testing.T) {
	documents := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id": "https://" + r.Host + "/client.json", "client_name": "Sallyport", "redirect_uris": []string{"http://127.0.0.1/callback"},
		})
	}))
	defer documents.Close()
	w := newWorld(t, &authserver.Options{Documents: documents.Client()}, nil)
	h := w.handler(func(s *oauth.Settings) { s.ClientMetadata = documents.URL + "/client.json" })
	w.login(h)
	w.callEcho(h)
	w.count("register", 0)
	if !strings.Contains(w.readStored(), documents.URL+"/client.json") {
		t.Error("another client id was used")
	}
}

// Where the server knows no such documents, a client is registered.
func TestClientMetadataDocumentUnknown(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(func(s *oauth.Settings) { s.ClientMetadata = "https://client.test/client.json" })
	w.login(h)
	w.callEcho(h)
	w.count("register", 1)
}

func TestIssuerOfSettings(t *testing.T) {
	w := newWorld(t, nil, nil)
	err := w.tryLogin(w.handler(func(s *oauth.Settings) { s.Issuer = "https://login.test" }), &authserver.Browser{})
	wantText(t, err, "another authorization server than the settings: "+w.as.URL)
	w.login(w.handler(func(s *oauth.Settings) { s.Issuer = w.as.URL + "/" }))
}

func TestPaste(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	b := &authserver.Browser{Stop: true}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	show := func(page string) {
		if err := b.Open(t.Context(), page); err != nil {
			t.Error(err)
		}
		_, _ = out.WriteString("  " + b.Back + "\r\n")
		out.Close()
	}
	if err := h.Login(t.Context(), oauth.Login{Show: show, Paste: in}); err != nil {
		t.Fatal(err)
	}
	w.callEcho(h)
}

func TestPasteWrong(t *testing.T) {
	w := newWorld(t, nil, nil)
	for text, want := range map[string]string{
		"":                                   "no URL was pasted",
		"\n":                                 "no URL was pasted",
		"hello\n":                            "is not the redirect URL",
		"http://127.0.0.1/?code=1&state=2\n": "state mismatch",
	} {
		wantText(t, w.handler(nil).Login(t.Context(), oauth.Login{Paste: strings.NewReader(text)}), want)
	}
}

func TestRedirectPort(t *testing.T) {
	w := newWorld(t, nil, nil)
	busy := httptest.NewServer(nil)
	defer busy.Close()
	port := strings.TrimPrefix(busy.URL, "http://127.0.0.1:")
	h := w.handler(func(s *oauth.Settings) { _ = json.Unmarshal([]byte(port), &s.RedirectPort) })
	wantText(t, w.tryLogin(h, &authserver.Browser{}), "listen for the browser", "address already in use")
	busy.Close()
	b := &authserver.Browser{}
	if err := w.tryLogin(h, b); err != nil || !strings.HasPrefix(b.Back, "http://127.0.0.1:"+port+"/callback?") {
		t.Errorf("back at %s, %v", b.Back, err)
	}
}

// A second login is by the same client, since the port is free again.
func TestLoginAgain(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	w.login(h)
	w.callEcho(h)
	w.count("register", 1)
}

// TestForgottenClient: a server that lost its registrations gets a new one, at a login and after a refresh that it refused.
func TestForgottenClient(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	w.as.ForgetClients()
	w.login(h)
	w.callEcho(h)
	w.count("register", 2)
	w.as.ForgetClients()
	w.late.Store(int64(24 * time.Hour))
	_, err := w.connect(h)
	wantLogin(t, err, "no longer knows the client", "run `sallyport auth login tickets`")
	w.late.Store(0)
	w.login(h)
	w.callEcho(h)
	w.login(h)
	w.count("register", 3)
}

// An API has no metadata: the settings say whose tokens it accepts.
func TestIssuerWithoutMetadata(t *testing.T) {
	w := newWorld(t, nil, nil)
	api := tlstest.NewServer(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) }))
	h := w.handler(func(s *oauth.Settings) { s.URL, s.Issuer = api.URL+"/v1", w.as.URL })
	w.login(h)
	if status, err := h.Status(); err != nil || !status.LoggedIn || status.Issuer != w.as.URL || status.Resource != api.URL+"/v1" {
		t.Errorf("status %+v, %v", status, err)
	}
}
