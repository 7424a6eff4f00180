package edge

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
)

// check returns the reason why a request is refused, "" if it may be sent.
func (e *Edge) check(r *http.Request) string {
	switch {
	case r.Method == http.MethodTrace || r.Method == http.MethodConnect || strings.EqualFold(r.Method, "TRACK"):
		return ReasonMethod
	case r.URL.Host != "" || r.URL.Scheme != "" || r.URL.Opaque != "" || !e.named(r.Host):
		return ReasonHost
	}
	return ""
}

// named reports whether the host of a request, with an optional port, is the host of the edge.
func (e *Edge) named(host string) bool {
	if bare, port, err := net.SplitHostPort(host); err == nil {
		if host = bare; port != strconv.Itoa(int(e.opts.Port)) {
			return false
		}
	} else if e.opts.Port != 443 && strings.Contains(host, ":") {
		return false
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), e.opts.Name)
}

// rewrite directs a request to the host and sets the fields. Fields for one connection only have been removed.
func (e *Edge) rewrite(r *httputil.ProxyRequest) {
	out := r.Out
	out.URL.Scheme, out.URL.Host, out.Host = "https", e.opts.Name+":"+strconv.Itoa(int(e.opts.Port)), e.authority
	out.URL.RawQuery = r.In.URL.RawQuery
	out.Trailer = nil
	if !strings.EqualFold(out.Header.Get("Upgrade"), "websocket") { // other protocols could carry requests without the fields, or to others
		out.Header.Del("Upgrade")
		out.Header.Del("Connection")
	}
	for name, value := range e.opts.Header {
		out.Header.Set(name, value) // names that were read have one form only
	}
}

// fail answers a request that could not be sent.
func (e *Edge) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody waits for the answer
	}
	refused, ok := errors.AsType[dialError](err)
	reason := cmp.Or(hostReason(err), ReasonFailed) // the error may have addresses, which are not for the sandbox
	if ok {
		reason = refused.Error()
	} else {
		e.opts.Refused(reason)
	}
	http.Error(w, "sallyport: "+reason, http.StatusBadGateway)
}

// hidden replaces a value that a host sends back.
const hidden = "[secret]"

// minSecret is the length of the shortest part of a value that is hidden alone.
const minSecret = 8

// echoes returns a replacer of the values, and of what follows the scheme in them: the token of "Bearer TOKEN".
func echoes(header map[string]string) *strings.Replacer {
	var pairs []string
	for _, value := range header {
		_, rest, _ := strings.Cut(value, " ")
		for _, text := range []string{value, strings.TrimSpace(rest)} {
			if len(text) >= minSecret {
				pairs = append(pairs, text, hidden)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// hideEchoes hides the values in the header of an answer. Its body is passed on as it is.
func (e *Edge) hideEchoes(answer *http.Response) error {
	for _, values := range answer.Header {
		for i := range values {
			values[i] = e.hide.Replace(values[i])
		}
	}
	return nil
}
