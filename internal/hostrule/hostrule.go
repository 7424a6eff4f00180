// Package hostrule checks the hosts that an isolated program may reach, as the settings name them, and the header fields that
// its requests to them get. The functions return what is wrong, "" for nothing.
package hostrule

import (
	"fmt"
	"net"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// form matches a host with an optional port. A name has a letter in its last part, so no address matches.
var form = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?(:[0-9]{1,5})?$`)

// Host checks a host: NAME, NAME:PORT, *.NAME or *.NAME:PORT.
func Host(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, "443"
	}
	switch n, err := strconv.Atoi(port); {
	case net.ParseIP(strings.Trim(name, "[]")) != nil:
		return fmt.Sprintf("%.80q is an address; hosts are allowed by name", host)
	case strings.Contains(host, "://"):
		return fmt.Sprintf("%.80q is a URL; write the host alone, as in api.example.com", host)
	case !form.MatchString(host) || len(name) > 253:
		return fmt.Sprintf(`%.80q is not a host: write small letters, as in api.example.com, api.example.com:8443 or *.example.com`, host)
	case err != nil || n < 1 || n > 65535:
		return fmt.Sprintf("%.80q has no port from 1 to 65535", host)
	}
	return ""
}

// One checks a host with header fields for its requests, among all hosts. A wildcard would give the values to each host below a name,
// also to one of another owner.
func One(host string, all []string) string {
	const https = ":443"
	same := func(other string) bool { return strings.TrimSuffix(other, https) == strings.TrimSuffix(host, https) }
	first := slices.IndexFunc(all, same)
	switch {
	case strings.HasPrefix(host, "*"):
		return fmt.Sprintf("%.80q has a header, so it must be one host: write its whole name", host)
	case first >= 0 && slices.ContainsFunc(all[first+1:], same):
		return fmt.Sprintf("%.80q has a header and is allowed twice; keep one of them", host)
	}
	return ""
}

// perConnection are fields about the connection or the framing of a request.
var perConnection = []string{
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Field checks a header field that requests get. Its name has the form of one, and its value no control character.
func Field(name, value string) string {
	switch {
	case slices.Contains(perConnection, textproto.CanonicalMIMEHeaderKey(name)):
		return fmt.Sprintf("the header %.40q belongs to the connection and cannot be set", name)
	case strings.Trim(value, " \t") == "":
		return fmt.Sprintf("the header %.40q is empty", name)
	}
	return ""
}
