package mcpserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// bodyPatience is how long a client may take to send the body of a request.
const bodyPatience = 30 * time.Second

// guard lets only those requests through that cannot be a web page's trick:
// neither one that has made its name resolve to our address (Host), nor one
// that is not known here (Origin).
type guard struct {
	hosts   []string
	origins []string
	// local says that the listener is a Unix socket, which no page can reach.
	local bool
}

// around checks requests before next sees them, and answers the preflights of browsers.
func (g guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.local && !g.host(r.Host) {
			http.Error(w, "this host name is not served here; http.hosts can allow it", http.StatusForbidden)
			return
		}
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		if len(r.Header.Values("Origin")) > 1 || !g.origin(origin) {
			http.Error(w, "this origin is not allowed; http.origins can allow it", http.StatusForbidden)
			return
		}
		if strings.HasPrefix(r.URL.Path, apiPath) { // pages of other origins have no business there, whatever the settings allow for MCP
			if !ownOrigin(origin, r.Host) {
				http.Error(w, "the API is for no page of another origin", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", origin)
		header.Add("Vary", "Origin")
		header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			header.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// host reports whether a Host is one of ours. An address needs no name server
// to lie, so it is always right.
func (g guard) host(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(hostOnly(host)), ".")
	if name == "localhost" || slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

func hostOnly(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// origin reports whether pages of an origin may use us: loopback ones, and those of the settings.
func (g guard) origin(origin string) bool {
	if slices.ContainsFunc(g.origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" {
		return false
	}
	return isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// whole reads the body of each request, up to limit bytes, before next sees
// it: what comes too slowly or is too large costs no more than that.
func whole(limit int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyPatience)) // a recorder in a test has none
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		_ = control.SetReadDeadline(time.Time{})
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			http.Error(w, "the body is larger than http.body allows", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "the body did not arrive", http.StatusBadRequest)
			return
		}
		replaceBody(r, body)
		next.ServeHTTP(w, r)
	})
}

func replaceBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = held{bytes.NewReader(body), body}, int64(len(body))
}

// held is a body that is in memory.
type held struct {
	*bytes.Reader
	all []byte
}

// Close implements [io.Closer].
func (held) Close() error { return nil }
