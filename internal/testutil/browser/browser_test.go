package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil/browser"
)

const page = `<!doctype html><html lang="en"><head><title>A page</title><style>
body { color: black; background: white } @media (prefers-color-scheme: dark) { body { background: #000; color: #eee } }
%s</style></head><body><main><h1>Hello</h1>
<form action="/next"><label>Name <input name="name" id="name"></label> <button id="go">Go</button></form>
<p id="said"></p></main><script>said.textContent = "scripts run"; name.value</script>%s</body></html>`

// TestBrowser: a page is opened, filled in, judged, looked at, in either scheme and on a phone; what it complains of is heard.
func TestBrowser(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, page, "", "") })
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "script-src 'none'")
		fmt.Fprintf(w, page, "h1 { color: #ddd; width: 3000px }", `<img src="/none.png">`)
	})
	mux.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<title>x</title><p>%q", r.FormValue("name"))
	})
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	web := httptest.NewServer(mux)
	defer web.Close()
	b := browser.Open(t)
	p := b.Page(t)
	if status := p.Go(web.URL + "/"); status != http.StatusOK || p.Text("#said") != "scripts run" || p.Overflows() != 0 {
		t.Errorf("%d %q, %d too wide", status, p.Text("#said"), p.Overflows())
	}
	for _, v := range p.Violations() {
		t.Error(v)
	}
	p.Scheme("dark")
	if got := browser.Eval[string](p, "getComputedStyle(document.body).backgroundColor"); got != "rgb(0, 0, 0)" {
		t.Errorf("dark is %s", got)
	}
	p.Size(360, 640)
	shot := filepath.Join(t.TempDir(), "shot.png")
	p.Screenshot(shot)
	if data, err := os.ReadFile(shot); err != nil || !strings.HasPrefix(string(data), "\x89PNG") || len(data) < 2000 {
		t.Errorf("the picture is %d bytes: %v", len(data), err)
	}
	p.Press("Tab")
	if got := browser.Eval[string](p, "document.activeElement.id"); got != "name" {
		t.Errorf("Tab leads to %q", got)
	}
	p.Fill("#name", "Zoë <b>")
	if status := p.Follow("#go"); status != http.StatusOK || p.Text("p") != `"Zoë"` && !strings.Contains(p.Text("p"), "Zoë") || !strings.HasPrefix(p.URL(), web.URL+"/next?name=") {
		t.Errorf("%d %q at %s", status, p.Text("p"), p.URL())
	}
	p.Scheme("light")
	p.Go(web.URL + "/bad")
	said := strings.Join(p.Complaints(), "\n")
	if !strings.Contains(said, "Content Security Policy") || !strings.Contains(said, "404") {
		t.Errorf("it complains of %q", said)
	}
	broken := fmt.Sprint(p.Violations())
	if p.Overflows() < 1000 || !strings.Contains(broken, "color-contrast") || !strings.Contains(broken, "image-alt") {
		t.Errorf("%d too wide, %s", p.Overflows(), broken)
	}
}
