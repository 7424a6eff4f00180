package bridge_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sallyport/sandbox/bridge"
)

// upgrade is a guest's request with one header more.
func upgrade(line, header string) string {
	return line + " HTTP/1.1\r\nHost: sallyport\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: c2FsbHlwb3J0LWd1ZXN0IQ==\r\n" + header + "\r\n"
}

// speak sends a request and returns the beginning of the answer.
func speak(t *testing.T, conn net.Conn, request string) string {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(conn, request)
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if nerr, ok := errors.AsType[net.Error](err); ok && nerr.Timeout() {
		t.Fatalf("no answer to %q", request)
	}
	return string(answer[:n])
}

func connection(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestHandshakeRefused speaks what is no websocket: that was the guest's one chance.
func TestHandshakeRefused(t *testing.T) {
	for _, test := range []struct{ name, request, status string }{
		{"no upgrade", "GET /v1 HTTP/1.1\r\nHost: sallyport\r\n\r\n", "400"},
		{"a page of a browser", upgrade("GET /v1", "Origin: http://sallyport\r\n"), "403"},
		{"another method", upgrade("POST /v1", ""), "405"},
		{"another version", strings.Replace(upgrade("GET /v1", ""), "Version: 13", "Version: 8", 1), "400"},
		{"no key", strings.Replace(upgrade("GET /v1", ""), "Sec-WebSocket-Key", "X", 1), "400"},
		{"frames before the answer", upgrade("GET /v1", "") + "\x81\x80\x00\x00\x00\x00", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{})
			got := speak(t, connection(t, h.path), test.request)
			if test.status == "" && got != "" || !strings.HasPrefix(got, "HTTP/1.1 "+test.status) && test.status != "" {
				t.Errorf("the answer is %q", got)
			}
			h.closed(t)
			if h.report.Started {
				t.Error("the program was delivered")
			}
		})
	}
}

// TestNotTheGuestYet tries requests that use up nothing: the guest can still come.
func TestNotTheGuestYet(t *testing.T) {
	for _, test := range []struct{ name, request, status string }{
		{"another path", upgrade("GET /", ""), "404"},
		{"a longer path", upgrade("GET /v1/", ""), "404"},
		{"a proxy's path", upgrade("GET http://sallyport/v2", ""), "404"},
		{"no HTTP", "hello\r\n\r\n", "400"},
		{"endless headers", upgrade("GET /v1", "X: "+strings.Repeat("x", 10<<10)+"\r\n"), "431"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{})
			if got := speak(t, connection(t, h.path), test.request); !strings.HasPrefix(got, "HTTP/1.1 "+test.status) {
				t.Errorf("the answer is %q", got)
			}
			connect(t, h).write(`{"type":"done"}`)
			if _, err := h.wait(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHalfOpen leaves connections that never finish their request: the guest
// comes in beside them, and Close ends them.
func TestHalfOpen(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	silent, half := connection(t, h.path), connection(t, h.path)
	_, _ = io.WriteString(half, "GET /v1 HTTP/1.1\r\nHost: sa")
	connect(t, h).write(`{"type":"done"}`)
	if _, err := h.wait(t); err != nil {
		t.Error(err)
	}
	_ = h.Close()
	for _, conn := range []net.Conn{silent, half} {
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, err := conn.Read(make([]byte, 1))
		if late, ok := errors.AsType[net.Error](err); err == nil || errors.Is(err, net.ErrClosed) || ok && late.Timeout() {
			t.Errorf("read: %v", err)
		}
	}
}

// TestGuestGoesInTheMiddleOfTheHandshake never becomes a guest; only ctx ends the wait.
func TestGuestGoesInTheMiddleOfTheHandshake(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	conn := connection(t, h.path)
	_, _ = io.WriteString(conn, upgrade("GET /v1", "")[:60])
	_ = conn.Close()
	gone := connection(t, h.path)
	_, _ = io.WriteString(gone, upgrade("GET /v1", ""))
	_ = gone.Close() // before the program could be sent, or after
	h.closed(t)
}
