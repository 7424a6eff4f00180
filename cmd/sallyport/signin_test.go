package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/browser"
)

// TestSignIn: a person signs in to the real gateway at a provider with a real browser, returns to the page that was asked for, and
// logs out.
func TestSignIn(t *testing.T) {
	testutil.Long(t)
	as := authserver.New(t, &authserver.Options{OpenID: true, Clients: []authserver.Client{{ID: "gw", Secret: "secret-of-the-gateway", RedirectURIs: []string{"http://127.0.0.1/login/callback"}}}})
	as.SetUser("ann", map[string]any{"email": "ann@example.com", "groups": []string{"dev"}})
	dir := t.TempDir()
	config := filepath.Join(dir, "upstreams.yaml")
	text := fmt.Sprintf("upstreams: {}\nhttp:\n  login: {issuer: %q, client_id: gw, client_secret: secret-of-the-gateway, scopes: [openid, offline_access]}\n"+
		"  identity: {principal: claims.email, groups: claims.groups, roles: {viewer: '\"dev\" in groups'}}\n", as.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testutil.Binary(t), "serve", "--config", config, "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir)
	url, log := startListening(t, cmd)
	site := strings.TrimSuffix(url, "/mcp")
	p := browser.Open(t).Page(t)
	p.Go(site + "/ui/catalogue")
	if bad := p.Violations(); len(bad) > 0 {
		t.Errorf("the login page: %v", bad)
	}
	p.Follow("main a.button.primary")
	p.Fill("input[name=user]", "ann")
	p.Follow("button[value=allow]")
	p.WaitText("body", "oauth:ann@example.com")
	if p.URL() != site+"/ui/catalogue" {
		t.Errorf("after the sign-in: %s", p.URL())
	}
	p.Follow("form[action='/logout'] button")
	p.WaitText("main", "You are logged out here, but not at")
	if bad := p.Violations(); len(bad) > 0 {
		t.Errorf("the login page after a logout: %v", bad)
	}
	if p.Follow("a[href*='/end_session?client_id=gw']"); !strings.HasPrefix(p.URL(), as.URL) {
		t.Errorf("the link to the logout at the provider leads to %s", p.URL())
	}
	if p.Go(site + "/ui/catalogue"); !strings.HasPrefix(p.URL(), site+"/login") {
		t.Errorf("after the logout: %s", p.URL())
	}
	p.Complaints() // the authorization server has no icon
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if all := <-log; strings.Contains(all, "eyJ") || strings.Contains(all, "secret-of") {
		t.Errorf("the log has a secret:\n%s", all)
	}
	_ = cmd.Wait()
}
