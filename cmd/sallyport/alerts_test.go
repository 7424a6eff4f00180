package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/webhook"
)

// TestAlertsTest: each receiver gets a signed test, and what it answers is shown without secrets.
func TestAlertsTest(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-of-the-pager"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		switch _, err := webhook.Verify(secret, r.Header, body.Bytes(), time.Now()); {
		case r.URL.Path == "/hook/no-such-team-here":
			http.Error(w, "no_team "+r.URL.Path, http.StatusNotFound)
		case err != nil || !strings.Contains(body.String(), `"type":"test"`):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	text := fmt.Sprintf(`upstreams: {}
alerts:
  - {name: pager, url: "%[1]s", secret: "%[2]s"}
  - {name: team, url: "%[1]s/hook/no-such-team-here", format: slack}
  - {name: later, url: "${NOT_SET}"}
`, server.URL, secret)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	alerts := func(args ...string) (status int, stdout, stderr string) {
		var out, errs bytes.Buffer
		status = run(t.Context(), append([]string{"--config", path, "alerts", "test"}, args...), func(string) (string, bool) { return "", false }, nil, &out, &errs)
		return status, out.String(), errs.String()
	}
	if status, out, errs := alerts("pager"); status != 0 || out != "pager  json  ok  HTTP 204\n" {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	status, out, errs := alerts("--json")
	var report struct {
		Alerts []struct {
			Name, Error string
			OK          bool
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != cli.ExitFailed || len(report.Alerts) != 3 || !report.Alerts[0].OK || report.Alerts[1].OK || report.Alerts[2].OK {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	if text := report.Alerts[1].Error; !strings.HasPrefix(text, "HTTP 404: no_team") || strings.Contains(text, "no-such-team-here") || !strings.Contains(report.Alerts[2].Error, "NOT_SET is not set") {
		t.Errorf("the errors are %+v", report.Alerts)
	}
	if status, _, errs := alerts("pagr"); status == 0 || !strings.Contains(errs, "did you mean pager") {
		t.Errorf("status %d: %s", status, errs)
	}
}
