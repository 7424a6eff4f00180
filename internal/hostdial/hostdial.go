// Package hostdial connects to hosts that settings name, at addresses that they may have: a name must not lead to the metadata of
// a cloud, and to a private network or to this machine only if the settings say so. Its main type is [Host].
package hostdial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// A Refusal is the error of a connection that was not made. Its text is the reason.
type Refusal string

// Error returns the reason.
func (r Refusal) Error() string { return string(r) }

// The reasons why a connection was not made.
const (
	Private  Refusal = "it has an address of a private network or of this machine"
	Metadata Refusal = "it has a link-local or metadata address"
	Unknown  Refusal = "its name was not resolved"
	Failed   Refusal = "it did not accept the connection"
)

// Lookup resolves a name.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// Resolve is the [Lookup] of this machine. It does not complete a name with a dot by the domains that the machine searches.
func Resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if strings.Contains(name, ".") {
		name += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

var (
	carrierNAT = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
	nat64      = netip.MustParsePrefix("64:ff9b::/96")  // RFC 6052
	sixToFour  = netip.MustParsePrefix("2002::/16")     // RFC 3056
	benchmark  = netip.MustParsePrefix("198.18.0.0/15") // RFC 2544
	thisNet    = netip.MustParsePrefix("0.0.0.0/8")     // RFC 1122
	// metadata are addresses at which clouds serve credentials, besides the link-local ones.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}
)

// Check returns a [Refusal] for an address that a host must not have, else nil.
func Check(ip netip.Addr, private bool) error {
	ip = embedded(ip.Unmap().WithZone(""))
	switch {
	case ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || thisNet.Contains(ip) || slices.Contains(metadata, ip):
		return Metadata
	case (ip.IsPrivate() || ip.IsLoopback() || carrierNAT.Contains(ip) || benchmark.Contains(ip)) && !private:
		return Private
	}
	return nil
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

// Host is a host to connect to.
type Host struct {
	Name string
	Port uint16
	// Private allows addresses of private networks and of this machine.
	Private bool
}

// Dial connects to the host at the first of its allowed addresses that accepts. The address that was checked is the one that is
// dialed. The error is a [Refusal].
func (h Host) Dial(ctx context.Context, lookup Lookup) (net.Conn, error) {
	all, err := lookup(ctx, h.Name)
	if err != nil || len(all) == 0 {
		return nil, Unknown
	}
	last := error(Failed)
	for _, ip := range all {
		if err := Check(ip, h.Private); err != nil {
			last = err
			continue
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(ip.Unmap(), h.Port).String())
		if err == nil {
			return conn, nil
		}
		if last = Failed; errors.Is(err, context.DeadlineExceeded) {
			return nil, last
		}
	}
	return nil, last
}
