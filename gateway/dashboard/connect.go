package dashboard

import (
	"io/fs"
	"net/url"
	"slices"

	"sallyport/gateway/history"
	"sallyport/internal/clients"
)

// Endpoint is where MCP clients reach the gateway.
type Endpoint struct {
	// URL is the MCP endpoint over HTTP; "" if there is none.
	URL string
	// Token says that the endpoint requires a token, Login that clients log in instead (OAuth).
	Token, Login bool
}

// ConnectPage shows how to connect one client.
type ConnectPage struct {
	Endpoint Endpoint
	Clients  []ClientChoice
	// Title is the name of the client that was chosen.
	Title string
	// Install are commands that change its settings: Remote for a client that connects over HTTP, Start for one that starts a gateway.
	Remote, Start []string
	// File and MacFile are its settings file on Linux and macOS, Entry is what an entry for HTTP looks like there.
	File, MacFile, Entry string
	// NeedsToken says that TOKEN in the entry must be replaced.
	NeedsToken bool
}

// ClientChoice is a client that can be chosen.
type ClientChoice struct {
	Title, Path string
	Here        bool
}

const connectPath = "/ui/connect"

// tokenVariable is the environment variable with the token of a client.
const tokenVariable = "SALLYPORT_TOKEN"

// connectPages show how to connect clients.
type connectPages struct{ *Dashboard }

func (d connectPages) show(r *request) (any, error) {
	return d.page(r.URL.Query().Get("client"))
}

// page returns the page for the client with a name, or for the first one.
func (d connectPages) page(name string) (ConnectPage, error) {
	all := clients.All()
	at := max(0, slices.IndexFunc(all, func(c clients.Client) bool { return c.Name == name }))
	client := all[at]
	p := ConnectPage{Endpoint: d.opts.Endpoint, Title: client.Title, Start: []string{"sallyport install " + client.Name}}
	for i, c := range all {
		p.Clients = append(p.Clients, ClientChoice{Title: c.Title, Path: connectPath + "?" + url.Values{"client": {c.Name}}.Encode(), Here: i == at})
	}
	if p.Endpoint.URL == "" {
		return p, nil
	}
	us := clients.Self{URL: p.Endpoint.URL}
	if p.Endpoint.Token {
		us.TokenVariable = tokenVariable
	}
	p.Remote, p.NeedsToken = remoteCommands(client.Name, us), client.NeedsToken(us)
	p.File, p.MacFile = client.UserFile(homeSystem("linux")), client.UserFile(homeSystem("darwin"))
	if p.MacFile == p.File {
		p.MacFile = ""
	}
	entry, err := client.Install(nil, us, homeSystem("linux"))
	p.Entry = string(entry)
	return p, err
}

// homeSystem is a machine with a home directory that is called ~.
func homeSystem(os string) clients.System {
	return clients.System{OS: os, Home: "~", ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
}

// remoteCommands returns the commands that connect a client over HTTP: the client's own one, if it has one, and install.
func remoteCommands(client string, us clients.Self) (all []string) {
	install := "sallyport install " + client + " --url " + us.URL
	own := "claude mcp add --transport http sallyport " + us.URL
	if us.TokenVariable != "" {
		install += " --token-variable " + us.TokenVariable
		own += ` --header "Authorization: Bearer $` + us.TokenVariable + `"`
	}
	if client == "claude-code" {
		all = append(all, own)
	}
	return append(all, install)
}

// isFirstRun reports whether no program of the caller is on record yet.
func (d connectPages) isFirstRun(r *request, o Overview) bool {
	if o.Now.Running > 0 || o.Savings.Total.Executions > 0 || r.URL.Query().Get("live") != "" {
		return false
	}
	page, err := d.service.Executions(r.Context(), history.Filter{Limit: 1})
	return err == nil && len(page.Executions) == 0
}
