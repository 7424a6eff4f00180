package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"sallyport/internal/weburl"
)

const endpoint = "https://mcp.example.com/v1/mcp"

func newFuzzHandler(t *testing.T, dir string) *Handler {
	t.Helper()
	return New(Settings{ID: "tickets", URL: endpoint, Store: storeFile}, &Options{Dir: dir})
}

// FuzzRecord: whatever the file of a login holds, it is a record of this upstream
// that is written as it was read, or an error that asks for a login and shows
// nothing of it.
func FuzzRecord(f *testing.F) {
	good, err := (&record{
		Version: 1, Upstream: "tickets", URL: endpoint, Resource: endpoint, Issuer: "https://as.example.com", Scopes: []string{"read"},
		Since: time.Unix(1, 0), Life: time.Hour, Store: storeFile, TokenURL: "https://as.example.com/token", Secret: secrets{Access: "hunter2", Refresh: "hunter3"},
	}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"version":1,"upstream":"other","secret":{"access":"hunter2"}}`))
	f.Add([]byte(`{"version":1,"upstream":"tickets","url":"` + endpoint + `","life":-9223372036854775808,"expires":"9999-12-31T23:59:59Z","store":"elsewhere"}`))
	f.Add([]byte(`null`))
	dir := filepath.Join(f.TempDir(), "auth")
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newFuzzHandler(t, dir)
		if _, err := h.store.makeFolder(); err != nil {
			t.Fatal(err)
		}
		path, _ := h.store.path()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, _, err := h.store.readFile()
		if err != nil {
			asksForLogin(t, err)
			return
		}
		if r.Upstream != "tickets" || r.URL != endpoint {
			t.Fatalf("a record of %s at %s", r.Upstream, r.URL)
		}
		if _, err := h.Status(); err != nil {
			t.Errorf("status: %v", err)
		}
		now := time.Now()
		if r.fresh(now) && !r.usable(now) && r.Life >= 0 {
			t.Errorf("fresh, but not usable: %+v", r)
		}
		if err := h.store.writeFile(r); err != nil {
			return // a time that JSON cannot write
		}
		if again, _, err := h.store.readFile(); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v was written and read as %+v, %v", r, again, err)
		}
	})
}

func asksForLogin(t *testing.T, err error) {
	t.Helper()
	if e, ok := err.(*LoginError); !ok && !strings.HasPrefix(err.Error(), "read tokens: ") || ok && e.Client { //nolint:errorlint // as it is
		t.Errorf("error %v", err)
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("the error shows what is stored: %v", err)
	}
	oneLine(t, err.Error())
}

// oneLine wants text that does nothing to a terminal.
func oneLine(t *testing.T, text string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		t.Errorf("it holds control characters: %q", text)
	}
}

// FuzzPasted: whatever is pasted, only an answer to our own question has a code,
// and an error shows none.
func FuzzPasted(f *testing.F) {
	const state = "the-state-of-this-login"
	for _, line := range []string{
		"http://127.0.0.1:8976/callback?code=hunter2&state=" + state + "&iss=https%3A%2F%2Fas.example.com\n",
		"http://127.0.0.1:8976/callback?code=hunter2&state=another", "?code=hunter2&state=" + state, "code=hunter2&state=" + state,
		"http://127.0.0.1:8976/callback?error=access_denied&error_description=%1b[31mno&state=" + state + "&iss=https%3A%2F%2Fas.example.com",
		"http://127.0.0.1:8976/callback?state=" + state + "&state=b&code=hunter2&code=c;x=%zz", "", "\n", "http://[::1", strings.Repeat("x", maxPasted+10),
	} {
		f.Add(line, true)
		f.Add(line, false)
	}
	f.Fuzz(func(t *testing.T, line string, supported bool) {
		got, err := readPastedURL(strings.NewReader(line))
		if err != nil {
			oneLine(t, err.Error())
			if strings.Contains(err.Error(), "hunter") {
				t.Errorf("the error shows a code: %v", err)
			}
			return
		}
		found := &issuer{meta: &oauthex.AuthServerMeta{Issuer: "https://as.example.com", AuthorizationResponseIssParameterSupported: supported}}
		code, err := readCallback(got, state, found)
		if err != nil {
			oneLine(t, err.Error())
			if len(err.Error()) > 1200 { // 260 runes of the server, and ours
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		first, _, _ := strings.Cut(line, "\n")
		if code == "" || got.Get("state") != state || !strings.Contains(first, "state=") && !strings.Contains(first, "%") {
			t.Errorf("%q gives the code %q", line, code)
		}
		if supported != got.Has("iss") {
			t.Errorf("%q was taken, though supported is %v", line, supported)
		}
	})
}

// FuzzChallenge: whatever a refusal says, we are sent nowhere that we may not go,
// and the command to run that comes of it does nothing else in a shell.
func FuzzChallenge(f *testing.F) {
	for _, header := range []string{
		`Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource", scope="read write"`,
		`Bearer error="insufficient_scope", scope="$(reboot) ` + "`id`" + ` a;b -rf x\"y"`, `Bearer resource_metadata="http://127.0.0.1/x"`,
		`Bearer resource_metadata="https://u:p@example.com"`, `Basic realm="x", Bearer scope=`, `Bearer scope="` + strings.Repeat("a ", 500) + `"`,
		`DPoP algs="ES256", bearer error=insufficient_scope scope="a"`, `Bearer ,,,="`, strings.Repeat(",", 1<<22), "",
	} {
		f.Add(header, 401)
		f.Add(header, 403)
	}
	f.Fuzz(func(t *testing.T, header string, status int) {
		h := newFuzzHandler(t, t.TempDir())
		ask := parseChallenge(&http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {header}}})
		if len(ask.scopes) > 64 {
			t.Errorf("%d scopes", len(ask.scopes))
		}
		text := h.needLogin("it wants more", ask.scopes...).Error()
		oneLine(t, text)
		command := strings.TrimSuffix(strings.TrimPrefix(text, "it wants more: run `"), "`")
		if strings.ContainsAny(command, "`$;&|<>(){}[]!?#\"'\\%^") {
			t.Errorf("the command is %q", command)
		}
		for word := range strings.FieldsSeq(strings.TrimPrefix(command, "sallyport auth login tickets")) {
			if strings.HasPrefix(word, "-") && word != "--scope" {
				t.Errorf("the command is %q", command)
			}
		}
		places, err := h.metadataLocations(ask)
		if err != nil {
			oneLine(t, err.Error())
			return
		}
		for _, p := range places {
			if u, err := url.Parse(p.url); err != nil || u.Scheme != "https" || u.User != nil || weburl.IsLoopback(u.Hostname()) {
				t.Errorf("metadata is looked for at %q", p.url)
			}
		}
	})
}

