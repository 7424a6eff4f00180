package dashboard

import (
	"context"
	"net/http"
	"net/url"

	"sallyport/gateway/connections"
	"sallyport/internal/continuepage"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Connections are the logins of the caller at upstreams.
type Connections interface {
	Connections(ctx context.Context) []connections.Connection
	Connection(ctx context.Context, id string) (connections.Connection, error)
	// Connect begins a login and returns its state; Started returns the page of the authorization server for it. A key is stored.
	Connect(ctx context.Context, id string, how connections.How) (state string, err error)
	Started(ctx context.Context, state string) (page string, ok bool)
	// Finish ends a login with the parameters of the redirect.
	Finish(ctx context.Context, got url.Values) (id string, err error)
	Disconnect(ctx context.Context, id string) error
}

// connectionPages are the pages about the logins of the caller.
type connectionPages struct{ *Dashboard }

// ConnectionsPage lists logins.
type ConnectionsPage struct {
	All []connections.Connection
}

// ConnectionPage is what the page of one login shows.
type ConnectionPage struct {
	connections.Connection
	// Continue is the page of the authorization server for a login that has begun, Host its host name; "" for none.
	Continue, Host string
	// Scopes are requested in addition by the form.
	More []string
}

// maxScopes is how many scopes a form may request.
const maxScopes = 16

// connections returns the logins, for a caller who may run programs: who may only read could give another person's programs
// its own account.
func (d connectionPages) connections(r *request) (Connections, error) {
	switch {
	case d.opts.Connections == nil:
		return nil, &tool.Error{Kind: tool.NotFound, Message: "this gateway has no logins at upstreams"}
	case !tool.May(r.Context(), tool.ScopeExecute) && !tool.May(r.Context(), tool.ScopeMCP):
		return nil, &tool.Error{Kind: tool.Denied, Message: "logins need the scope execute or mcp", Hint: "log in with a token that has it"}
	}
	return d.opts.Connections, nil
}

func (d connectionPages) list(r *request) (any, error) {
	if d.opts.Connections == nil {
		return ConnectionsPage{}, nil
	}
	return ConnectionsPage{d.opts.Connections.Connections(r.Context())}, nil
}

func (d connectionPages) show(r *request) (any, error) {
	all, err := d.connections(r)
	if err != nil {
		return nil, err
	}
	one, err := all.Connection(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	r.setTitle(one.Upstream, Crumb{"Connections", connections.Path})
	p := ConnectionPage{Connection: one, More: scopesOf(r.URL.Query())}
	if page, ok := all.Started(r.Context(), r.URL.Query().Get("state")); ok {
		if u, err := url.Parse(page); err == nil {
			p.Continue, p.Host = page, u.Host
		}
	}
	return p, nil
}

func scopesOf(form url.Values) []string {
	all := form["scope"]
	return all[:min(len(all), maxScopes)]
}

// change connects or disconnects.
func (d connectionPages) change(r *request) (string, error) {
	all, err := d.connections(r)
	if err != nil {
		return "", err
	}
	id := r.PathValue("id")
	page := connections.Path + "/" + url.PathEscape(id)
	if r.PostFormValue("do") == "disconnect" {
		return page, r.sayIf(all.Disconnect(r.Context(), id), "Disconnected from "+id+".")
	}
	state, err := all.Connect(r.Context(), id, connections.How{Scopes: scopesOf(r.PostForm), Key: r.PostFormValue("key")})
	if err == nil && state != "" {
		return page + "?" + url.Values{"state": {state}}.Encode(), nil
	}
	return page, r.sayIf(err, connectedText(id))
}

func connectedText(id string) string {
	return "Connected to " + id + ". Programs that wait for it go on."
}

// sayIf shows a text on the next page if there is no error.
func (r *request) sayIf(err error, text string) error {
	if err == nil {
		r.say(text)
	}
	return err
}

// finish ends a login, for the redirect of the authorization server.
func (d connectionPages) finish(r *request) (string, error) {
	all, err := d.connections(r)
	if err != nil {
		return "", err
	}
	id, err := all.Finish(r.Context(), r.URL.Query())
	if id == "" {
		return "", err
	}
	if err != nil {
		r.warn("Not connected: " + sanitize.Line(tool.AsError(err).Message, 300) + ".")
	} else {
		r.say(connectedText(id))
	}
	return connections.Path + "/" + url.PathEscape(id), nil
}

// serveCallback serves the redirect of an authorization server.
func serveCallback(w http.ResponseWriter, r *http.Request) {
	continuepage.Serve(w, r, connections.FinishPath)
}
