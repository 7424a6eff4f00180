package hostdial

import (
	"errors"
	"net/netip"
	"testing"
)

// TestAddresses checks which addresses a name may have.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]error{ // for an ordinary rule, and for one of private hosts
		"93.184.216.34": {}, "2606:2800::1": {}, "64:ff9b::5db8:d822": {},
		"10.0.0.1": {Private, nil}, "127.0.0.1": {Private, nil}, "::1": {Private, nil}, "fd12::1": {Private, nil}, "100.64.1.1": {Private, nil}, "198.18.0.1": {Private, nil},
		"::ffff:192.168.1.1": {Private, nil}, "64:ff9b::a00:1": {Private, nil}, "2002:7f00:1::1": {Private, nil},
		"169.254.169.254": {Metadata, Metadata}, "::ffff:169.254.169.254": {Metadata, Metadata}, "fe80::1%eth0": {Metadata, Metadata},
		"fd00:ec2::254": {Metadata, Metadata}, "100.100.100.200": {Metadata, Metadata}, "64:ff9b::a9fe:a9fe": {Metadata, Metadata},
		"0.0.0.0": {Metadata, Metadata}, "0.1.2.3": {Metadata, Metadata}, "224.0.0.1": {Metadata, Metadata}, "::": {Metadata, Metadata},
	} {
		for i, private := range []bool{false, true} {
			if got := Check(netip.MustParseAddr(text), private); !errors.Is(got, want[i]) {
				t.Errorf("%s, private %v: %v, want %v", text, private, got, want[i])
			}
		}
	}
}

// TestResolve resolves the name of this machine, which most name servers do not have.
func TestResolve(t *testing.T) {
	t.Parallel()
	all, err := Resolve(t.Context(), "localhost")
	if err != nil || len(all) == 0 || !all[0].Unmap().IsLoopback() {
		t.Errorf("localhost is %v, %v", all, err)
	}
}
