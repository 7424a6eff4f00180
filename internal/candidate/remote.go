package candidate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
)

// maxText bounds a text that becomes part of a command line, a URL or a header.
const maxText = 4096

// checkText checks a text that becomes part of a command line, a URL or a header: it has no characters that are not shown.
func checkText(text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("it has a value of more than %d bytes", maxText)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, sanitize.Hidden):
		return errors.New("it has a value with characters that are not shown")
	}
	return nil
}

// withRemote returns the candidate that connects to a remote server.
func (c Candidate) withRemote(r registry.Remote) (Candidate, error) {
	switch {
	case r.Type != "streamable-http" && r.Type != "sse":
		return c, fmt.Errorf("the transport %.20q is unknown", r.Type)
	case len(r.Headers) > maxInputs || len(r.Variables) > maxInputs:
		return c, fmt.Errorf("it has more than %d headers or variables", maxInputs)
	}
	if err := checkText(r.URL); err != nil {
		return c, err
	}
	if _, err := parseURL(inBraces.ReplaceAllString(r.URL, "x"), true); err != nil {
		return c, err
	}
	var err error
	c.url, err = c.fill(r.URL, func(name string) (registry.Input, bool) {
		in, ok := r.Variables[name]
		return in, ok
	})
	if err != nil {
		return c, err
	}
	for _, h := range r.Headers {
		if err := c.addHeader(h); err != nil {
			return c, err
		}
	}
	c.sse = r.Type == "sse"
	return c, nil
}

var (
	headerForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,99}$`)
	reservedHeaders = regexp.MustCompile(`(?i)^(host|connection|content-.*|transfer-encoding|upgrade|te|trailer|proxy-.*|cookie|accept|mcp-.*|traceparent|tracestate|x-forwarded-.*|forwarded)$`)
)

func (c *Candidate) addHeader(h registry.KeyValue) error {
	if !headerForm.MatchString(h.Name) || reservedHeaders.MatchString(h.Name) {
		return fmt.Errorf("it sets the header %.40q, which a server cannot ask for", h.Name)
	}
	parts, err := c.template(h.Name, h.Template, false)
	if err == nil {
		c.headers = append(c.headers, pair{h.Name, parts})
	}
	return err
}

// parseURL checks the URL of a server. One that a registry names must be of a public host, over TLS; a person may also name one of
// this machine, without TLS.
func parseURL(text string, public bool) (*url.URL, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Hostname() == "" || parsed.Opaque != "":
		return nil, fmt.Errorf("%.80q is not the URL of a server", text)
	case parsed.User != nil:
		return nil, errors.New("its URL has a user in it")
	case parsed.Scheme != "https" && (public || parsed.Scheme != "http" || !isLocal(parsed.Hostname())):
		return nil, fmt.Errorf("its URL %.80q is not an https URL", text)
	case public && isLocal(parsed.Hostname()):
		return nil, fmt.Errorf("its URL %.80q is one of this machine or of a private network; if it is right, add it yourself: sallyport add URL", text)
	}
	return parsed, nil
}

// isLocal reports whether a host is this machine, or an address that is not public.
func isLocal(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return !addr.IsGlobalUnicast() || addr.IsPrivate()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, end := range []string{"localhost", "local", "internal", "lan", "home.arpa"} {
		if host == end || strings.HasSuffix(host, "."+end) {
			return true
		}
	}
	return net.ParseIP(host) != nil || !strings.Contains(host, ".") || isNumber(host[strings.LastIndexByte(host, '.')+1:])
}

// isNumber reports whether a label has digits only, or is hexadecimal: resolvers read such hosts as addresses.
func isNumber(label string) bool {
	return label != "" && strings.Trim(label, "0123456789") == "" || strings.HasPrefix(label, "0x")
}
