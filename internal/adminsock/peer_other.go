//go:build !linux && !darwin && !freebsd

package adminsock

import "net"

const supported = false

// peer cannot tell.
func peer(*net.UnixConn) (int, error) { return -1, ErrUnsupported }

// short refuses: who would connect could not be told.
func short(string) (string, func(), error) { return "", nil, ErrUnsupported }
