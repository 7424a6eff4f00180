//go:build !linux && !darwin && !freebsd

package adminsock

import "net"

const supported = false

// peer is not supported.
func peer(*net.UnixConn) (int, error) { return -1, ErrUnsupported }

// short is not supported, as peer is not.
func short(string) (string, func(), error) { return "", nil, ErrUnsupported }
