package httpserver_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/config"
)

// TestSlowHeaders has clients who never end their headers: others are served, and those are cut off (C17).
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	origin := serve(t, &httpserver.Options{Settings: config.HTTP{Body: 4096, Grace: time.Second}})
	var slow []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(origin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: "); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	if resp, body := request(t, "POST", origin+"/mcp", "{}"); resp.StatusCode != 200 {
		t.Errorf("somebody else: %d %s", resp.StatusCode, body)
	}
	for i, conn := range slow {
		if i%50 == 0 { // it goes on, a byte at a time
			_, _ = io.WriteString(conn, "y")
		}
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.ReadAll(conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatal("who sends a header for 30 s is still there")
		}
	}
}
