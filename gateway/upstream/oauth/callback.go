package oauth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const callbackPath = "/callback"

// callbackListener receives the redirect of the browser on loopback.
type callbackListener struct {
	redirect string
	socket   net.Listener // nil when the redirect URL is pasted
}

// listen listens on the port of the settings, or on that of an earlier registered
// client, which can then be reused, or on any port.
func (h *Handler) listen(how Login, old *record) (*callbackListener, error) {
	port := h.settings.RedirectPort
	if how.Paste != nil {
		if port == 0 {
			port = 8976 // nothing listens there
		}
		return &callbackListener{redirect: fmt.Sprintf("http://127.0.0.1:%d%s", port, callbackPath)}, nil
	}
	var socket net.Listener
	err := errors.New("no port")
	if port == 0 && old != nil && old.Registered {
		if u, bad := url.Parse(old.Redirect); bad == nil {
			socket, err = net.Listen("tcp", "127.0.0.1:"+u.Port())
		}
	}
	if err != nil {
		socket, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	return &callbackListener{redirect: "http://" + socket.Addr().String() + callbackPath, socket: socket}, nil
}

func (l *callbackListener) close() {
	if l.socket != nil {
		_ = l.socket.Close()
	}
}

// wait shows the page and returns the parameters of the redirect.
func (l *callbackListener) wait(ctx context.Context, page string, how Login) (url.Values, error) {
	if how.Show != nil {
		how.Show(page)
	}
	if how.Paste != nil {
		return readPastedURL(how.Paste)
	}
	return l.serve(ctx, page, how)
}

func (l *callbackListener) serve(ctx context.Context, page string, how Login) (url.Values, error) {
	answers, failed := make(chan url.Values, 1), make(chan error, 1)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handleCallback(w, r, answers) }),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l.socket) }()
	ctx, cancel := context.WithCancel(ctx)
	browsing := make(chan struct{})
	go func() {
		defer close(browsing)
		if how.Browse == nil {
			return
		}
		if err := how.Browse(ctx, page); err != nil && how.Show == nil {
			failed <- fmt.Errorf("open the browser: %w", withoutURL(err))
		}
	}()
	defer func() {
		quit, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer stop()
		_ = server.Shutdown(quit) // lets the browser receive its page
		_ = server.Close()
		<-done
		cancel()
		<-browsing
	}()
	select {
	case got := <-answers:
		return got, nil
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, errors.New("the login timed out")
	}
}

// handleCallback accepts the first redirect; it rejects other requests of the browser.
func handleCallback(w http.ResponseWriter, r *http.Request, answers chan<- url.Values) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Connection", "close")
	query := r.URL.Query()
	if r.URL.Path != callbackPath || r.Method != http.MethodGet || !query.Has("state") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	select {
	case answers <- query:
		_, _ = io.WriteString(w, "Sallyport received the response. Return to your terminal; you can close this page.\n")
	default:
		w.WriteHeader(http.StatusConflict)
	}
}

// maxPasted bounds a pasted line, in bytes.
const maxPasted = 64 << 10

// readPastedURL reads the redirect URL of a browser on another machine.
func readPastedURL(in io.Reader) (url.Values, error) {
	line, err := bufio.NewReader(io.LimitReader(in, maxPasted)).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the URL: %w", err)
		}
		return nil, errors.New("no URL was pasted")
	}
	u, err := url.Parse(line)
	if err != nil || !u.Query().Has("state") {
		return nil, errors.New("the pasted text is not the redirect URL, which contains code= and state=")
	}
	return u.Query(), nil
}
