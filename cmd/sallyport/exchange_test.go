package main_test

import (
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
)

const (
	exchangeAudience = "https://tools.example.com/mcp"
	exchangeGrant    = "urn:ietf:params:oauth:grant-type:token-exchange"
	staticToken      = "token-of-nobody-for-tests"
)

// exchangeSite is a real gateway whose callers sign in at an identity provider, in front of upstreams that answer by identity: tickets
// exchanges the access tokens of MCP clients, notes the ID tokens of people in a browser, and wiki the same for assertions, which its own
// authorization server redeems.
type exchangeSite struct {
	t                    *testing.T
	as, own              *authserver.Server // own is that of wiki
	tickets, notes, wiki *oauthtest.Resource
	dir, url             string // url is that of /mcp
	cmd                  *exec.Cmd
	log                  <-chan string

	mu     sync.Mutex
	tokens []string // all tokens of people
}

func newExchangeSite(t *testing.T, life time.Duration) *exchangeSite {
	t.Helper()
	targets := &authserver.Exchange{Audience: exchangeAudience}
	s := &exchangeSite{t: t, as: authserver.New(t, &authserver.Options{OpenID: true, Life: life, Exchange: targets, Clients: []authserver.Client{
		{ID: "gw", Secret: "secret-of-the-gateway", RedirectURIs: []string{"http://127.0.0.1/login/callback"}, Exchanges: true},
	}})}
	s.tickets, s.notes = oauthtest.New(t, s.as, nil), oauthtest.New(t, s.as, nil)
	s.as.Rotate(t) // all servers of a test begin with one key
	redeems := []string{""}
	s.own = authserver.New(t, &authserver.Options{Provider: s.as, Redeems: redeems, Clients: []authserver.Client{{ID: "gw-at-wiki", Secret: "secret-at-wiki", Redeems: true}}})
	s.wiki = oauthtest.New(t, s.own, nil)
	redeems[0] = s.wiki.URL
	targets.Targets, targets.Assertions = []string{s.tickets.URL, s.notes.URL, s.wiki.URL}, map[string]string{s.own.URL: "gw-at-wiki"}
	dir, err := os.MkdirTemp("/tmp", "exch-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.dir = dir
	provider := fmt.Sprintf("issuer: %q, client_id: gw, client_secret: secret-of-the-gateway", s.as.URL)
	text := fmt.Sprintf(`upstreams:
  tickets: {url: %q, auth: {per: principal, store: file, exchange: {%s}}}
  notes: {url: %q, auth: {per: principal, store: file, exchange: {subject_token_type: id_token, %s}}}
  wiki:
    url: %q
    auth: {per: principal, store: file, issuer: %q, client_id: gw-at-wiki, client_secret: secret-at-wiki, exchange: {subject_token_type: id_token, requested_token_type: id-jag, %s}}
sandbox: {runsc: %q}
http:
  login: {%s, scopes: [openid, offline_access]}
  oauth: {issuer: %q, audience: %q}
  tokens: {static: %s}
`, s.tickets.URL, provider, s.notes.URL, provider, s.wiki.URL, s.own.URL, provider, testutil.Runsc(t), provider, s.as.URL, exchangeAudience, staticToken)
	if err := os.WriteFile(filepath.Join(dir, "upstreams.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(testutil.Binary(t), "serve", "--config", filepath.Join(dir, "upstreams.yaml"), "--http", "127.0.0.1:0")
	s.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir)
	s.url, s.log = startListening(t, s.cmd)
	return s
}

// token returns an access token of a user for the gateway.
func (s *exchangeSite) token(user string, life time.Duration) string {
	token := s.as.Sign(s.t, map[string]any{
		"iss": s.as.URL, "sub": user, "aud": exchangeAudience, "client_id": "agent", "scope": "tools", "iat": time.Now().Unix(), "exp": time.Now().Add(life).Unix(),
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, token)
	return token
}

const whoamiProgram = "from servers.tickets import whoami\nwhoami()"

// who runs a program that asks the upstream who its caller is.
func (s *exchangeSite) who(client *mcp.ClientSession) string {
	got, err := callHTTP(s.t.Context(), client, program(whoamiProgram))
	if err != nil {
		return err.Error()
	}
	return got
}

// logins returns the stored logins.
func (s *exchangeSite) logins() []string {
	s.t.Helper()
	all, err := filepath.Glob(filepath.Join(s.dir, "sallyport", "auth", "*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// stop ends the gateway, and looks for tokens in its log and in its files.
func (s *exchangeSite) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if all := <-s.log; strings.Contains(all, "eyJ") || strings.Contains(all, "secret-of-the-gateway") || strings.Contains(all, "secret-at-wiki") {
		s.t.Errorf("the log has a secret:\n%s", all)
	}
	_ = s.cmd.Wait()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, token := range s.tokens {
			if strings.Contains(string(data), token) {
				s.t.Errorf("%s has the token of a person", path)
			}
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

// TestTokenExchange: two people call an upstream that answers by identity through the real gateway. Neither logs in there: the gateway
// exchanges the tokens with which their clients call. A caller without one gets an error at once.
func TestTokenExchange(t *testing.T) {
	testutil.Long(t)
	s := newExchangeSite(t, 0)
	ada, bob := dialAs(t, s.url, s.token("ada", time.Hour), nil), dialAs(t, s.url, s.token("bob", time.Hour), nil)
	found, err := callHTTP(t.Context(), ada, &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "whoami"}})
	if err != nil || !strings.Contains(found, "from servers.tickets import") {
		t.Errorf("ada finds %s, %v", found, err)
	}
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			if got := s.who(ada); !strings.Contains(got, "ada") {
				t.Errorf("ada is %s", got)
			}
		})
		work.Go(func() {
			if got := s.who(bob); !strings.Contains(got, "bob") {
				t.Errorf("bob is %s", got)
			}
		})
	}
	work.Wait()
	if n := s.as.Count(exchangeGrant); n != 2 {
		t.Errorf("%d exchanges for two people", n)
	}
	nobody := dialAs(t, s.url, staticToken, nil)
	begun := time.Now()
	if got := s.who(nobody); !strings.Contains(got, "upstream tickets needs the access token with which its client calls the gateway from "+s.as.URL) || time.Since(begun) > 30*time.Second {
		t.Errorf("with a static token, after %v: %s", time.Since(begun), got)
	}
	// One more person, whose token is not one of this issuer for this gateway, does not even come in.
	other := authserver.New(t, &authserver.Options{OpenID: true})
	forged := other.Sign(t, map[string]any{"iss": s.as.URL, "sub": "ada", "aud": exchangeAudience, "scope": "tools", "exp": time.Now().Add(time.Hour).Unix()})
	if status, _, body := s.ask(&http.Client{Transport: bearer(forged)}, http.MethodGet, "/upstreams", ""); status != http.StatusUnauthorized {
		t.Errorf("a forged token: %d %s", status, body)
	}
	if n := len(s.logins()); n != 2 {
		t.Errorf("%d logins are stored, want those of ada and bob", n)
	}
	s.as.ChangeExchanged(func(response map[string]any) { response["issued_token_type"] = "urn:example:other" })
	carl := dialAs(t, s.url, s.token("carl", time.Hour), nil)
	for range 4 { // the pause before the next attempt becomes longer
		if got := s.who(carl); !strings.Contains(got, "token of another type") {
			t.Errorf("carl, with a bad token of the provider: %s", got)
		}
	}
	s.as.ChangeExchanged(nil)
	if got := s.who(dialAs(t, s.url, s.token("carl", 2*time.Hour), nil)); !strings.Contains(got, "carl") {
		t.Errorf("carl, with another token: %s", got)
	}
	s.stop()
}

// TestTokenExchangeEnds: work that goes on without the person gets an error at once when neither its token nor the exchanged one is
// valid any more, and the next program with a new token works at once.
func TestTokenExchangeEnds(t *testing.T) {
	testutil.Long(t)
	s := newExchangeSite(t, 2*time.Second)
	ada := dialAs(t, s.url, s.token("ada", 9*time.Second), nil)
	begun := time.Now()
	got, err := callHTTP(t.Context(), ada, program("import time\nfrom servers.tickets import whoami\nprint(whoami())\ntime.sleep(8)\nwhoami()"))
	if err != nil || !strings.Contains(got, "ada") || !strings.Contains(got, "this caller has none that is valid") || time.Since(begun) > 40*time.Second {
		t.Errorf("after %v: %s, %v", time.Since(begun), got, err)
	}
	if got := s.who(dialAs(t, s.url, s.token("ada", time.Hour), nil)); !strings.Contains(got, "ada") {
		t.Errorf("with a new token: %s", got)
	}
	s.stop()
}

var refreshPage = regexp.MustCompile(`content="0;url=([^"]+)"`)

// signedIn returns the browser of a person who has signed in at the provider.
func (s *exchangeSite) signedIn(user string) *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	web := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	_, page, _ := s.ask(web, http.MethodGet, "/login/start", "")
	provider := &authserver.Browser{Stop: true, User: user}
	if err := provider.Open(s.t.Context(), page); err != nil {
		s.t.Fatal(err)
	}
	back, err := url.Parse(provider.Back)
	if err != nil {
		s.t.Fatal(err)
	}
	_, _, body := s.ask(&http.Client{}, http.MethodGet, back.RequestURI(), "")
	next := refreshPage.FindStringSubmatch(body)
	if next == nil {
		s.t.Fatalf("the callback leads nowhere: %s", body)
	}
	if status, to, body := s.ask(web, http.MethodGet, html.UnescapeString(next[1]), ""); status != http.StatusSeeOther {
		s.t.Fatalf("the sign-in ends with %d %s %s", status, to, body)
	}
	return web
}

// ask sends a request of a browser to the gateway, and returns status, redirect and body.
func (s *exchangeSite) ask(web *http.Client, method, path, body string) (status int, to, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, strings.TrimSuffix(s.url, "/mcp")+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := web.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Location"), string(data)
}

// TestTokenExchangeOfSessions: people who signed in to the dashboard call by the exchange of their ID tokens, and see on their page how
// the connection came. At the logout, or when the provider ends the session, what was got in exchange is revoked and deleted.
func TestTokenExchangeOfSessions(t *testing.T) {
	testutil.Long(t)
	s := newExchangeSite(t, 0)
	whoami := func(web *http.Client, upstream string) string {
		_, _, body := s.ask(web, http.MethodPost, "/tools/call/"+upstream+"/whoami", "{}")
		return body
	}
	ada, bob := s.signedIn("ada"), s.signedIn("bob")
	for name, web := range map[string]*http.Client{"ada": ada, "bob": bob} {
		if _, _, body := s.ask(web, http.MethodGet, "/ui/connections/notes", ""); !strings.Contains(body, "in exchange for that of your sign-in at "+s.as.URL) || strings.Contains(body, `value="connect"`) {
			t.Errorf("the page of %s: %s", name, body)
		}
		s.ask(web, http.MethodGet, "/tools?query=whoami", "") // nobody has come before: the tools become known
		for _, upstream := range []string{"notes", "wiki"} {
			if got := whoami(web, upstream); !strings.Contains(got, name) {
				t.Errorf("at %s %s is %s", upstream, name, got)
			}
		}
	}
	if n := len(s.logins()); n != 4 {
		t.Errorf("%d logins are stored", n)
	}
	revoked := s.as.Count("revoke")
	if status, _, body := s.ask(ada, http.MethodPost, "/logout", ""); status != http.StatusSeeOther {
		t.Errorf("logout: %d %s", status, body)
	}
	if n := len(s.logins()); n != 2 {
		t.Errorf("%d logins are stored after ada's logout", n)
	}
	if n := s.as.Count("revoke") - revoked; n != 2 || s.own.Count("revoke") != 1 {
		t.Errorf("%d and %d tokens were revoked: want the refresh token of the session, the exchanged token, and that of wiki", n, s.own.Count("revoke"))
	}
	if got := whoami(bob, "wiki"); !strings.Contains(got, "bob") {
		t.Errorf("bob is %s, after ada's logout", got)
	}
	s.stop()
}
