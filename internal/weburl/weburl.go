// Package weburl judges the URLs that credentials are sent to.
package weburl

import (
	"net/netip"
	"net/url"
	"strings"
)

// IsSecure reports whether text is an https:// URL, or an http:// URL of this machine, without a user and a fragment.
func IsSecure(text string) bool { return is(text, true) }

// IsHTTPS reports whether text is an https:// URL without a user and a fragment.
func IsHTTPS(text string) bool { return is(text, false) }

func is(text string, loopback bool) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || loopback && u.Scheme == "http" && IsLoopback(u.Hostname())
}

// IsOrigin reports whether text is an Origin that a browser may send, other than "null".
func IsOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host != "" && !strings.Contains(u.Host, "*") && u.Scheme+"://"+u.Host == strings.ToLower(text)
}

// IsLoopback reports whether a host is this machine: localhost, or a loopback address.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
