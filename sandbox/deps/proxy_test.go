package deps_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox/deps"
)

// serveProxy starts one and returns a client that goes through it, and the path of its socket.
func serveProxy(t *testing.T, targets []deps.Target, opts deps.ProxyOptions) (*deps.Proxy, *http.Client, string) {
	t.Helper()
	path := filepath.Join(testutil.ShortDir(t), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	opts.Logger = testutil.Logger(t)
	proxy := deps.NewProxy(targets, opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- proxy.Serve(ctx, listener) }()
	transport := &http.Transport{
		Proxy:           func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy:1") },
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) },
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the proxy does not end")
		}
	})
	return proxy, &http.Client{Transport: transport}, path
}

func targetOf(t *testing.T, address string, private bool) deps.Target {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return deps.Target{Host: u.Hostname(), Port: u.Port(), Private: private}
}

// get returns the status and the body, or what went wrong.
func get(client *http.Client, address string) string {
	response, err := client.Get(address)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", strings.TrimSpace(string(body)), " ", err)
}

func TestProxy(t *testing.T) {
	var elsewhere, allowed, secure *httptest.Server
	handle := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere.URL+"/secret", http.StatusFound)
		case "/echo":
			fmt.Fprint(w, r.Header)
		default:
			fmt.Fprint(w, "page of ", r.Method)
		}
	}
	elsewhere = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server that is not allowed was reached") }))
	allowed, secure = httptest.NewServer(http.HandlerFunc(handle)), httptest.NewTLSServer(http.HandlerFunc(handle))
	defer elsewhere.Close()
	defer allowed.Close()
	defer secure.Close()
	proxy, client, path := serveProxy(t, []deps.Target{targetOf(t, allowed.URL, true), targetOf(t, secure.URL, true)}, deps.ProxyOptions{})
	_, port, _ := net.SplitHostPort(allowed.Listener.Addr().String())
	for _, test := range []struct{ address, want string }{
		{allowed.URL + "/x", "200 page of GET <nil>"},
		{secure.URL + "/x", "200 page of GET <nil>"},
		{allowed.URL + "/away", "403 "},
		{secure.URL + "/away", "403 "},
		{elsewhere.URL, "403 "},
		{strings.Replace(elsewhere.URL, "http:", "https:", 1), "Forbidden"},
		{"http://localhost:" + port, "403 "}, // the same place under another name
		{"http://127.0.0.1:1", "403 "},
		{"https://127.0.0.1:22", "Forbidden"},
		{"http://169.254.169.254/latest/meta-data", "403 "},
		{"http://[::1]:" + port, "403 "},
	} {
		if got := get(client, test.address); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.address, got, test.want)
		}
	}
	for _, request := range []string{
		"POST " + allowed.URL + "/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
		"GET /x HTTP/1.1\r\nHost: " + strings.TrimPrefix(allowed.URL, "http://") + "\r\n\r\n",
		"GET ftp" + strings.TrimPrefix(allowed.URL, "http") + "/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT " + strings.TrimPrefix(elsewhere.URL, "http://") + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(allowed.URL, "http://") + "\r\n\r\n",
		"CONNECT 127.0.0.1 HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		if got := raw(t, path, request); !strings.HasPrefix(got, "HTTP/1.1 40") {
			t.Errorf("%.40q: %s", request, got)
		}
	}
	if got := proxy.RefusedHosts(); !slices.Contains(got, strings.TrimPrefix(elsewhere.URL, "http://")) {
		t.Errorf("refused are %q", got)
	}
}

func raw(t *testing.T, path, request string) string {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line
}

// TestProxyPrivate: a name that is allowed as a public one does not lead into a private network.
func TestProxyPrivate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	_, client, _ := serveProxy(t, []deps.Target{{Host: "localhost", Port: port}, {Host: "127.0.0.1", Port: port}, {Host: "169.254.169.254", Port: "80"}}, deps.ProxyOptions{})
	for _, address := range []string{"http://localhost:" + port, "http://127.0.0.1:" + port, "http://169.254.169.254"} {
		if got := get(client, address); !strings.Contains(got, "403") || !strings.Contains(got, "not public") {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := get(client, "https://localhost:"+port); !strings.Contains(got, "Forbidden") {
		t.Error(got)
	}
}

// TestProxyBounds: what is endless or silent ends.
func TestProxyBounds(t *testing.T) {
	held := make(chan struct{})
	handle := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			w.(http.Flusher).Flush()
			<-held
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
	server, secure := httptest.NewServer(http.HandlerFunc(handle)), httptest.NewTLSServer(http.HandlerFunc(handle))
	defer server.Close()
	defer secure.Close()
	defer close(held)
	for _, address := range []string{server.URL, secure.URL} {
		targets := []deps.Target{targetOf(t, address, true)}
		proxy, client, _ := serveProxy(t, targets, deps.ProxyOptions{Down: 1 << 20})
		response, err := client.Get(address + "/endless")
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err == nil || n > 2<<20 || !proxy.Exhausted() {
			t.Errorf("%d bytes came through, %v", n, err)
		}
		_, client, _ = serveProxy(t, targets, deps.ProxyOptions{Idle: 200 * time.Millisecond})
		if response, err = client.Get(address + "/silent"); err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		if err == nil {
			t.Error("a silent server was waited for until its end")
		}
		_, client, _ = serveProxy(t, targets, deps.ProxyOptions{Up: 10})
		if got := get(client, address+"/silent"); strings.HasPrefix(got, "200") {
			t.Errorf("a request of more bytes than may go out was answered: %s", got)
		}
	}
}
