//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// serviceInodes is the maximum number of files and folders in the /tmp of a service that sets Space.
const serviceInodes = 500_000

// serviceSocket is the name of a service's socket in bridgeDir.
const serviceSocket = "service.sock"

// Listener accepts the connections of a service with Service.Socket; it is nil for
// others. It closes with the service.
func (s *Server) Listener() net.Listener {
	if s.listener == nil {
		return nil
	}
	return s.listener
}

// listen makes the socket of a service in a separate folder, and returns the mount of that folder.
func (s *Server) listen() (specs.Mount, error) {
	dir := filepath.Join(s.dir, "sockets")
	path := filepath.Join(dir, serviceSocket)
	err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755))
	if err == nil {
		s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err == nil {
		err = os.Chmod(path, 0o666) // its user is nobody; the directory above is closed to others
	}
	if err != nil {
		return specs.Mount{}, fmt.Errorf("make socket: %w", err)
	}
	return bind(bridgeDir, dir), nil
}

// tmpBytes returns the size of a service's /tmp in bytes.
func (service Service) tmpBytes() int64 {
	if service.Space == 0 {
		return tmpSize
	}
	return service.Space
}

// resizeTmp replaces /tmp in mounts if the service sets Space.
func (service Service) resizeTmp(mounts []specs.Mount) []specs.Mount {
	if service.Space == 0 {
		return mounts
	}
	for i, mount := range mounts {
		if mount.Destination == "/tmp" {
			mounts[i] = tmpfs("/tmp", service.Space, serviceInodes, "1777")
		}
	}
	return mounts
}

// GuestInterpreter returns the path inside a sandbox of the host's interpreter, "" if there is none.
func (h *Host) GuestInterpreter(kind Interpreter) string { return h.defaultInterpreter(kind).inside }

// HostInterpreter returns the path of the same interpreter on the host, "" if there is none.
func (h *Host) HostInterpreter(kind Interpreter) string { return h.defaultInterpreter(kind).path }

// defaultInterpreter returns an interpreter of the default environment.
func (h *Host) defaultInterpreter(kind Interpreter) interpreter {
	root, err := h.rootOf("")
	if err != nil {
		return interpreter{}
	}
	return root.programs[kind]
}
