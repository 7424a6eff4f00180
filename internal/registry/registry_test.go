package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"sallyport/internal/registry"
	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

// entry returns a version of a server in the form of the API.
func entry(name, version, status string, latest bool) string {
	return fmt.Sprintf(`{"server": {"name": %q, "description": "d", "version": %q}, "_meta": {"io.modelcontextprotocol.registry/official": {"status": %q, "isLatest": %v}}}`, name, version, status, latest)
}

func TestClient(t *testing.T) {
	r := registrytest.New(t, entry("io.github.a/b", "1.0.0+x", "active", false), entry("io.github.a/b", "1.1.0", "deprecated", true), entry("io.github.a/gone", "1.0.0", "deleted", true), entry("io.github.a/c", "1.0.0", "active", true))
	c := registry.New(r.URL + "/")
	for version, want := range map[string]string{"": "1.1.0 deprecated", "1.0.0+x": "1.0.0+x active"} {
		got, err := c.Get(t.Context(), "io.github.a/b", version)
		if text := got.Server.Version + " " + string(got.Status()); err != nil || text != want {
			t.Errorf("%q: %s, %v; want %s", version, text, err, want)
		}
	}
	if got, err := c.Get(t.Context(), "io.github.a/gone", ""); err != nil || got.Status() != registry.Deleted {
		t.Errorf("a deleted entry: %v, %v", got.Status(), err)
	}
	for _, of := range [][2]string{{"io.github.a/b", "3.0.0"}, {"io.github.a/none", ""}} {
		if _, err := c.Get(t.Context(), of[0], of[1]); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%v: %v", of, err)
		}
	}
	for _, name := range []string{"", "a", "a/b/c", "../../x", "a/b?x=1", "a/b#", "A/\x1b", strings.Repeat("a", 200) + "/b"} {
		if _, err := c.Get(t.Context(), name, ""); err == nil {
			t.Errorf("%q is the name of a server", name)
		}
	}
	found, more, err := c.Search(t.Context(), "io.github.a", 1)
	if err != nil || !more || len(found) != 1 || found[0].Server.Version != "1.1.0" {
		t.Errorf("%v, %v, %v", found, more, err)
	}
	if found, more, err = c.Search(t.Context(), "a/c", 50); err != nil || more || len(found) != 1 {
		t.Errorf("%v, %v, %v", found, more, err)
	}
}

// TestHostile: an answer about something else, too long, of another kind or in a wrong form is an error, which shows no text of it.
func TestHostile(t *testing.T) {
	const path = "/v0.1/servers/io.github.a%2Fb/versions/latest"
	r := registrytest.New(t)
	c := registry.New(r.URL)
	for what, text := range map[string]string{
		"another server":  entry("io.github.evil/b", "1.0.0", "active", true),
		"another version": entry("io.github.a/b", "latest", "active", true),
		"an escape":       entry("io.github.a/b", "1\x1b[2J", "active", true),
		"a status":        entry("io.github.a/b", "1.0.0", "trusted", true),
		"another type":    `{"server": []}`,
		"no JSON":         "<html>hunter2",
		"too long":        `{"server": {"name": "io.github.a/b", "version": "1", "description": "` + strings.Repeat("x", 5<<20) + `"}}`,
		"too deep":        strings.Repeat("[", 20_000),
	} {
		r.Answer(path, text)
		if _, err := c.Get(t.Context(), "io.github.a/b", ""); !errors.Is(err, registry.ErrInvalid) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.Answer("/v0.1/servers", `{"servers": [`+entry("no name", "1.0.0", "active", true)+","+entry("io.github.a/b", "1.0.0", "active", true)+`]}`)
	if found, _, err := c.Search(t.Context(), "x", 10); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestRedirect: no redirect to another host is followed.
func TestRedirect(t *testing.T) {
	reached := false
	other := tlstest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	first := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	if _, err := registry.New(first.URL).Get(t.Context(), "io.github.a/b", ""); err == nil || reached {
		t.Errorf("%v, followed: %v", err, reached)
	}
}

func TestReadPackage(t *testing.T) {
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer map[string]any
		switch r.URL.EscapedPath() {
		case "/@x%2Fpack/latest":
			answer = map[string]any{"name": "@x/pack", "version": "1.2.3", "deprecated": "use y", "_npmUser": map[string]any{"name": "ann"}, "repository": map[string]any{"url": "git+https://example.com/x.git"}}
		case "/other/1.0.0":
			answer = map[string]any{"name": "evil", "version": "1.0.0"}
		case "/pypi/My_Pack/json":
			answer = map[string]any{"info": map[string]any{"name": "my-pack", "version": "2.0", "author_email": "ann@example.com", "yanked": true}}
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	for _, test := range []struct{ kind, name, version, want string }{
		{"npm", "@x/pack", "", `{@x/pack 1.2.3  https://example.com/x ann use y} <nil>`},
		{"npm", "other", "1.0.0", "it is about another package"},
		{"npm", "none", "", "not found"},
		{"npm", "../x", "", "is not the name of a package"},
		{"npm", "x", "^1", "is not a version"},
		{"pypi", "My_Pack", "", `{My_Pack 2.0   ann@example.com the version was withdrawn} <nil>`},
		{"pypi", "-r", "", "is not the name of a package"},
	} {
		info, err := registry.ReadPackage(t.Context(), registry.NewHTTP(), test.kind, server.URL, test.name, test.version)
		if got := fmt.Sprint(info, " ", err); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %s, want %s", test.kind, test.name, got, test.want)
		}
	}
}
