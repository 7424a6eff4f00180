//go:build linux

package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = tcpip.NICID(1)
	// mtu of the device on both sides. Packets do not leave this machine, and large ones cost less.
	mtu = 65000
	// maxPending bounds the connections that are being made.
	maxPending = 64
	dnsPort    = 53
)

// guest is the sandbox's own address, in the same network as the gateway's.
var guest = netip.AddrFrom4([4]byte{198, 18, 0, 2})

// prefixLength is that of the network of both. All other addresses are behind the gateway.
const prefixLength = 30

// Serve connects the network to a TAP device, which it closes with the network.
func (n *Network) Serve(device *os.File) error {
	if err := n.openEdges(); err != nil {
		return errors.Join(err, device.Close())
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	if err := n.attach(s, device); err != nil {
		return errors.Join(err, device.Close())
	}
	dns, err := gonet.DialUDP(s, &tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(Gateway.As4()), Port: dnsPort}, nil, ipv4.ProtocolNumber)
	if err != nil {
		s.Destroy()
		return errors.Join(fmt.Errorf("listen for names: %w", err), device.Close())
	}
	n.work.Go(func() { n.answerNames(dns) })
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end = func() {
		_ = dns.Close()
		s.RemoveNIC(nic)
		s.Destroy()
		_ = device.Close()
	}
	return nil
}

// attach makes the interface of the stack, which takes packets for all addresses.
func (n *Network) attach(s *stack.Stack, device *os.File) error {
	link, err := fdbased.New(&fdbased.Options{
		FDs: []int{int(device.Fd())}, MTU: mtu, EthernetHeader: true, Address: tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01"), RXChecksumOffload: true, ProcessorsPerChannel: 1,
	})
	if err != nil {
		return fmt.Errorf("open device: %w", err)
	}
	tcpForwarder := tcp.NewForwarder(s, 0, maxPending, n.accept)
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcpForwarder.HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, func(id stack.TransportEndpointID, _ *stack.PacketBuffer) bool {
		n.refuse(Refusal{Host: n.hostOf(addrOf(id.LocalAddress)), Port: id.LocalPort, Reason: ReasonUDP})
		return false // the sandbox is told that the port is unreachable
	})
	for _, step := range []func() tcpip.Error{
		func() tcpip.Error { return s.CreateNIC(nic, link) },
		func() tcpip.Error {
			at := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(Gateway.As4()), PrefixLen: prefixLength}
			return s.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: at}, stack.AddressProperties{})
		},
		func() tcpip.Error { return s.SetPromiscuousMode(nic, true) },
		func() tcpip.Error { return s.SetSpoofing(nic, true) },
	} {
		if err := step(); err != nil {
			s.Destroy()
			return fmt.Errorf("set up network: %s", err)
		}
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return nil
}

func addrOf(a tcpip.Address) netip.Addr {
	at, _ := netip.AddrFromSlice(a.AsSlice())
	return at
}

// hostOf returns the name of an address, or the address.
func (n *Network) hostOf(at netip.Addr) string {
	if name, ok := n.names.name(at); ok {
		return name
	}
	return at.String()
}

// answerNames answers the queries of the sandbox, one after the other.
func (n *Network) answerNames(conn *gonet.UDPConn) {
	buf := make([]byte, 4096)
	for {
		size, from, err := conn.ReadFrom(buf)
		if n.ctx.Err() != nil {
			return
		}
		if err != nil {
			continue
		}
		if reply := answer(buf[:size], n.allowed, n.names, n.refuse); reply != nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

// accept decides about one connection of the sandbox, in a goroutine of its own. One that is refused gets a reset.
func (n *Network) accept(r *tcp.ForwarderRequest) {
	id := r.ID()
	at, port := addrOf(id.LocalAddress), id.LocalPort
	host, release, rule, refusal := n.admit(at, port)
	if refusal != nil {
		n.refuse(*refusal)
		r.Complete(true)
		return
	}
	defer release()
	if !n.begin() {
		r.Complete(true)
		return
	}
	defer n.work.Done()
	if at := n.edges[place(host, port)]; at != nil {
		if client, ok := endpoint(r); ok {
			at.Serve(client)
		}
		return
	}
	conn, err := n.dial(n.ctx, rule, host)
	if err != nil {
		r.Complete(true)
		return
	}
	if client, ok := endpoint(r); ok {
		n.relay(client, conn, host, port)
	} else {
		_ = conn.Close()
	}
}

// endpoint completes the connection of the sandbox.
func endpoint(r *tcp.ForwarderRequest) (net.Conn, bool) {
	var queue waiter.Queue
	made, err := r.CreateEndpoint(&queue)
	r.Complete(err != nil)
	if err != nil {
		return nil, false
	}
	return gonet.NewTCPConn(&queue, made), true
}

// admit returns the rule for a synthetic address. release must be called at the end of the connection.
func (n *Network) admit(at netip.Addr, port uint16) (name string, release func(), rule Rule, refusal *Refusal) {
	name, known := n.names.name(at)
	if !known {
		return "", nil, rule, &Refusal{Host: at.String(), Port: port, Reason: ReasonAddress}
	}
	rule, ok := n.allowed.find(name, port)
	if !ok {
		return "", nil, rule, &Refusal{Host: name, Port: port, Reason: ReasonPort, Allow: place(name, port)}
	}
	select {
	case n.slots <- struct{}{}:
	default:
		return "", nil, rule, &Refusal{Host: name, Port: port, Reason: ReasonTooMany}
	}
	return name, func() { <-n.slots }, rule, nil
}

// relay passes data on in both directions, until both sides have ended. The first message of the sandbox must name the host.
func (n *Network) relay(client, host net.Conn, name string, port uint16) {
	shut := func() { _, _ = client.Close(), host.Close() }
	defer shut()
	defer context.AfterFunc(n.ctx, shut)()
	down := make(chan struct{})
	start := func() {
		go func() {
			defer close(down)
			_, _ = io.Copy(client, host)
			closeWrite(client)
		}()
	}
	if port != httpsPort { // the server may speak first
		start()
	}
	if port == httpsPort {
		_ = client.SetReadDeadline(time.Now().Add(helloTimeout))
	}
	first, reason := inspect(client, name, port)
	_ = client.SetReadDeadline(time.Time{})
	if reason != "" {
		n.refuse(Refusal{Host: name, Port: port, Reason: reason})
		shut()
		if port != httpsPort {
			<-down
		}
		return
	}
	if port == httpsPort {
		start()
	}
	if _, err := host.Write(first); err == nil {
		_, _ = io.Copy(host, client)
	}
	closeWrite(host)
	<-down
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
