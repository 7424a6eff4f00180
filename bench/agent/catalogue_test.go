package agent_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/bench/agent"
)

func names(all []agent.Catalogue) (names []string) {
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

func TestCatalogues(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"b", "a-2", "a", "c"} {
		write(name+".json", `{"tools": [{"name": "`+name+`"}]}`)
	}
	write("README.md", "what they are\n\n| file | package | version |\n| --- | --- | --- |\n| a-2 | @acme/a | 1.2.3 |\n")
	write("c.json", `{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "c"}]}}`)
	all, err := agent.ReadCatalogues(dir)
	if got := names(all); err != nil || !slices.Equal(got, []string{"a", "a-2", "b", "c"}) {
		t.Fatal(got, err)
	}
	if got := string(all[1].Tools[0]); got != `{"name": "a-2"}` {
		t.Errorf("a definition was changed: %s", got)
	}
	if all[1].Package != "@acme/a" || all[1].Version != "1.2.3" || all[0].Package != "" {
		t.Errorf("they are of %q %q and %q", all[1].Package, all[1].Version, all[0].Package)
	}
	if len(all[3].Tools) != 1 {
		t.Error("a whole message was not read")
	}
	if got := names(agent.Without(all, "a", "c", "other")); !slices.Equal(got, []string{"a-2", "b"}) {
		t.Errorf("without a and c there are %q", got)
	}
	write("d.json", `{"tools": 1}`)
	if _, err := agent.ReadCatalogues(dir); err == nil {
		t.Error("what is no catalogue was read")
	}
}

// A catalogue answers messages, and says to whoever asks for a stream that there is none.
func TestCatalogueHasNoStreams(t *testing.T) {
	for method, status := range map[string]int{http.MethodPost: http.StatusOK, http.MethodGet: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusMethodNotAllowed} {
		w := httptest.NewRecorder()
		crm().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/crm", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
		if w.Code != status || (status == http.StatusOK) != strings.Contains(w.Body.String(), "merge_customers") {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}
