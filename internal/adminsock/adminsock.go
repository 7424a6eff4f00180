// Package adminsock is the side door of a gateway that runs, for anyone who owns its data directory: a Unix socket there
// that takes connections of the same user only. Its main type is [Listener]; several processes may each have one.
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

// Folder is where in the data directory the sockets are.
const Folder = "control"

// ErrUnsupported says that this system cannot tell who speaks through a socket.
var ErrUnsupported = errors.New("there are no control sockets on this system")

const ending = ".sock"

// Options configure a listener; nil means all defaults.
type Options struct {
	// Logger gets refused connections; nil discards.
	Logger *slog.Logger
}

// Listener takes connections of our own user. It is a [net.Listener], safe for concurrent use.
type Listener struct {
	*net.UnixListener
	path string
	log  *slog.Logger
	// gone removes the socket, once.
	gone func() error
}

// Listen makes a socket in a data directory, which need not be there. Close removes it; that of a process which was
// killed goes with the next [Dial] or Listen. A path that is too long for a socket is an error, on Linux there is none.
func Listen(data string, opts *Options) (*Listener, error) {
	if opts == nil || opts.Logger == nil {
		opts = &Options{Logger: slog.New(slog.DiscardHandler)}
	}
	if !supported {
		return nil, ErrUnsupported
	}
	dir, err := folder(data)
	if err != nil {
		return nil, fmt.Errorf("make control folder: %w", err)
	}
	sweep(dir)
	path := filepath.Join(dir, strings.ToLower(rand.Text()[:12])+ending)
	inner, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	return &Listener{UnixListener: inner, path: path, log: opts.Logger, gone: sync.OnceValue(func() error { return os.Remove(path) })}, nil
}

// folder makes the folder of the sockets, which no one else can look into.
func folder(data string) (string, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(data, Folder)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, checkPrivate(dir)
}

// checkPrivate refuses a folder that others can reach.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ours(info) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s must be a folder of this user's that nobody else can read", dir)
	}
	return nil
}

// listen makes a socket under another name first: anyone who finds it under its own finds it listening.
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

// Accept returns the next connection of our own user; others are closed.
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
	return errors.Join(l.gone(), l.UnixListener.Close())
}

// Sockets returns the paths of the sockets in a data directory that someone listens at, sorted. Those that
// processes have left behind are removed.
func Sockets(data string) []string {
	dir := filepath.Join(data, Folder)
	if checkPrivate(dir) != nil {
		return nil
	}
	return sweep(dir)
}

// sweep returns the sockets that are alive, and removes all others.
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

// maxPath is how long the path of a socket can be everywhere, in bytes.
const maxPath = 100
