package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// Listen opens the address of serve --http: HOST:PORT, or unix:PATH for a
// socket that only its owner can use. An address that other machines can reach
// requires tokens, OAuth or a login in the settings, or tokens of sallyport token.
func Listen(ctx context.Context, addr string, settings config.HTTP, made *access.Tokens) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	resolved, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("invalid listen address %.100q", addr), Hint: "write HOST:PORT, for example 127.0.0.1:8080, or unix:/path", Err: err}
	}
	if !resolved.IP.IsLoopback() && len(settings.Tokens) == 0 && settings.OAuth == nil && settings.Login == nil && !mayExist(ctx, made) {
		return nil, &tool.Error{
			Kind: tool.Invalid, Message: fmt.Sprintf("other machines could reach %s, and anybody there could use every upstream", addr),
			Hint: fmt.Sprintf("listen on 127.0.0.1:%d, or make tokens: sallyport token create, or http.tokens, http.oauth or http.login in upstreams.yaml", resolved.Port),
		}
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", resolved.String())
	return listener, listenError(addr, err)
}

// mayExist reports whether there are tokens, or may be while the store does not answer. Without one all requests are refused.
func mayExist(ctx context.Context, tokens *access.Tokens) bool {
	exist, err := tokens.Exist(ctx)
	return exist || err != nil
}

func listenError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return &tool.Error{Kind: tool.Failed, Message: "another process listens on " + addr, Hint: "use another port, or 0 for any that is free", Err: err}
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return nil
}

// listenUnix creates the socket in a private directory, sets its permissions, and
// then moves it to its path.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if path == "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "unix: needs the path of a socket", Hint: "for example unix:/run/user/1000/sallyport.sock"}
	}
	if err := freeSocket(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s-")
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var lc net.ListenConfig
	made := filepath.Join(dir, "s")
	listener, err := lc.Listen(ctx, "unix", made)
	if err != nil {
		return nil, listenError("unix:"+path, err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), listener.Close())
	}
	return &socketListener{listener, path}, nil
}

// freeSocket removes a socket without a listener, and no other file.
func freeSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return &tool.Error{Kind: tool.Invalid, Message: path + " exists and is not a socket"}
	}
	var dialer net.Dialer
	if conn, err := dialer.DialContext(ctx, "unix", path); err == nil {
		_ = conn.Close()
		return listenError("unix:"+path, syscall.EADDRINUSE)
	}
	return os.Remove(path)
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
}

// Close closes the socket and removes it.
func (l *socketListener) Close() error {
	return errors.Join(l.Listener.Close(), removeSocket(l.path))
}

func removeSocket(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Address returns the address of a listener for clients.
func Address(listener net.Listener) string {
	if listener.Addr().Network() == "unix" {
		if l, ok := listener.(*socketListener); ok {
			return "unix:" + l.path
		}
	}
	return "http://" + listener.Addr().String() + "/mcp"
}

// Site returns the URL of a listener for a local browser, "" for a Unix socket.
func Site(listener net.Listener) string {
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(addr.Port))
}
