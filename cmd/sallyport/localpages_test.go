package main_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// dashboard: a gateway over stdio opens its dashboard only when the operator requests it.
func (r *rig) dashboard(t *testing.T) {
	r.wantRun("python", "# a program on the dashboard\nprint(6 * 7)", false, "42")
	site, code, ok := strings.Cut(r.openDashboard(t), "/login?code=")
	if !ok || code == "" {
		t.Fatalf("the address is %s", site)
	}
	again, _, _ := strings.Cut(r.openDashboard(t), "/login?code=")
	if again != site {
		t.Errorf("it was opened at %s and at %s", site, again)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	operator := &http.Client{Jar: jar}
	stranger := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, ask := range []struct {
		by     *http.Client
		path   string
		status int
		want   string
	}{
		{stranger, "/ui/executions", http.StatusSeeOther, ""},
		{stranger, "/api/executions", http.StatusUnauthorized, ""},
		{stranger, "/login?code=" + url.QueryEscape(code[1:]), http.StatusUnauthorized, ""},
		{operator, "/login?code=" + code, http.StatusOK, "Sallyport"},
		{operator, "/ui/executions", http.StatusOK, "a program on the dashboard"},
		{operator, "/api/executions", http.StatusOK, "a program on the dashboard"},
		{operator, "/mcp", http.StatusNotFound, ""},
		{stranger, "/login?code=" + code, http.StatusUnauthorized, ""}, // it was used
	} {
		status, body := get(t, ask.by, site+ask.path)
		if status != ask.status || !strings.Contains(body, ask.want) {
			t.Errorf("%s: %d, want %d with %q\n%.500s", ask.path, status, ask.status, ask.want, body)
		}
	}
}

// openDashboard returns the address that sallyport dashboard prints.
func (r *rig) openDashboard(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testutil.Binary(t), "dashboard", "--print")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+r.state, "XDG_DATA_HOME="+filepath.Join(r.state, "data"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func get(t *testing.T, client *http.Client, address string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
