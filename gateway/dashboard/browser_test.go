package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/dashboard"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
	"sallyport/internal/tool"
)

// startServer serves a house to an operator.
func startServer(t *testing.T, h dashboard.Service) string {
	t.Helper()
	d := dashboard.New(h, &dashboard.Options{Version: "1.2.3", Workflows: flows{}, Logger: testutil.Logger(t)})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.ServeHTTP(w, r.WithContext(tool.WithOperator(tool.WithPrincipal(r.Context(), "token:somebody"), "op")))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// missing are pages of what is not there.
var missing = []string{"/ui/nothing", "/ui/executions/e-2", "/ui/workflows/digets"}

// dense are the pages that have everything the style has: they are judged in the dark, too.
var dense = []string{"/", "/ui/quarantine"}

// TestInBrowser opens every page, hostile as its texts are: none does anything, breaks a rule of accessibility or of its
// policy, or is wider than a phone.
func TestInBrowser(t *testing.T) {
	at, p := startServer(t, house{}), browser.Open(t).Page(t)
	all := allPages()
	for path := range all {
		plain, _, asked := strings.Cut(path, "?")
		if _, twice := all[plain]; asked && twice || slices.Contains(missing, path) {
			continue // one that is here already, or whose status is what a browser complains of
		}
		p.Size(360, 720)
		p.Scheme("light")
		p.Go(at + path)
		p.Wait("main h1")
		if over := p.Overflows(); over > 0 {
			t.Errorf("%s is %d pixels wider than a phone", path, over)
		}
		judge(t, p, path)
		if slices.Contains(dense, path) {
			p.Scheme("dark")
			judge(t, p, path+" in the dark")
		}
	}
}

func judge(t *testing.T, p *browser.Page, path string) {
	t.Helper()
	for _, v := range p.Violations() {
		t.Errorf("%s: %s", path, v)
	}
}

// TestAnswerInBrowser answers with the keyboard alone, once without script and once with it, and what waits comes by itself.
func TestAnswerInBrowser(t *testing.T) {
	var told []string
	p := browser.Open(t).Page(t)
	at := startServer(t, house{told: &told})
	p.NoScript(true)
	p.Go(at + "/ui/approvals")
	p.Follow(`#a-1 button[value="session"]`)
	p.NoScript(false)
	p.Go(at + "/ui/approvals")
	p.Fill(`#a-1 input[name="reason"]`, "not today")
	p.Press("Tab", "Tab", "Tab", "Tab", "Enter") // past three ways to allow it
	p.WaitText(`.notice[role="status"]`, "Denied: crm.delete.")
	if want := "a-1 allow=true session by op: |a-1 allow=false  by op: not today"; strings.Join(told, "|") != want {
		t.Errorf("told %q", told)
	}
}

// TestScreenshots makes the pictures of docs/how-to/dashboard.md: go test ./gateway/dashboard -run TestScreenshots -artifacts -outputdir DIR.
func TestScreenshots(t *testing.T) {
	p := browser.Open(t).Page(t)
	at := startServer(t, fair{})
	for _, shot := range []struct {
		name, path, scheme string
		width, height      int64
	}{
		{"overview", "/", "light", 1120, 700},
		{"approvals", "/ui/approvals", "dark", 400, 720},
		{"catalogue", "/ui/catalogue?q=open+issues", "dark", 1120, 560},
		{"quarantine", "/ui/quarantine", "light", 1120, 620},
	} {
		p.Size(shot.width, shot.height)
		p.Scheme(shot.scheme)
		p.Go(at + shot.path)
		p.Wait("main h1")
		p.Screenshot(filepath.Join(t.ArtifactDir(), shot.name+".png"))
	}
}
