package dashboard_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"sallyport/gateway/connections"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/tool"
)

// logins are the logins of the house.
type logins struct{ told *[]string }

func (logins) Connections(context.Context) []connections.Connection {
	return []connections.Connection{
		{Upstream: "crm", Name: "crm", Status: oauth.Status{LoggedIn: true, Since: noon, Issuer: "https://login.example", Scopes: []string{"read"}}},
		{Upstream: "mail", Name: "mail", Key: true, Status: oauth.Status{LoggedIn: true, Since: noon}},
		{Upstream: "wiki", Name: "wiki", Provider: "https://sso.example", ExchangeOnly: true, Status: oauth.Status{LoggedIn: true, Exchanged: true, Since: noon}},
		{Upstream: "evil", Name: evil, Description: evil, Shared: true, Error: evil, Provider: evil, Status: oauth.Status{Ended: evil, Issuer: evil, Scopes: []string{evil}}},
	}
}

func (l logins) Connection(ctx context.Context, id string) (connections.Connection, error) {
	for _, one := range l.Connections(ctx) {
		if one.Upstream == id {
			return one, nil
		}
	}
	return connections.Connection{}, &tool.Error{Kind: tool.NotFound, Message: "there is no upstream " + id}
}

func (l logins) Connect(_ context.Context, id string, how connections.How) (string, error) {
	one, err := l.Connection(context.Background(), id)
	switch {
	case err != nil:
		return "", err
	case !one.Key:
		*l.told = append(*l.told, "begin "+id+" "+strings.Join(how.Scopes, ","))
		return "s-1", nil
	}
	*l.told = append(*l.told, "save "+id+" "+how.Key)
	if how.Key == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "the key is empty"}
	}
	return "", nil
}

func (logins) Started(_ context.Context, state string) (string, bool) {
	page := map[string]string{"s-1": "https://login.example/authorize?a=1&b=2", "s-2": "javascript:alert(1)"}[state]
	return page, page != ""
}

func (l logins) Finish(_ context.Context, got url.Values) (string, error) {
	*l.told = append(*l.told, "finish "+got.Get("code"))
	if got.Get("state") != "s-1" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "this is no login that you have begun here"}
	}
	return "crm", nil
}

func (l logins) Disconnect(_ context.Context, id string) error {
	*l.told = append(*l.told, "disconnect "+id)
	return nil
}

// connectionPages are those of this file, with what must be on each for an operator.
var connectionPages = map[string][]string{
	"/ui/connections":             {"crm", "connected", "no login", "all principals"},
	"/ui/connections/crm":         {"Connect again", "Disconnect", "https://login.example", "<code>read</code>"},
	"/ui/connections/mail":        {"Replace the key", "Disconnect", `type="password" name="key"`, `autocomplete="off"`},
	"/ui/connections/wiki":        {"in exchange for that of your sign-in at https://sso.example; there is no other login", "Disconnect"},
	"/ui/connections/evil":        {"The login cannot be read", "All principals use this login."},
	"/ui/connections/crm?scope=a": {"Requested", `name="scope" value="a"`},
}

// TestConnect: a login is begun and ended by who may run programs, from this site only, and goes on at a page of the web.
func TestConnect(t *testing.T) {
	for _, test := range []struct {
		who, path string
		form      url.Values
		headers   []string
		status    int
		next      string
		told      string
	}{
		{"ada", "/ui/connections/crm", url.Values{"do": {"connect"}, "scope": {"a", "b"}}, nil, 303, "/ui/connections/crm?state=s-1", "begin crm a,b"},
		{"ada", "/ui/connections/crm", url.Values{"do": {"disconnect"}}, nil, 303, "/ui/connections/crm", "disconnect crm"},
		{"ada", "/ui/connections/mail", url.Values{"do": {"connect"}, "key": {"k-1"}}, nil, 303, "/ui/connections/mail", "save mail k-1"},
		{"ada", "/ui/connections/mail", url.Values{"do": {"connect"}}, nil, 400, "", "save mail "},
		{"reader", "/ui/connections/mail", url.Values{"do": {"connect"}, "key": {"k-1"}}, nil, 403, "", ""},
		{"ada", "/ui/connections/mail", url.Values{"do": {"connect"}, "key": {"k-1"}}, []string{"Sec-Fetch-Site: cross-site"}, 403, "", ""},
		{"ada", "/ui/finish-login?state=s-1&code=c", nil, nil, 303, "/ui/connections/crm", "finish c"},
		{"ada", "/ui/finish-login?state=s-9&code=c", nil, nil, 400, "", "finish c"},
		{"reader", "/ui/connections/crm", url.Values{"do": {"connect"}}, nil, 403, "", ""},
		{"reader", "/ui/finish-login?state=s-1&code=c", nil, nil, 403, "", ""},
		{"ada", "/ui/connections/crm", url.Values{"do": {"disconnect"}}, []string{"Sec-Fetch-Site: cross-site"}, 403, "", ""},
	} {
		var told []string
		got := ask(t, house{told: &told}, test.who, test.path, test.form, test.headers...)
		if got.Code != test.status || got.Header().Get("Location") != test.next || strings.Join(told, ";") != test.told {
			t.Errorf("%s %s %v: %d to %q, %q", test.who, test.path, test.form, got.Code, got.Header().Get("Location"), told)
		}
	}
	if page := ask(t, house{}, "ada", "/ui/connections/crm?state=s-1", nil).Body.String(); !strings.Contains(page, `href="https://login.example/authorize?a=1&amp;b=2" rel="noreferrer"`) {
		t.Error("where the login goes on:", page)
	}
	if page := ask(t, house{}, "ada", "/ui/connections/crm?state=s-2", nil).Body.String(); strings.Contains(page, "javascript:") {
		t.Error("a script is linked:", page)
	}
}

// TestCallback: the redirect leads on to the page that ends the login, whatever it contains.
func TestCallback(t *testing.T) {
	page := ask(t, house{}, "", "/ui/callback?"+url.Values{"state": {evil}, "code": {`"0;url=https://evil.example`}}.Encode(), nil)
	checkHarmless(t, page.Body.String())
	if want := `content="0;url=/ui/finish-login?code=%220%3Burl%3Dhttps%3A%2F%2Fevil.example&amp;state=`; page.Code != 200 || !strings.Contains(page.Body.String(), want) || page.Header().Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%d %v %s", page.Code, page.Header(), page.Body)
	}
	if got := ask(t, house{}, "", "/ui/callback?state="+strings.Repeat("x", 1<<15), nil); got.Code != 414 {
		t.Errorf("a long one: %d", got.Code)
	}
}
