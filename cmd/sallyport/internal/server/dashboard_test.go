package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// TestDashboardCodes: the control socket gives an address that opens the dashboard once, where a browser can reach it.
func TestDashboardCodes(t *testing.T) {
	t.Parallel()
	ask := func(d *httpListener) (status int, code dashboardCode) {
		w := httptest.NewRecorder()
		d.withLoginCodes(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/dashboard/codes", nil))
		_ = json.Unmarshal(w.Body.Bytes(), &code) // what is none has no URL
		return w.Code, code
	}
	listening := func(addr string) *httpListener {
		listener, err := httpserver.Listen(t.Context(), addr, config.HTTP{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := &httpListener{listener: listener, sessions: access.NewSessions(nil)}
		t.Cleanup(d.close)
		return d
	}
	d := listening("127.0.0.1:0")
	status, got := ask(d)
	begin := "http://" + d.listener.Addr().String() + "/login?code="
	code, ok := strings.CutPrefix(got.URL, begin)
	if status != http.StatusOK || !ok {
		t.Errorf("%d %q", status, got.URL)
	}
	if v, ok := d.sessions.Redeem(code); !ok || v.Operator == "" {
		t.Errorf("%+v", v)
	}
	if _, ok := d.sessions.Redeem(code); ok {
		t.Error("it opens twice")
	}
	for name, d := range map[string]*httpListener{"over stdio": nil, "a socket": listening("unix:" + testutil.ShortDir(t) + "/s")} {
		if status, got := ask(d); status != http.StatusNotFound || got.URL != "" {
			t.Errorf("%s: %d %q", name, status, got.URL)
		}
	}
}
