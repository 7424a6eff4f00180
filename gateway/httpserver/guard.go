package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"sallyport/internal/weburl"
)

// guard refuses requests that a foreign web page may have triggered, by
// DNS rebinding (Host) or across origins (Origin).
type guard struct {
	hosts   []string
	origins []string
	// local says that the listener is a Unix socket, which no page can reach.
	local bool
}

// checkHost refuses requests for unknown host names.
func (g guard) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.local && !g.host(r.Host) {
			refuse(w, refusal{status: http.StatusForbidden, detail: "this host name is not served here", hint: "http.hosts can allow it"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// forMCP guards MCP: pages of loopback origins and of origins in the settings may use it.
func (g guard) forMCP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch origin := r.Header.Get("Origin"); {
		case origin == "":
			next.ServeHTTP(w, r)
		case !g.origin(r, origin):
			refuse(w, *originRefusal())
		default:
			allowCORS(w, r, origin, next)
		}
	})
}

// forAPI guards the API: the gateway's own pages may use it, and pages of origins in the settings with a token.
func (g guard) forAPI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		origin := r.Header.Get("Origin")
		switch {
		case len(r.Header.Values("Origin")) > 1:
			refuse(w, *originRefusal())
		case origin == "" && isCrossSite(r) && r.Header.Get("Authorization") == "":
			refuse(w, refusal{status: http.StatusForbidden, detail: "pages of another origin cannot use the API"})
		case origin == "", sameOrigin(origin, r.Host):
			next.ServeHTTP(w, r)
		case !g.listed(origin):
			refuse(w, *originRefusal())
		default:
			allowCORS(w, r, origin, next)
		}
	})
}

// forPages guards the gateway's own pages: other origins cannot post to, embed or read them.
func (g guard) forPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCrossOriginChange(r) || isForeignOrigin(r) {
			refuse(w, *originRefusal())
			return
		}
		header := w.Header()
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		next.ServeHTTP(w, r)
	})
}

// isCrossOriginChange reports whether a page of another origin makes a request that may change something.
func isCrossOriginChange(r *http.Request) bool {
	return http.NewCrossOriginProtection().Check(r) != nil
}

// isForeignOrigin reports whether an Origin is neither the gateway's own nor null, which forms of pages without a referrer have.
func isForeignOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) > 1 || len(origins) == 1 && origins[0] != "null" && !sameOrigin(origins[0], r.Host)
}

func originRefusal() *refusal {
	return &refusal{status: http.StatusForbidden, detail: "this origin is not allowed", hint: "http.origins can allow it"}
}

// allowCORS allows CORS requests of an origin, without cookies, and answers preflight requests.
func allowCORS(w http.ResponseWriter, r *http.Request, origin string, next http.Handler) {
	header := w.Header()
	header.Del("Cross-Origin-Resource-Policy")
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy")
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	next.ServeHTTP(w, r)
}

// isCrossSite reports whether a browser marks a request as from another origin, which may be another local port.
func isCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// isForeign reports whether a request is from a page of another origin.
func isForeign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return isCrossSite(r) || origin != "" && !sameOrigin(origin, r.Host)
}

// host reports whether a Host is a name of this server. IP addresses are always allowed:
// DNS rebinding needs a name.
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

// origin reports whether pages of an origin may speak MCP: loopback ones, and those of the settings.
func (g guard) origin(r *http.Request, origin string) bool {
	if len(r.Header.Values("Origin")) > 1 {
		return false
	}
	if g.listed(origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" {
		return false
	}
	return weburl.IsLoopback(u.Hostname())
}

// listed reports whether an origin is one of the settings.
func (g guard) listed(origin string) bool {
	return slices.ContainsFunc(g.origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origin) })
}

// sameOrigin reports whether an Origin is that of the requested host.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && strings.EqualFold(u.Host, host)
}
