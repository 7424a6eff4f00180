package mcpserver

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Subsets are the endpoints of the settings in force.
type Subsets interface {
	// Admits reports whether the caller in ctx may use an endpoint now. It is false for a name that is not in the settings.
	Admits(ctx context.Context, name string) bool
	// Open returns the servers of an endpoint, once per name. They are closed with [Endpoints.Close].
	Open(name string) Servers
}

// Servers are what a URL serves.
type Servers struct {
	Direct *Direct
	// Tools is nil without code mode.
	Tools *Tools
	// Mode returns the mode of a client whose URL names none; nil is code.
	Mode ModeOf
}

// site is what one URL serves to its clients. Its sessions are not valid at others.
type site struct {
	http.Handler
	name          string       // of the endpoint, "" for /mcp
	tools, direct http.Handler // tools is nil without code mode
	mode          ModeOf
	servers       []*mcp.Server
	opened        Servers
}

func (e *Endpoints) newSite(name string, of Servers) *site {
	s := &site{name: name, mode: of.Mode, opened: of}
	s.direct = e.endpoint(s, of.Direct.server, of.Direct.ids, true)
	if of.Tools != nil {
		s.tools = e.endpoint(s, of.Tools.Server, of.Tools.ids, false)
	}
	s.Handler = e.serve(s.route(""))
	return s
}

// close ends all sessions, and closes the servers of an endpoint of the settings.
func (s *site) close() {
	for _, server := range s.servers {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	}
	if s.name == "" {
		return // its servers are the caller's
	}
	s.opened.Direct.Close()
	if s.opened.Tools != nil {
		s.opened.Tools.Close()
	}
}

// subsets are the sites of the endpoints that were used.
type subsets struct {
	settings Subsets
	mu       sync.Mutex
	open     map[string]*site
	closed   bool
}

// Subset serves the endpoints of the settings: the path of a request has the name in place of a wildcard, see [http.ServeMux]. A
// caller who may not use an endpoint gets the response for one that does not exist.
func (e *Endpoints) Subset(wildcard string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue(wildcard)
		written := strings.HasSuffix(r.URL.EscapedPath(), "/"+name) // not encoded otherwise
		s := e.subset(r.Context(), name)
		if s == nil || !written {
			http.Error(w, "there is no such endpoint", http.StatusNotFound)
			return
		}
		s.ServeHTTP(w, r)
	})
}

// subset returns the site of an endpoint that the caller may use, else nil.
func (e *Endpoints) subset(ctx context.Context, name string) *site {
	all := &e.subsets
	if name == "" || all.settings == nil || !all.settings.Admits(ctx, name) {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open[name] == nil && !all.closed {
		all.open[name] = e.newSite(name, all.settings.Open(name))
	}
	return all.open[name]
}

// close returns the sites, and opens no further one.
func (all *subsets) close() []*site {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	open := slices.Collect(maps.Values(all.open))
	all.open = map[string]*site{}
	return open
}
