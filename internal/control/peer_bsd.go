//go:build darwin || freebsd

package control

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

const supported = true

// peer returns the user who connected.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Xucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptXucred(int(fd), 0, unix.LOCAL_PEERCRED) }); err != nil {
		return -1, err
	}
	if failed != nil {
		return -1, failed
	}
	return int(cred.Uid), nil
}

// short refuses a path that a socket's address has no room for.
func short(path string) (near string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("the path %s is too long for a socket (%d bytes at most); --data can be another directory", path, maxPath)
	}
	return path, func() {}, nil
}
