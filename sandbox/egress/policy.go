// Package egress gives a sandbox a network of allowed hosts only. The sandbox has a TAP device; its packets end in a TCP/IP
// stack of this process, gVisor's own. Its main type is [Network].
//
// A name that is allowed gets a synthetic address, which is valid in that sandbox only. A connection is made to the host of that
// name, on an allowed port, after the real addresses have been checked; for TLS and HTTP the first bytes must name the same host.
// All else is refused at once: other names, addresses, ports, UDP but for the names, IPv6.
package egress

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/hostdial"
	"sallyport/sandbox/egress/edge"
)

// Rule allows one host on one port.
type Rule struct {
	// Name is in lower case, or *.NAME for all names below NAME.
	Name string
	Port uint16
	// Private allows addresses of private networks and of this machine.
	Private bool
	// Header has the fields that each request to it gets, in place of those that it has. The host is for HTTPS only then.
	Header map[string]string
}

// ParseRule parses a host of the settings: a name and a port, which is 443 by default.
func ParseRule(text string, private bool) (Rule, error) {
	name, port, ok := strings.Cut(strings.ToLower(text), ":")
	if !ok {
		port = "443"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || name == "" {
		return Rule{}, fmt.Errorf("parse host %.80q: it is not NAME or NAME:PORT", text)
	}
	return Rule{Name: name, Port: uint16(n), Private: private}, nil
}

// matches reports whether the rule is about a name.
func (r Rule) matches(name string) bool {
	if below, ok := strings.CutPrefix(r.Name, "*"); ok {
		return len(name) > len(below) && strings.HasSuffix(name, below)
	}
	return r.Name == name
}

// Refusal is one attempt that was refused.
type Refusal struct {
	// Host is a name, or an address if the sandbox used one; Port is 0 if only the name was asked for. Both come from the sandbox.
	Host string
	Port uint16
	// Reason says why. Allow is what the settings would need, as "api.example.com:8443"; "" if nothing allows it.
	Reason, Allow string
	// Private says that the host would have to be allowed with private addresses.
	Private bool
}

// Untrusted reports whether a program seems not to trust the certificate authority of its sandbox.
func (r Refusal) Untrusted() bool {
	return r.Reason == edge.ReasonSilent || strings.HasPrefix(r.Reason, edge.ReasonUntrusted)
}

// Reasons of refusals, besides those of package edge.
const (
	ReasonName      = "the host is not allowed"
	ReasonPort      = "the port is not allowed"
	ReasonAddress   = "only names are allowed, no addresses"
	ReasonPrivate   = string(hostdial.Private)
	ReasonMetadata  = string(hostdial.Metadata)
	ReasonUnknown   = string(hostdial.Unknown)
	ReasonFailed    = string(hostdial.Failed)
	ReasonUDP       = "UDP is not allowed"
	ReasonTLS       = "port 443 is for TLS only"
	ReasonSNI       = "the TLS handshake names another host"
	ReasonECH       = "the TLS handshake hides the name of the host"
	ReasonHost      = "the HTTP request names another host"
	ReasonH2C       = "HTTP/2 is allowed over TLS only"
	ReasonTooMany   = "too many connections are open"
	ReasonNameCount = "too many names were used"
)

// policy decides about names, ports and addresses.
type policy []Rule

// names reports whether any rule allows a name.
func (p policy) names(name string) bool {
	return slices.ContainsFunc(p, func(r Rule) bool { return r.matches(name) })
}

// find returns the rule for a name and a port. One with a header has precedence, then one for private addresses.
func (p policy) find(name string, port uint16) (found Rule, ok bool) {
	for _, r := range p {
		if r.matches(name) && r.Port == port && (!ok || len(r.Header) > 0 || r.Private && len(found.Header) == 0) {
			found, ok = r, true
		}
	}
	return found, ok
}

// Lookup resolves a name.
type Lookup = hostdial.Lookup

// dial connects to the host of a rule.
func (r Rule) dial(ctx context.Context, name string, lookup Lookup) (net.Conn, error) {
	return hostdial.Host{Name: name, Port: r.Port, Private: r.Private}.Dial(ctx, lookup)
}
