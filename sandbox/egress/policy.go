// Package egress gives a sandbox a network of allowed hosts only. The sandbox has a TAP device; its packets end in a TCP/IP
// stack of this process, gVisor's own. Its main type is [Network].
//
// A name that is allowed gets a synthetic address, which is valid in that sandbox only. A connection is made to the host of that
// name, on an allowed port, after the real addresses have been checked; for TLS and HTTP the first bytes must name the same host.
// All else is refused at once: other names, addresses, ports, UDP but for the names, IPv6.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

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
	ReasonPrivate   = "it has an address of a private network or of this machine"
	ReasonMetadata  = "it has a link-local or metadata address"
	ReasonUnknown   = "its name was not resolved"
	ReasonFailed    = "it did not accept the connection"
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

var (
	carrierNAT = netip.MustParsePrefix("100.64.0.0/10")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	benchmark  = netip.MustParsePrefix("198.18.0.0/15")
	thisNet    = netip.MustParsePrefix("0.0.0.0/8")
	// metadata are addresses at which clouds serve credentials, besides the link-local ones.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}
)

// checkAddress returns the reason why a host must not be reached at an address, "" if it may.
func (r Rule) checkAddress(ip netip.Addr) string {
	ip = embedded(ip.Unmap().WithZone(""))
	switch {
	case ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || thisNet.Contains(ip) || slices.Contains(metadata, ip):
		return ReasonMetadata
	case (ip.IsPrivate() || ip.IsLoopback() || carrierNAT.Contains(ip) || benchmark.Contains(ip)) && !r.Private:
		return ReasonPrivate
	}
	return ""
}

// embedded returns the IPv4 address that an IPv6 address of a translation leads to, else the address itself.
func embedded(ip netip.Addr) netip.Addr {
	if !ip.Is6() {
		return ip
	}
	bytes := ip.As16()
	switch {
	case nat64.Contains(ip):
		return netip.AddrFrom4([4]byte(bytes[12:]))
	case sixToFour.Contains(ip):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	return ip
}

// Lookup resolves a name.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// errRefused is the error of a connection that must not be made; its text is the reason.
type errRefused string

func (e errRefused) Error() string { return string(e) }

// dial connects to the host of a rule, at the first of its allowed addresses that accepts. The address that was checked is the one that is dialled.
func (r Rule) dial(ctx context.Context, name string, lookup Lookup) (net.Conn, error) {
	all, err := lookup(ctx, name)
	if err != nil || len(all) == 0 {
		return nil, errRefused(ReasonUnknown)
	}
	last := error(errRefused(ReasonFailed))
	for _, ip := range all {
		if reason := r.checkAddress(ip); reason != "" {
			last = errRefused(reason)
			continue
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(ip.Unmap(), r.Port).String())
		if err == nil {
			return conn, nil
		}
		if last = errRefused(ReasonFailed); errors.Is(err, context.DeadlineExceeded) {
			return nil, last
		}
	}
	return nil, last
}
