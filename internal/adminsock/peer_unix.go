//go:build linux || darwin || freebsd

package adminsock

import "net"

const supported = true

// peer returns the user who connected.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	user, failed := -1, error(nil)
	if err := raw.Control(func(fd uintptr) { user, failed = userOf(int(fd)) }); err != nil {
		return -1, err
	}
	return user, failed
}
