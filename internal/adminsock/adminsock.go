// Package adminsock provides the control socket of a running gateway: a Unix socket in its data directory that accepts
// only connections of the same user. Its main type is [Listener]; several processes may each have one.
package adminsock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Folder is the folder of the sockets in the data directory.
const Folder = "control"

// ErrUnsupported reports that this system cannot identify the user of a connection.
var ErrUnsupported = errors.New("control sockets are not supported on this system")

const ending = ".sock"

// Options configure a listener; nil means all defaults.
type Options struct {
	// Logger gets refused connections; nil discards.
	Logger *slog.Logger
}

// Listener accepts connections of the process's own user. It is a [net.Listener], safe for concurrent use.
type Listener struct {
	*net.UnixListener
	path string
	log  *slog.Logger
	// removeSocket removes the socket, once.
	removeSocket func() error
}

// Listen creates a socket in a data directory, which need not exist. Close removes it; [Sockets] and Listen remove those
// of killed processes. A path that is too long for a socket is an error, except on Linux, where there is no limit.
func Listen(data string, opts *Options) (*Listener, error) {
	if opts == nil || opts.Logger == nil {
		opts = &Options{Logger: slog.New(slog.DiscardHandler)}
	}
	if !supported {
		return nil, ErrUnsupported
	}
	dir, err := makeFolder(data)
	if err != nil {
		return nil, fmt.Errorf("make control folder: %w", err)
	}
	sweep(dir)
	path := filepath.Join(dir, strings.ToLower(rand.Text()[:12])+ending)
	inner, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	return &Listener{UnixListener: inner, path: path, log: opts.Logger, removeSocket: sync.OnceValue(func() error { return os.Remove(path) })}, nil
}

// makeFolder creates the folder of the sockets, which only its owner can access.
func makeFolder(data string) (string, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(data, Folder)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, checkPrivate(dir)
}

// checkPrivate returns an error if other users can access a folder.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ours(info) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s must be a folder that belongs to this user and that nobody else can read", dir)
	}
	return nil
}

// listen creates the socket under a temporary name and renames it, so that it is never visible before it is listening.
func listen(path string) (*net.UnixListener, error) {
	half := path + ".new"
	near, done, err := short(half)
	if err != nil {
		return nil, err
	}
	defer done()
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: near, Net: "unix"})
	if err != nil {
		return nil, err
	}
	inner.SetUnlinkOnClose(false)
	err = os.Chmod(half, 0o600)
	if err == nil {
		err = os.Rename(half, path)
	}
	if err != nil {
		return nil, errors.Join(err, inner.Close(), os.Remove(half))
	}
	return inner, nil
}

// Accept returns the next connection of the process's own user. It closes others.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peer(conn)
		if err == nil && uid == os.Geteuid() {
			return conn, nil
		}
		l.log.Warn("control connection refused", "uid", uid, "error", err)
		_ = conn.Close()
	}
}

// Close ends listening and removes the socket.
func (l *Listener) Close() error {
	return errors.Join(l.removeSocket(), l.UnixListener.Close())
}

// Sockets returns the paths of the sockets in a data directory with a listener, sorted. It removes those that killed
// processes left behind.
func Sockets(data string) []string {
	dir := filepath.Join(data, Folder)
	if checkPrivate(dir) != nil {
		return nil
	}
	return sweep(dir)
}

// sweep returns the sockets with a listener, and removes all others.
func sweep(dir string) (alive []string) {
	entries, _ := os.ReadDir(dir) // sorted
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ending) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		conn, err := Dial(context.Background(), path)
		switch {
		case err == nil:
			_ = conn.Close()
			alive = append(alive, path)
		case refused(err):
			_ = os.Remove(path)
		}
	}
	return alive
}

// Dial connects to a socket that [Sockets] named.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	near, done, err := short(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", near)
}

// maxPath is the longest path of a socket that all systems accept, in bytes.
const maxPath = 100
