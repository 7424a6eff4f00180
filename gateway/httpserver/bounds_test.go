package httpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// dial connects to a site as nobody's client library would.
func dial(t *testing.T, origin string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(origin, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// readAnswer is the status of the next answer, and its body.
func readAnswer(t *testing.T, conn net.Conn) (answer, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.Close}, string(body)
}

// TestLargeBodies: what says that it is too large is refused before it is sent, what does not say so while it comes,
// at every path, and without a token, too.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	at := serve(t, &httpserver.Options{API: http.HandlerFunc(sayWho), Dashboard: pages{}, Settings: config.HTTP{Body: 4096, Grace: time.Second, Tokens: config.Secrets{"ci": "a-token-of-the-ci"}}})
	for _, path := range []string{"/mcp", "/execute", "/api/execute", "/ui/x", "/login"} {
		conn := dial(t, at)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, 1<<30)
		if resp, body := readAnswer(t, conn); resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Closing || !strings.Contains(body, `"status":413`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	conn := dial(t, at)
	fmt.Fprint(conn, "POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer a-token-of-the-ci\r\nTransfer-Encoding: chunked\r\n\r\n")
	go func() { _, _ = io.WriteString(conn, "2000\r\n"+strings.Repeat("x", 0x2000)+"\r\n") }()
	if resp, body := readAnswer(t, conn); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "did not arrive") {
		t.Errorf("chunks: %d %s", resp.StatusCode, body)
	}
}

// TestPartsOfRequests: clients that stop in the middle cost others nothing.
func TestPartsOfRequests(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	at := serve(t, &httpserver.Options{API: api})
	for _, part := range []string{"", "GET /", "POST /execute HTTP/1.1\r\nHost: localhost\r\n", "\x16\x03\x01\x02\x00", "GET / HTTP/9.9\r\n\r\n", "GET /\x00 HTTP/1.1\r\n\r\n"} {
		conn := dial(t, at)
		_, _ = io.WriteString(conn, part)
	}
	gone := dial(t, at)
	fmt.Fprint(gone, "POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
	_ = gone.Close()
	if err := <-read; err == nil {
		t.Error("half a body is a whole one")
	}
	if head, body := request(t, http.MethodPost, at+"/mcp", "{}"); head.StatusCode != http.StatusOK {
		t.Errorf("somebody else: %d %s", head.StatusCode, body)
	}
}

// TestHeaders: a header that is too large is refused.
func TestHeaders(t *testing.T) {
	t.Parallel()
	at := serve(t, &httpserver.Options{API: http.HandlerFunc(sayWho)})
	conn := dial(t, at)
	go fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 80<<10))
	if resp, _ := readAnswer(t, conn); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %d", resp.StatusCode)
	}
	for _, twice := range []string{"Authorization: Bearer x\r\nAuthorization: Bearer y", "Content-Length: 1\r\nContent-Length: 2", "Content-Length: 1\r\nTransfer-Encoding: chunked, identity"} {
		conn := dial(t, at)
		fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\nx", twice)
		if resp, _ := readAnswer(t, conn); resp.StatusCode/100 != 4 && resp.StatusCode != http.StatusNotImplemented {
			t.Errorf("%q: %d", twice, resp.StatusCode)
		}
	}
}

// TestRates: a token's requests are counted for itself, and what is too much is said with when to come back.
func TestRates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slow, _, err := access.Create(t.Context(), access.InFolder(dir, nil), access.TokenSpec{Name: "slow", Scopes: tool.UserScopes(), Rate: access.Rate{Count: 1, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	settings := config.HTTP{Body: 4096, Grace: time.Second, Limits: config.HTTPLimits{Requests: access.Rate{Count: 3, Per: time.Hour}}, Tokens: config.Secrets{"a": "a-token-of-a", "b": "a-token-of-b"}}
	at := serve(t, &httpserver.Options{API: http.HandlerFunc(sayWho), Settings: settings, Tokens: access.OpenTokens(access.InFolder(dir, nil), nil)})
	for _, test := range []struct {
		token  string
		served int
	}{{"a-token-of-a", 3}, {"a-token-of-b", 3}, {slow, 1}} {
		for i := range test.served {
			head, body := request(t, http.MethodPost, at+[]string{"/mcp", "/execute", "/x"}[i], "{}", "Authorization: Bearer "+test.token)
			if head.StatusCode != http.StatusOK || !strings.HasPrefix(head.Header.Get("RateLimit"), fmt.Sprintf(`"requests";r=%d;t=`, test.served-1-i)) {
				t.Errorf("%d: %d %s %v", i, head.StatusCode, body, head.Header)
			}
		}
		head, body := request(t, http.MethodPost, at+"/execute", "{}", "Authorization: Bearer "+test.token)
		if head.StatusCode != http.StatusTooManyRequests || head.Header.Get("Retry-After") == "" || !strings.Contains(body, `"kind":"limit"`) {
			t.Errorf("%d %s %v", head.StatusCode, body, head.Header)
		}
	}
	for i := range 4 { // who guesses is counted by the address
		want := http.StatusUnauthorized
		if i == 3 {
			want = http.StatusTooManyRequests
		}
		if head, body := request(t, http.MethodPost, at+"/execute", "{}", "Authorization: Bearer a-guess"); head.StatusCode != want {
			t.Errorf("guess %d: %d %s", i, head.StatusCode, body)
		}
	}
	for _, path := range []string{"/health", "/readyz"} { // others at the address are served all the same
		if head, body := request(t, http.MethodGet, at+path, ""); head.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, head.StatusCode, body)
		}
	}
}

