package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/dashboard"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
	"sallyport/internal/tool"
)

// served serves the house to an operator.
func served(t *testing.T, h house) string {
	t.Helper()
	d := dashboard.New(h, &dashboard.Options{Version: "1.2.3", Workflows: flows(h), Logger: testutil.Logger(t)})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.ServeHTTP(w, r.WithContext(tool.WithOperator(tool.WithPrincipal(r.Context(), "token:somebody"), "op")))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestInBrowser opens every page, hostile as its texts are: none does anything, breaks a rule of accessibility or of its
// policy, or is wider than a phone.
func TestInBrowser(t *testing.T) {
	b, at := browser.Open(t), served(t, house{})
	for path := range allPages() {
		if path == "/ui/nothing" {
			continue // its status is what a browser complains of
		}
		p := b.Page(t)
		for _, look := range []struct {
			scheme        string
			width, height int64
		}{{"light", 1280, 800}, {"dark", 360, 720}} {
			p.Size(look.width, look.height)
			p.Scheme(look.scheme)
			p.Go(at + path)
			p.Wait("main h1")
			for _, v := range p.Violations() {
				t.Errorf("%s, %s: %s", path, look.scheme, v)
			}
			if over := p.Overflows(); over > 0 {
				t.Errorf("%s is %d pixels wider than %d", path, over, look.width)
			}
			name := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-", "%", "").Replace(path), "-")
			p.Screenshot(filepath.Join(t.ArtifactDir(), "page-"+name+"-"+look.scheme+".png"))
		}
	}
}
