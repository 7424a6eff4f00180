//go:build linux

package egress

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childName is the name of the process that makes the device, as its own argument 0.
const childName = "sallyport-network"

// deviceName is the name of the interface in the sandbox.
const deviceName = "tap0"

// socketFD is the descriptor at which the child has its socket.
const socketFD = 3

// Available returns an error if this machine has no TAP devices for this process.
func Available() error {
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("hosts need TAP devices: %w", err)
	}
	return file.Close()
}

// Wrap changes a command that is not started yet: its program begins in a network namespace of its own, with a TAP device, of which Start
// serves the other end. The program must be one that takes over the device, such as runsc with the network namespace /proc/self/ns/net.
func (n *Network) Wrap(cmd *exec.Cmd) error {
	if !childCalled.Load() || len(cmd.ExtraFiles) > 0 {
		return errors.New("wrap command: main does not begin with Child, or the command has files of its own")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	n.ours, n.theirs = os.NewFile(uintptr(pair[0]), "network"), os.NewFile(uintptr(pair[1]), "network")
	cmd.Args = append([]string{childName, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = []*os.File{n.theirs}
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	return nil
}

// Start waits for the device of the wrapped command, which has been started, and serves it.
func (n *Network) Start() error {
	_ = n.theirs.Close()
	defer func() { _ = n.ours.Close() }()
	device, err := receive(n.ours)
	if err != nil {
		return err
	}
	return n.Serve(device)
}

// receive receives a descriptor, or the text of an error.
func receive(from *os.File) (*os.File, error) {
	conn, err := net.FileConn(from)
	if err != nil {
		return nil, fmt.Errorf("receive device: %w", err)
	}
	defer func() { _ = conn.Close() }()
	text, oob := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(text, oob)
	if err != nil || n == 0 {
		return nil, errors.Join(errors.New("receive device: the process that makes it has ended"), err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("make network: %s", text[:n])
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("receive device: not one descriptor"), err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), deviceName), nil
}

// childCalled is set by Child. In a program whose main does not call it, a wrapped command would be main again.
var childCalled atomic.Bool

// Child is called first in main. In the process that [Wrap] starts, it makes the device, sends it to the parent, and becomes
// the wrapped program; it does not return then.
func Child() {
	childCalled.Store(true)
	if len(os.Args) < 3 || os.Args[0] != childName {
		return
	}
	err := becomeProgram(os.Args[1], os.Args[2:])
	_ = unix.Sendmsg(socketFD, []byte(err.Error()), nil, nil, 0)
	os.Exit(1) //nolint:forbidigo // it is main of the process that Wrap starts
}

func becomeProgram(path string, args []string) error {
	device, err := makeDevice()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socketFD, []byte{1}, unix.UnixRights(device), nil, 0); err != nil {
		return fmt.Errorf("send device: %w", err)
	}
	_ = unix.Close(device)
	_ = unix.Close(socketFD)
	return fmt.Errorf("start %s: %w", path, unix.Exec(path, args, os.Environ()))
}

// makeDevice makes and configures the interfaces of this network namespace.
func makeDevice() (int, error) {
	device, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	tap, err := unix.NewIfreq(deviceName)
	if err != nil {
		return 0, err
	}
	tap.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(device, unix.TUNSETIFF, tap); err != nil {
		return 0, fmt.Errorf("make device: %w", err)
	}
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(control) }()
	return device, errors.Join(setUp(control, "lo", nil), setUp(control, deviceName, configure), addRoute(control))
}

// setUp configures an interface and sets it up.
func setUp(control int, name string, configure func(control int, name string) error) error {
	if configure != nil {
		if err := configure(control, name); err != nil {
			return err
		}
	}
	flags, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	flags.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(control, unix.SIOCSIFFLAGS, flags); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// configure sets size and address of the device.
func configure(control int, name string) error {
	mask := net.CIDRMask(prefixLength, 32)
	address := guest.As4()
	for _, set := range []struct {
		request uint
		fill    func(*unix.Ifreq) error
	}{
		{unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(mtu); return nil }},
		{unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(address[:]) }},
		{unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) }},
	} {
		request, err := unix.NewIfreq(name)
		if err == nil {
			err = set.fill(request)
		}
		if err == nil {
			err = unix.IoctlIfreq(control, set.request, request)
		}
		if err != nil {
			return fmt.Errorf("configure %s: %w", name, err)
		}
	}
	return nil
}

// route is the kernel's struct rtentry.
type route struct {
	_                    uint64
	to, gateway, netmask unix.RawSockaddrInet4
	flags                uint16
	_                    int16
	_, _                 uint64
	metric               int16
	device               *byte
	mtu, window          uint64
	irtt                 uint16
}

// addRoute makes the gateway the default route.
func addRoute(control int) error {
	any4 := unix.RawSockaddrInet4{Family: unix.AF_INET}
	r := route{to: any4, netmask: any4, gateway: any4, flags: unix.RTF_UP | unix.RTF_GATEWAY}
	r.gateway.Addr = Gateway.As4()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(control), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return fmt.Errorf("add route: %w", errno)
	}
	return nil
}
