// Package netcluster is a network of hosts on one machine: each host is a network namespace with one link to a switch.
// Links can be cut and slowed down. It needs root on Linux, and no programs. Nothing of it has a name outside of the
// process, so it ends with the processes that use it.
package netcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Network is a switch with hosts. The switch is itself in a namespace, with an address that all hosts reach.
type Network struct {
	hub   *namespace
	hosts []*Host
}

// Host is a namespace with one link to the switch.
type Host struct {
	// Name identifies the host.
	Name string

	address   string
	port      string // the switch's end of its link
	namespace *namespace
	network   *Network
}

const (
	bridge = "switch"
	// inside is the name of a host's only interface, except for loopback.
	inside = "eth0"
	// HubAddress is the address of the switch.
	HubAddress = "10.77.0.1"
)

// New makes a network without hosts. [errors.ErrUnsupported] matches the error where there are no namespaces for this user.
func New() (*Network, error) {
	hub, err := newNamespace()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	err = hub.do(func() error {
		if err := addBridge(bridge); err != nil {
			return fmt.Errorf("%w: add a bridge: %w", errors.ErrUnsupported, err)
		}
		return errors.Join(addAddress(bridge, net.ParseIP(HubAddress)), setUp(bridge, true))
	})
	if err != nil {
		return nil, errors.Join(err, hub.close())
	}
	return &Network{hub: hub}, nil
}

// Add adds a host.
func (n *Network) Add(name string) (*Host, error) {
	own, err := newNamespace()
	if err != nil {
		return nil, err
	}
	number := len(n.hosts) + 1
	h := &Host{Name: name, address: fmt.Sprintf("10.77.0.%d", 10+number), port: fmt.Sprintf("port%d", number), namespace: own, network: n}
	n.hosts = append(n.hosts, h)
	if err := n.hub.do(func() error { return addVeth(h.port, bridge, inside, own.file) }); err != nil {
		return nil, fmt.Errorf("link %s to the switch: %w", name, err)
	}
	err = own.do(func() error {
		return errors.Join(addAddress(inside, net.ParseIP(h.address)), setUp(inside, true))
	})
	return h, errors.Join(err, h.Mend())
}

// Listen listens at the switch.
func (n *Network) Listen(ctx context.Context, port int) (listener net.Listener, err error) {
	err = n.hub.do(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", HubAddress, port))
		return err
	})
	return listener, err
}

// Dial connects to a host from the switch. The address has no name.
func (n *Network) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.hub.do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// IP returns the address of the host.
func (h *Host) IP() string { return h.address }

// Start starts a process on the host.
func (h *Host) Start(cmd *exec.Cmd) error { return h.namespace.do(cmd.Start) }

// Dial connects to a host from the switch, as [Network.Dial].
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return h.network.Dial(ctx, network, address)
}

// Cut cuts the link of the host: packets in both directions are lost.
func (h *Host) Cut() error {
	return h.network.hub.do(func() error { return setUp(h.port, false) })
}

// Slow bounds the link to a number of bytes per second in each direction. Packets wait, and are lost when too many wait.
func (h *Host) Slow(rate int) error {
	return h.bothEnds(func(name string) error { return limit(name, uint32(rate)) }) //nolint:gosec // a rate of a test
}

// Mend makes the link fast and whole.
func (h *Host) Mend() error {
	return errors.Join(h.bothEnds(unlimit), h.network.hub.do(func() error { return setUp(h.port, true) }))
}

func (h *Host) bothEnds(do func(name string) error) error {
	return errors.Join(h.network.hub.do(func() error { return do(h.port) }), h.namespace.do(func() error { return do(inside) }))
}

// Processes returns the folders in /proc of the processes that are in the network, except for those of this process.
func (n *Network) Processes() (found []string) {
	links := map[string]bool{n.hub.link: true}
	for _, h := range n.hosts {
		links[h.namespace.link] = true
	}
	self := fmt.Sprintf("/proc/%d/", os.Getpid())
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/net") // the pattern is valid
	for _, path := range paths {
		if link, err := os.Readlink(path); err == nil && links[link] && !strings.HasPrefix(path, self) {
			found = append(found, strings.TrimSuffix(path, "/ns/net"))
		}
	}
	return found
}

// Close ends the network.
func (n *Network) Close() error {
	err := n.hub.close()
	for _, h := range n.hosts {
		err = errors.Join(err, h.namespace.close())
	}
	return err
}
