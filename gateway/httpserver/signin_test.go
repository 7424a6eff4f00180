package httpserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/identity"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
)

// realm is a gateway whose people sign in at a provider.
type realm struct {
	t         *testing.T
	as        *authserver.Server
	origin    string
	directory *access.Directory
	subjects  *access.Subjects
}

// newRealm starts both. Ann is in the group ops, which is the role operator; bob in dev, which is user; eve in no group.
func newRealm(t *testing.T, refresh time.Duration, change func(*config.Login)) *realm {
	t.Helper()
	p, opts := newPeople(t, refresh, change)
	p.origin = startServer(t, opts, func(l net.Listener, o *httpserver.Options) *httpserver.Server {
		o.Site = httpserver.Site(l)
		return httpserver.New(l, o)
	})
	return p
}

// newPeople starts the provider, and returns the options of a gateway.
func newPeople(t *testing.T, refresh time.Duration, change func(*config.Login)) (*realm, *httpserver.Options) {
	t.Helper()
	as := authserver.New(t, &authserver.Options{OpenID: true, Scopes: []string{"openid", "profile", "email"},
		Clients: []authserver.Client{{ID: "gw", Secret: "gw-secret", RedirectURIs: []string{"http://127.0.0.1/login/callback"}}}})
	as.SetUser("u1", map[string]any{"email": "ann@example.com", "groups": []string{"ops", "dev"}})
	as.SetUser("u2", map[string]any{"email": "bob@example.com", "groups": []string{"dev"}})
	as.SetUser("u3", map[string]any{"email": "eve@example.com", "groups": []string{}})
	login := &config.Login{Issuer: as.URL, ClientID: "gw", ClientSecret: "gw-secret", Scopes: []string{"openid", "email", "offline_access"}, Refresh: refresh}
	if change != nil {
		change(login)
	}
	p := &realm{t: t, as: as, directory: access.NewDirectory(), subjects: access.NewSubjects()}
	return p, &httpserver.Options{Logger: testutil.Logger(t), API: http.HandlerFunc(sayWho), Dashboard: pages{}, Directory: p.directory, Subjects: p.subjects, Settings: config.HTTP{
		Login:    login,
		Identity: identity.Expressions{Principal: "claims.email", Groups: "claims.groups", Roles: identity.Roles{User: `"dev" in groups`, Operator: `"ops" in groups`}},
	}}
}

// person is one browser. It sends cookies as browsers do that know SameSite=Strict.
type person struct {
	*realm
	web *http.Client
}