// TestScopes: a token opens what it was made for, a revoked one nothing, and what it has open ends.
func TestScopes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, _, err := access.Create(t.Context(), access.InFolder(dir, nil), access.TokenSpec{Name: "ci", Scopes: []tool.Scope{tool.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stream" {
			sayWho(w, r)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	})
	at := serve(t, &httpserver.Options{API: api, Settings: config.HTTP{Body: 4096, Grace: time.Second, RequireToken: true}, Tokens: access.OpenTokens(access.InFolder(dir, nil), nil)})
	good := "Authorization: Bearer " + text
	if head, body := request(t, http.MethodPost, at+"/x", "{}", good); head.StatusCode != http.StatusOK || !strings.Contains(body, `as "token:ci" operator "" may execute false`) {
		t.Errorf("%d %s", head.StatusCode, body)
	}
	head, body := request(t, http.MethodPost, at+"/mcp", "{}", good)
	if head.StatusCode != http.StatusForbidden || head.Header.Get("WWW-Authenticate") != `Bearer error="insufficient_scope", scope="mcp"` {
		t.Errorf("%d %s %v", head.StatusCode, body, head.Header)
	}
	if head, body := request(t, http.MethodPost, at+"/x", "{}", good[:len(good)-3]); head.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "mistyped") {
		t.Errorf("mistyped: %d %s", head.StatusCode, body)
	}
	stream, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header.Set("Authorization", "Bearer "+text)
	resp, err := http.DefaultClient.Do(stream)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := access.Revoke(t.Context(), access.InFolder(dir, nil), "ci"); err != nil {
		t.Fatal(err)
	}
	if head, _ := request(t, http.MethodPost, at+"/x", "{}", good); head.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked: %d", head.StatusCode)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "no longer valid") {
			t.Errorf("ended: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the stream of a revoked token goes on")
	}
}

// TestStopping: a stream that only reads ends at once when the gateway stops, what changes something may end for a
// while, and is ended after that.
func TestStopping(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{10 * time.Second, 50 * time.Millisecond} {
		began, finish := make(chan string, 2), make(chan struct{})
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- r.Method
			if r.Method == http.MethodGet {
				<-r.Context().Done()
				return
			}
			select {
			case <-finish:
				_, _ = io.WriteString(w, "finished")
			case <-r.Context().Done():
				_, _ = io.WriteString(w, context.Cause(r.Context()).Error())
			}
		})
		listener, err := httpserver.Listen(t.Context(), "127.0.0.1:0", config.HTTP{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.TrimSuffix(httpserver.Address(listener), "/mcp")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		site := httpserver.New(listener, &httpserver.Options{MCP: mcp{}, API: api, Settings: config.HTTP{Body: 4096, Grace: grace}})
		go func() { ended <- site.Serve(ctx) }()
		read, wrote := make(chan string, 1), make(chan string, 1)
		go func() { _, body := request(t, http.MethodGet, at+"/live", ""); read <- body }()
		go func() { _, body := request(t, http.MethodPost, at+"/execute", "{}"); wrote <- body }()
		<-began
		<-began
		stop()
		<-read
		want := "the gateway is stopping"
		if grace > time.Second {
			want = "finished"
			close(finish)
		}
		if got := <-wrote; got != want {
			t.Errorf("with %v: %s", grace, got)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestTooManyConnections: who is one too many hears so, and those who are connected are served.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := httpserver.NewLimited(inner, 2)
	web := &http.Server{Handler: http.HandlerFunc(sayWho), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	at := "http://" + inner.Addr().String()
	first, second := dial(t, at), dial(t, at)
	ask := func(conn net.Conn) {
		t.Helper()
		fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if resp, body := readAnswer(t, conn); resp.StatusCode != http.StatusOK {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	ask(first)
	ask(second)
	third := dial(t, at)
	fmt.Fprint(third, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if resp, body := readAnswer(t, third); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "too many connections") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	ask(first)
	_ = second.Close()
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn := dial(t, at)
		fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if resp, _ := readAnswer(t, conn); resp.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no place after one has gone")
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = web.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestSlowBodies: who sends too slowly is cut off, and who has sent all may wait.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	at := hasty(t, &httpserver.Options{API: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})})
	conn := dial(t, at)
	fmt.Fprint(conn, "POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
	stop := time.AfterFunc(100*time.Millisecond, func() { fmt.Fprint(conn, "x") })
	defer stop.Stop()
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a slow body ended with %v", err)
	}
	ended := make(chan error, 1)
	lasting := hasty(t, &httpserver.Options{API: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
		ended <- r.Context().Err()
	})})
	if head, body := request(t, http.MethodPost, lasting+"/execute", "{}"); head.StatusCode != http.StatusOK {
		t.Errorf("%d %s", head.StatusCode, body)
	}
	if err := <-ended; err != nil {
		t.Errorf("who has sent all and waits for longer is cut off: %v", err)
	}
}

// TestSlowReaders: who asks for much and reads nothing is cut off.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	at := hasty(t, &httpserver.Options{API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		part := make([]byte, 1<<20)
		for {
			if _, err := w.Write(part); err != nil {
				ended <- err
				return
			}
		}
	})})
	conn := dial(t, at)
	fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("who reads nothing is still there")
	}
}
