package tools

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/testutil/browser"
)

// shots are pages that have what the style of the site has: a picture, wide tables, long code.
var shots = []struct {
	name, path, scheme string
	width, height      int64
}{
	{"home-light", "/", "light", 1280, 900},
	{"home-dark", "/", "dark", 1280, 900},
	{"pages-light", "/pages.html", "light", 1280, 900},
	{"settings-dark", "/reference/settings.html", "dark", 1280, 900},
	{"dashboard-dark", "/how-to/dashboard.html", "dark", 1280, 900},
	{"phone-light", "/how-to/policy.html", "light", 360, 720},
	{"phone-dark", "/", "dark", 360, 720},
}

// ofTheTheme are rules that the theme breaks, and Markdown, which has no table without a head.
var ofTheTheme = []string{"label-content-name-mismatch", "empty-table-header"}

// TestSite looks at the built site, whose folder is SALLYPORT_TEST_SITE: no page is wider than a phone or breaks a rule
// of accessibility, search finds pages, and all can be read without script. With -artifacts it keeps pictures.
func TestSite(t *testing.T) {
	folder := os.Getenv("SALLYPORT_TEST_SITE")
	if folder == "" {
		t.Skip("`make docs` builds the site and runs this")
	}
	web := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(web.Close)
	p := browser.Open(t).Page(t)
	for _, shot := range shots {
		p.Size(shot.width, shot.height)
		p.Scheme(shot.scheme)
		p.Go(web.URL + shot.path)
		p.Wait("main h1")
		p.Screenshot(filepath.Join(t.ArtifactDir(), shot.name+".png"))
		for _, v := range p.Violations() {
			if !slices.Contains(ofTheTheme, v.ID) {
				t.Errorf("%s: %s", shot.name, v)
			}
		}
	}
	onAPhone(t, p, web.URL, folder)
	search(t, p, web.URL)
	withoutScript(t, p, web.URL)
}

// onAPhone checks the width of every page.
func onAPhone(t *testing.T, p *browser.Page, at, folder string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(folder, "*", "*.html"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	p.Size(360, 720)
	for _, page := range pages {
		path, err := filepath.Rel(folder, page)
		if err != nil {
			t.Fatal(err)
		}
		p.Go(at + "/" + filepath.ToSlash(path))
		p.Wait("main h1")
		if over := p.Overflows(); over > 0 {
			t.Errorf("%s is %d pixels wider than a phone", path, over)
		}
	}
}

func search(t *testing.T, p *browser.Page, at string) {
	t.Helper()
	p.Size(1280, 900)
	p.Scheme("light")
	p.Go(at + "/")
	opened := browser.Eval[bool](p, `new Promise(done => setInterval(() => {
		const field = document.querySelector("#localsearch-input")
		if (field) done(true); else document.querySelector("#local-search button").click()
	}, 200))`)
	if !opened {
		t.Fatal("search does not open")
	}
	p.Fill("#localsearch-input", "approvals")
	p.Wait(".VPLocalSearchBox .result")
	p.WaitText(".VPLocalSearchBox .results", "Approvals")
	p.Screenshot(filepath.Join(t.ArtifactDir(), "search-light.png"))
}

func withoutScript(t *testing.T, p *browser.Page, at string) {
	t.Helper()
	p.NoScript(true)
	p.Size(360, 720)
	p.Go(at + "/how-to/policy.html")
	p.Screenshot(filepath.Join(t.ArtifactDir(), "no-script-phone.png"))
	p.Size(1280, 900)
	p.Go(at + "/how-to/policy.html")
	p.Wait("main h1")
	p.Wait("aside a[href='/pages.html']")
	p.Screenshot(filepath.Join(t.ArtifactDir(), "no-script.png"))
}