func (p *realm) person() *person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return &person{p, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// get opens an address, and returns the status, and where it leads or the body.
func (p *person) get(address string) string {
	p.t.Helper()
	return p.with(p.web, http.MethodGet, address)
}

func (p *person) with(web *http.Client, method, address string) string {
	p.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = p.origin + address
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, address, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := web.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if at := resp.Header.Get("Location"); at != "" {
		return fmt.Sprint(resp.StatusCode, " ", at)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

var refreshTo = regexp.MustCompile(`content="0;url=([^"]+)"`)

// begin opens the provider's page, and returns the redirect that the provider answers a user with.
func (p *person) begin(user, start string) (back string) {
	p.t.Helper()
	page, ok := strings.CutPrefix(p.get(start), "303 ")
	if !ok || !strings.HasPrefix(page, p.as.URL+"/authorize?") {
		p.t.Fatalf("%s leads to %s", start, page)
	}
	provider := &authserver.Browser{Stop: true, User: user}
	if err := provider.Open(p.t.Context(), page); err != nil {
		p.t.Fatal(err)
	}
	return provider.Back
}

// arrive follows the redirect: the callback gets no cookie, and the page that it opens gets all.
func (p *person) arrive(back string) string {
	p.t.Helper()
	stranger := &http.Client{CheckRedirect: p.web.CheckRedirect}
	found := refreshTo.FindStringSubmatch(p.with(stranger, http.MethodGet, back))
	if found == nil {
		p.t.Fatalf("the callback %s leads nowhere", back)
	}
	return p.get(html.UnescapeString(found[1]))
}

func (p *person) signIn(user string) string {
	p.t.Helper()
	return p.arrive(p.begin(user, "/login/start"))
}

func (p *person) want(got, want string) {
	p.t.Helper()
	if !strings.Contains(got, want) {
		p.t.Errorf("%s\nwant %s", got, want)
	}
}

// TestSignIn: people get their principal, their groups and the rights of their role, until they log out.
func TestSignIn(t *testing.T) {
	t.Parallel()
	p := newRealm(t, time.Hour, nil)
	ann, bob, eve := p.person(), p.person(), p.person()
	ann.want(ann.get("/ui/executions"), "303 /login?next=%2Fui%2Fexecutions")
	ann.want(ann.arrive(ann.begin("u1", "/login/start?next=%2Fui%2Fexecutions")), "303 /ui/executions")
	ann.want(ann.get("/ui/executions"), `as "oauth:ann@example.com" operator "oauth:ann@example.com" may execute true`)
	bob.want(bob.signIn("u2"), "303 /")
	bob.want(bob.get("/executions"), `as "oauth:bob@example.com" operator "" may execute true`)
	if groups, known := p.directory.Groups("oauth:bob@example.com"); !known || fmt.Sprint(groups) != "[dev]" {
		t.Errorf("bob's groups are %v, %v", groups, known)
	}
	eve.want(eve.signIn("u3"), "403 form, problem \"This account has no role here")
	eve.want(eve.get("/"), "303 /login")
	p.as.Rotate(t)
	bob.want(bob.signIn("u1"), "303 /") // with a new key of the provider
	bob.want(bob.get("/"), `as "oauth:ann@example.com"`)
	before := p.as.Count("revoke")
	bob.want(bob.with(bob.web, http.MethodPost, "/logout"), "303 /login?signed_out")
	bob.want(bob.get("/login?signed_out"), `form, problem ""`+p.as.URL+"/end_session?client_id=gw")
	bob.want(bob.get("/login"), `form, problem ""`)
	bob.want(bob.get("/"), "303 /login")
	if n := p.as.Count("revoke") - before; n != 1 {
		t.Errorf("%d refresh tokens were revoked at the logout", n)
	}
	ann.want(ann.get("/mcp"), "401 ") // MCP ignores cookies
}

// TestUserinfo: claims of the userinfo endpoint count beside those of the ID token, which they do not replace, at the sign-in and
// at each refresh; another person's, and an answer that is no object, refuse the sign-in.
func TestUserinfo(t *testing.T) {
	t.Parallel()
	p := newRealm(t, time.Millisecond, func(l *config.Login) { l.Userinfo = true })
	p.as.SetUser("u4", map[string]any{"email": "dan@example.com"})
	p.as.SetUserinfo("u4", map[string]any{"email": "ann@example.com", "groups": []string{"dev"}})
	dan := p.person()
	dan.want(dan.signIn("u4"), "303 /")
	dan.want(dan.get("/"), `as "oauth:dan@example.com" operator "" may execute true`)
	p.as.SetUserinfo("u4", map[string]any{"groups": []string{"ops"}})
	testutil.Eventually(t, "the new group counts", time.Minute, func() bool {
		return strings.Contains(dan.get("/"), `operator "oauth:dan@example.com"`)
	})
	p.as.SetUserinfo("u4", map[string]any{"sub": "u1", "groups": []string{"ops"}})
	testutil.Eventually(t, "the session ends", time.Minute, func() bool { return strings.HasPrefix(dan.get("/"), "303 /login") })
	dan.want(dan.signIn("u4"), `401 form, problem "The sign-in failed`)
	for _, answer := range []struct{ kind, body string }{{"application/jwt", "a.b.c"}, {"application/json", `["groups"]`}, {"application/json", ""}, {"application/json", `{"groups": ["ops"]}`}} {
		p.as.AnswerUserinfo(answer.kind, answer.body)
		dan.want(dan.signIn("u4"), `401 form, problem "The sign-in failed`)
	}
}

// TestSignInAttacks: nobody comes in with the sign-in of another browser, twice with one code, or to a foreign page.
func TestSignInAttacks(t *testing.T) {
	t.Parallel()
	p := newRealm(t, time.Hour, nil)
	ann, mallory := p.person(), p.person()
	const foreign = "403 form, problem \"This sign-in was not begun in this browser"
	theirs := mallory.begin("u2", "/login/start")
	ann.want(ann.arrive(theirs), foreign) // login CSRF: a browser without a sign-in
	own := ann.begin("u1", "/login/start")
	ann.want(ann.arrive(theirs), foreign) // and one with a sign-in of its own
	state := func(back, with string) string {
		u, err := url.Parse(back)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := url.Parse(with)
		q := u.Query()
		q.Set("state", other.Query().Get("state"))
		u.RawQuery = q.Encode()
		return u.String()
	}
	ann.want(ann.arrive(state(theirs, own)), "401 form") // her state with the code of another: PKCE refuses it
	ann.want(ann.get("/"), "303 /login")
	own = ann.begin("u1", "/login/start")
	ann.want(ann.arrive(strings.Replace(own, "iss=", "iss=x", 1)), "401 form") // another issuer
	own = ann.begin("u1", "/login/start")
	at, _ := url.Parse(p.origin + "/login/finish")
	kept := ann.web.Jar.Cookies(at)
	ann.want(ann.arrive(own), "303 /")
	ann.want(ann.arrive(own), foreign) // the cookie is gone
	ann.web.Jar.SetCookies(at, kept)
	ann.want(ann.arrive(own), "401 form") // the code is used up
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "/ui/../logout", "javascript:alert(1)", "/login/start"} {
		ann.want(ann.arrive(ann.begin("u1", "/login/start?"+url.Values{"next": {next}}.Encode()))+"$", "303 /$")
	}
	fixed := "sallyport_" + at.Port()
	mallory.web.Jar.SetCookies(at, []*http.Cookie{{Name: fixed, Value: "fixed", Path: "/"}})
	mallory.want(mallory.signIn("u2"), "303 /")
	for _, c := range mallory.web.Jar.Cookies(at) {
		if c.Name == fixed && c.Value == "fixed" {
			t.Error("the session has a secret that was known before")
		}
	}
	denied := ann.begin("u1", "/login/start")
	u, _ := url.Parse(denied)
	u.RawQuery = url.Values{"state": {u.Query().Get("state")}, "error": {"access_denied\x1b[31m<b>"}, "iss": {p.as.URL}}.Encode()
	ann.want(ann.arrive(u.String()), "refused the sign-in: access_denied")
	ann.want(ann.get(strings.Replace(p.origin, "127.0.0.1", "localhost", 1)+"/login/start?next=%2Fui%2Fruns"), "303 "+p.origin+"/login/start?next=%2Fui%2Fruns")
}

// TestForgedIDTokens: an ID token that is not for this client, from this issuer and for this sign-in opens no session.
func TestForgedIDTokens(t *testing.T) {
	t.Parallel()
	p := newRealm(t, time.Hour, nil)
	other := authserver.New(t, &authserver.Options{OpenID: true})
	other.Rotate(t) // it has another key
	with := func(changes map[string]any) func(map[string]any) string {
		return func(claims map[string]any) string {
			maps.Copy(claims, changes)
			return p.as.Sign(t, claims)
		}
	}
	for name, forge := range map[string]func(map[string]any) string{
		"the real claims": with(nil),
		"issuer":          with(map[string]any{"iss": "https://evil.example"}),
		"audience":        with(map[string]any{"aud": "another"}),
		"party":           with(map[string]any{"aud": []string{"gw", "another"}, "azp": "another"}),
		"nonce":           with(map[string]any{"nonce": "another"}),
		"no nonce":        with(map[string]any{"nonce": ""}),
		"no subject":      with(map[string]any{"sub": ""}),
		"expired":         with(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"from the future": with(map[string]any{"iat": time.Now().Add(time.Hour).Unix()}),
		"access token":    with(map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
		"another key":     func(claims map[string]any) string { return other.Sign(t, claims) },
		"HMAC":            func(claims map[string]any) string { return p.as.SignHMAC(t, claims) },
		"none": func(claims map[string]any) string {
			payload, _ := json.Marshal(claims)
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
		},
		"no text": func(map[string]any) string { return "" },
	} {
		p.as.Forge(forge)
		browser, want := p.person(), "401 form"
		if name == "the real claims" {
			want = "303 /"
		}
		if got := browser.signIn("u1"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestSessionRenewal: what changes at the provider is in force at the next request after the interval.
func TestSessionRenewal(t *testing.T) {
	t.Parallel()
	p := newRealm(t, time.Nanosecond, nil)
	ann, bob := p.person(), p.person()
	ann.want(ann.signIn("u1"), "303 /")
	bob.want(bob.signIn("u2"), "303 /")
	ann.want(ann.get("/"), `operator "oauth:ann@example.com"`)
	p.as.SetUser("u1", map[string]any{"email": "ann@example.com", "groups": []string{"dev"}})
	ann.want(ann.get("/"), `as "oauth:ann@example.com" operator "" may execute true`)
	if groups, _ := p.directory.Groups("oauth:ann@example.com"); fmt.Sprint(groups) != "[dev]" {
		t.Errorf("ann's groups are %v", groups)
	}
	p.as.SetUser("u1", map[string]any{"email": "ann@example.com", "groups": []string{}})
	ann.want(ann.get("/"), "303 /login")
	p.as.SetUser("u1", map[string]any{"email": "ann@example.com", "groups": []string{"ops"}})
	ann.want(ann.get("/"), "303 /login") // the session does not come back
	bob.want(bob.get("/"), `as "oauth:bob@example.com"`)
	p.as.Forge(func(claims map[string]any) string {
		claims["sub"] = "u1"
		return p.as.Sign(t, claims)
	})
	bob.want(bob.get("/"), "303 /login") // the session is of one person
	p.as.Forge(nil)
	bob.want(bob.signIn("u2"), "303 /")
	p.as.Disable("u2")
	bob.want(bob.get("/"), "303 /login")
	brief := newRealm(t, time.Nanosecond, func(l *config.Login) { l.Scopes = []string{"openid"} })
	eve := brief.person()
	eve.want(eve.signIn("u1"), "303 /")
	eve.want(eve.get("/"), "303 /login") // without a refresh token the session ends with the interval
}

// TestProviderDown: the gateway starts without its provider, and says so to people.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	p := newRealm(t, time.Hour, func(l *config.Login) { l.Issuer = "https://localhost:1" })
	ann := p.person()
	ann.want(ann.get("/login/start"), "502 form, problem \"The provider cannot be reached")
	ann.want(ann.get("/login/finish?state=&code=x"), "403 form")
}
