package netcluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// message is a message to the kernel's configuration of networks: rtnetlink(7). Its methods append to it.
type message struct{ data []byte }

// newMessage returns a message of a kind, with the header of that kind.
func newMessage(kind, flags uint16, header []byte) *message {
	m := &message{make([]byte, unix.SizeofNlMsghdr)}
	binary.NativeEndian.PutUint16(m.data[4:], kind)
	binary.NativeEndian.PutUint16(m.data[6:], flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m.data = append(m.data, header...)
	return m
}

// attribute appends an attribute, padded to four bytes.
func (m *message) attribute(kind uint16, value []byte) *message {
	m.data = binary.NativeEndian.AppendUint16(m.data, uint16(unix.SizeofRtAttr+len(value))) //nolint:gosec // values are short
	m.data = binary.NativeEndian.AppendUint16(m.data, kind)
	m.data = append(m.data, value...)
	for len(m.data)%unix.RTA_ALIGNTO != 0 {
		m.data = append(m.data, 0)
	}
	return m
}

func (m *message) text(kind uint16, value string) *message {
	return m.attribute(kind, append([]byte(value), 0))
}

func (m *message) number(kind uint16, value uint32) *message {
	return m.attribute(kind, binary.NativeEndian.AppendUint32(nil, value))
}

// nested appends an attribute that consists of attributes, after a header which may be empty.
func (m *message) nested(kind uint16, header []byte, fill func(inner *message)) *message {
	inner := &message{append([]byte(nil), header...)}
	fill(inner)
	return m.attribute(kind, inner.data)
}

// send sends the message to the network namespace of the calling thread, and returns the kernel's error.
func (m *message) send() (err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	binary.NativeEndian.PutUint32(m.data, uint32(len(m.data))) //nolint:gosec // messages are short
	if err := unix.Sendto(fd, m.data, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return os.NewSyscallError("recvfrom", err)
	}
	return acknowledged(answer[:n])
}

// acknowledged reads the kernel's answer.
func acknowledged(answer []byte) error {
	if len(answer) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("unexpected answer of netlink")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 { //nolint:gosec // a negative error number
		return unix.Errno(-code)
	}
	return nil
}

// linkHeader is struct ifinfomsg.
func linkHeader(index int, flags, change uint32) []byte {
	header := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(header[4:], uint32(index)) //nolint:gosec // indexes are small
	binary.NativeEndian.PutUint32(header[8:], flags)
	binary.NativeEndian.PutUint32(header[12:], change)
	return header
}

const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL

// addBridge adds a bridge to the namespace of the thread.
func addBridge(name string) error {
	return newMessage(unix.RTM_NEWLINK, create, linkHeader(0, 0, 0)).text(unix.IFLA_IFNAME, name).
		nested(unix.IFLA_LINKINFO, nil, func(m *message) { m.text(unix.IFLA_INFO_KIND, "bridge") }).send()
}

// vethInfoPeer is VETH_INFO_PEER of linux/veth.h.
const vethInfoPeer = 1

// addVeth adds a pair of interfaces: one at a bridge of the thread's namespace, and its peer in another namespace.
func addVeth(name, bridge, peer string, namespace *os.File) error {
	master, err := net.InterfaceByName(bridge)
	if err != nil {
		return err
	}
	return newMessage(unix.RTM_NEWLINK, create, linkHeader(0, 0, 0)).text(unix.IFLA_IFNAME, name).number(unix.IFLA_MASTER, uint32(master.Index)). //nolint:gosec // indexes are small
																			nested(unix.IFLA_LINKINFO, nil, func(m *message) {
			m.text(unix.IFLA_INFO_KIND, "veth").nested(unix.IFLA_INFO_DATA, nil, func(m *message) {
				m.nested(vethInfoPeer, linkHeader(0, 0, 0), func(m *message) {
					m.text(unix.IFLA_IFNAME, peer).number(unix.IFLA_NET_NS_FD, uint32(namespace.Fd())) //nolint:gosec // descriptors are small
				})
			})
		}).send()
}

// setUp takes an interface of the thread's namespace up or down.
func setUp(name string, up bool) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	var flags uint32
	if up {
		flags = unix.IFF_UP
	}
	return newMessage(unix.RTM_NEWLINK, 0, linkHeader(link.Index, flags, unix.IFF_UP)).send()
}

// addAddress gives an interface of the thread's namespace an address of a network with 24 bits.
func addAddress(name string, address net.IP) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	header := make([]byte, unix.SizeofIfAddrmsg)
	header[0], header[1] = unix.AF_INET, 24
	binary.NativeEndian.PutUint32(header[4:], uint32(link.Index)) //nolint:gosec // indexes are small
	return newMessage(unix.RTM_NEWADDR, create, header).attribute(unix.IFA_LOCAL, address.To4()).attribute(unix.IFA_ADDRESS, address.To4()).send()
}

// Attributes of the token bucket filter, of linux/pkt_sched.h.
const (
	tbfParameters = 1
	tbfBurst      = 6
	// ethernet is a value of the rate's second byte: the kernel computes times of packets itself.
	ethernet = 1
)

const (
	// burst is what a slow link sends at once, in bytes: one packet.
	burst = 2000
	// backlog is what it queues, in bytes. It drops the rest.
	backlog = 64_000
)

const (
	queueHeaderSize = 20 // of struct tcmsg
	rootQueue       = 0xffffffff
)

// queueHeader is struct tcmsg, for the root queue of an interface.
func queueHeader(name string) ([]byte, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	header := make([]byte, queueHeaderSize)
	binary.NativeEndian.PutUint32(header[4:], uint32(link.Index)) //nolint:gosec // indexes are small
	binary.NativeEndian.PutUint32(header[12:], rootQueue)
	return header, nil
}

// limit bounds what an interface of the thread's namespace sends, in bytes per second, with a token bucket filter.
func limit(name string, rate uint32) error {
	header, err := queueHeader(name)
	if err != nil {
		return err
	}
	options := make([]byte, 36) // struct tc_tbf_qopt: rate, peak rate, limit, buffer, mtu
	options[1] = ethernet
	binary.NativeEndian.PutUint32(options[8:], rate)
	binary.NativeEndian.PutUint32(options[24:], backlog)
	return newMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header).text(unix.TCA_KIND, "tbf").
		nested(unix.TCA_OPTIONS, nil, func(m *message) { m.attribute(tbfParameters, options).number(tbfBurst, burst) }).send()
}

// unlimit removes the bound. An interface without one is not an error.
func unlimit(name string) error {
	header, err := queueHeader(name)
	if err != nil {
		return err
	}
	if err := newMessage(unix.RTM_DELQDISC, 0, header).send(); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove the limit of %s: %w", name, err)
	}
	return nil
}
