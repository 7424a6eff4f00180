package dashboard_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/dashboard"
	"sallyport/gateway/executor"
	"sallyport/gateway/history"
	"sallyport/internal/clients"
	"sallyport/internal/tool"
)

// newHouse is a gateway on which no program has run.
type newHouse struct{ house }

func (newHouse) Executions(context.Context, history.Filter) (history.Page, error) {
	return history.Page{}, nil
}

func (newHouse) Savings(_ context.Context, since time.Time, step time.Duration) (history.Savings, error) {
	s := history.Savings{Since: since}
	for ; since.Before(time.Now()); since = since.Add(step) {
		s.Steps = append(s.Steps, history.SavingsStep{Begin: since})
	}
	return s, nil
}

func (newHouse) Running(context.Context) []executor.Live { return nil }

// open returns the text of a page for a user without the role operator.
func open(t *testing.T, d http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequestWithContext(tool.WithScopes(t.Context(), tool.UserScopes()), http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d\n%s", path, w.Code, w.Body)
	}
	return html.UnescapeString(w.Body.String())
}

// TestConnectClient shows for each client what its settings need, as install would write it.
func TestConnectClient(t *testing.T) {
	token, login := dashboard.Endpoint{URL: "https://a.example/mcp", Token: true}, dashboard.Endpoint{URL: "https://a.example/mcp", Login: true}
	for _, c := range clients.All() {
		path := "/ui/connect?client=" + c.Name
		page := open(t, dashboard.New(house{}, &dashboard.Options{Endpoint: token}), path)
		install := "sallyport install " + c.Name
		for _, want := range []string{install + "<", install + " --url https://a.example/mcp --token-variable SALLYPORT_TOKEN<", "sallyport token create"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q in\n%s", c.Name, want, page)
			}
		}
		entry, err := c.Install(nil, clients.Self{URL: token.URL, TokenVariable: "SALLYPORT_TOKEN"}, clients.System{OS: "linux", Home: t.TempDir()})
		if err != nil || !strings.Contains(page, strings.TrimSpace(string(entry))) || !strings.Contains(page, c.Title+" over HTTP") {
			t.Errorf("%s: %v, no %s in\n%s", c.Name, err, entry, page)
		}
		page = open(t, dashboard.New(house{}, &dashboard.Options{Endpoint: login}), path)
		if strings.Contains(page, "SALLYPORT_TOKEN") || !strings.Contains(page, "opens a browser to log in") {
			t.Errorf("%s, with logins:\n%s", c.Name, page)
		}
		if page = open(t, dashboard.New(house{}, nil), path); strings.Contains(page, "--url") || !strings.Contains(page, install+"<") {
			t.Errorf("%s, without HTTP:\n%s", c.Name, page)
		}
	}
}

// TestFirstRun shows how to connect a client until a program has run.
func TestFirstRun(t *testing.T) {
	opts := &dashboard.Options{Endpoint: dashboard.Endpoint{URL: "https://a.example/mcp"}}
	first, later := open(t, dashboard.New(newHouse{}, opts), "/"), open(t, dashboard.New(house{}, opts), "/")
	for _, want := range []string{"No program has run yet", "sallyport install claude-code --url https://a.example/mcp<", `href="/ui/connect?client=cursor"`} {
		if !strings.Contains(first, want) || strings.Contains(later, want) {
			t.Errorf("%q: %v, later %v", want, strings.Contains(first, want), strings.Contains(later, want))
		}
	}
}