// FuzzTokenAnswer is for what a token endpoint says: it is not shown but for its reason.
func FuzzTokenAnswer(f *testing.F) {
	f.Add(`{"access_token":"hunter2","token_type":"Bearer","expires_in":3600,"scope":"read"}`, 200)
	f.Add(`{"access_token":"hunter2\r\nX: y","token_type":"Bearer"}`, 200)
	f.Add(`{"access_token":"hunter2","token_type":"mac"}`, 200)
	f.Add(`{"access_token":"hunter2","token_type":"bearer","expires_in":-5}`, 200)
	f.Add(`{"access_token":"hunter2","token_type":"bearer","expires_in":1e99}`, 200)
	f.Add(`{"error":"invalid_grant","error_description":"\u001b[31mno"}`, 400)
	f.Add(`{"error":"<script>hunter2"}`, 400)
	f.Add(`<html>hunter2`, 502)
	f.Fuzz(func(t *testing.T, body string, status int) {
		if status < 200 || status > 599 {
			status = 200
		}
		h := New(Settings{ID: "tickets", URL: endpoint, Store: storeFile}, &Options{Client: &http.Client{Transport: cannedResponse{body, status}}})
		token, err := h.grant(t.Context(), client{id: "x", tokenURL: "https://as.example.com/token"}, url.Values{"grant_type": {"refresh_token"}})
		if err != nil {
			oneLine(t, err.Error())
			return
		}
		if !isToken(token.AccessToken) || lifeOf(token) < 0 {
			t.Errorf("token %q, life %v", token.AccessToken, lifeOf(token))
		}
		r := &record{Version: 1, Upstream: "tickets", URL: endpoint}
		h.updateRecord(r, token)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("it cannot be kept: %v", err)
		}
		for _, scope := range r.Scopes {
			if !scopePattern.MatchString(scope) {
				t.Errorf("scope %q", scope)
			}
		}
	})
}

type cannedResponse struct {
	body   string
	status int
}

func (s cannedResponse) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	rec.Body = http.NoBody
	if s.body != "" {
		rec.Body = struct {
			*strings.Reader
			closer
		}{strings.NewReader(s.body), closer{}}
	}
	return rec, nil
}

type closer struct{}

func (closer) Close() error { return nil }
