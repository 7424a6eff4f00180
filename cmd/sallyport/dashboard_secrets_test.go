package main_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// TestDashboardHidesSecrets: a person edits an upstream whose secrets stand in the settings. No response and no line of the log has one;
// what is left as it was keeps its secret, and what is typed replaces it.
func TestDashboardHidesSecrets(t *testing.T) {
	s := newSite(t, "")
	file := filepath.Join(s.dir, "upstreams.yaml")
	secrets := []string{"h3ader-s3cret-1", "h3ader-s3cret-2", "pw-in-the-url-3"}
	before := strings.Replace(s.settings(t), "gate: {url: \"https://", "gate: {headers: {X-Old: "+secrets[0]+", X-New: "+secrets[1]+"}, url: \"https://me:"+secrets[2]+"@", 1)
	writeText(t, file, before)
	p := &editorClient{t: t, secrets: secrets}
	p.logIn(s)
	address := strings.TrimSuffix(s.url, "/mcp") + "/ui/upstreams/gate/edit"
	page := p.ask(address, nil, http.StatusOK)
	text := formText(t, page)
	form := func(do, text, checked string) url.Values {
		return url.Values{"do": {do}, "text": {text}, "version": {formField(t, page, "version")}, "checked": {checked}}
	}
	moved := strings.Replace(text, "X-Old: (hidden-1)", "X-Other: (hidden-1)", 1)
	if wrong := p.ask(address, form("check", moved, ""), http.StatusBadRequest); !strings.Contains(wrong, "another key") {
		t.Errorf("a placeholder at another key: %.2000s", wrong)
	}
	p.ask(address, form("check", strings.Replace(text, "url: ", "timeout: soon, url: ", 1), ""), http.StatusBadRequest)
	edited := strings.Replace(text, "X-New: (hidden-2)", "X-New: typed-1n-the-form", 1)
	checked := p.ask(address, form("check", edited, ""), http.StatusOK)
	p.ask(address, form("save", edited, formField(t, checked, "checked")), http.StatusSeeOther)
	if want := strings.Replace(before, secrets[1], "typed-1n-the-form", 1); s.settings(t) != want {
		t.Errorf("the settings are\n%s\nwant\n%s", s.settings(t), want)
	}
	p.secrets = append(p.secrets, "typed-1n-the-form")
	for _, path := range []string{"/ui/upstreams/gate/edit", "/ui/upstreams/gate", "/ui/upstreams", "/ui/audit", "/api/upstreams"} {
		p.ask(strings.TrimSuffix(s.url, "/mcp")+path, nil, http.StatusOK)
	}
	s.terminate(t)
	if log := s.waitStopped(t); p.finds(log) != "" {
		t.Errorf("the log has %s:\n%s", p.finds(log), log)
	}
}

// editorClient is someone at a browser, who reads whether a page has a secret.
type editorClient struct {
	t       *testing.T
	client  http.Client
	secrets []string
}

// logIn logs in on the gateway's machine.
func (p *editorClient) logIn(s *site) {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.client = http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	cmd := exec.CommandContext(p.t.Context(), testutil.Binary(p.t), "dashboard", "--print")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_STATE_HOME="+s.dir)
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	p.ask(strings.TrimSpace(string(out)), nil, http.StatusSeeOther)
}

func (p *editorClient) finds(text string) string {
	for _, secret := range p.secrets {
		if strings.Contains(text, secret) || strings.Contains(text, html.EscapeString(secret)) {
			return secret
		}
	}
	return ""
}

// ask gets a page, or posts a form, and returns the response.
func (p *editorClient) ask(address string, form url.Values, status int) string {
	p.t.Helper()
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, address, body)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		p.t.Fatalf("%s %s: %d, want %d, %v\n%.2000s", method, address, resp.StatusCode, status, err, data)
	}
	var all strings.Builder
	_ = resp.Header.Write(&all)
	all.Write(data)
	if secret := p.finds(all.String()); secret != "" {
		p.t.Errorf("%s %s shows %s", method, address, secret)
	}
	return string(data)
}

// formText returns the text of the form that edits settings, formField the value of one of its hidden fields.
func formText(t *testing.T, page string) string {
	t.Helper()
	return firstMatch(t, page, `(?s)<textarea[^>]*>\n?(.*?)</textarea>`)
}

func formField(t *testing.T, page, name string) string {
	t.Helper()
	return firstMatch(t, page, `name="`+name+`" value="([^"]*)"`)
}

func firstMatch(t *testing.T, page, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no %s in\n%.3000s", pattern, page)
	}
	return html.UnescapeString(found[1])
}
