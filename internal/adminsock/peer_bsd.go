//go:build darwin || freebsd

package adminsock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// userOf returns the user at the other end of a socket.
func userOf(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, 0, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// short returns an error if a path is too long for a socket's address.
func short(path string) (near string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("the path %s is too long for a socket (%d bytes at most); --data can be another directory", path, maxPath)
	}
	return path, func() {}, nil
}
