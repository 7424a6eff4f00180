package oauth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestGuardCheck(t *testing.T) {
	for _, test := range []struct {
		upstream, target string
		ok               bool
	}{
		{"https://mcp.test/mcp", "https://login.test/", true},
		{"https://mcp.test/mcp", "http://login.test/", false},
		{"https://mcp.test/mcp", "http://127.0.0.1:1/", false},
		{"https://mcp.test/mcp", "https://127.0.0.1/", false},
		{"https://mcp.test/mcp", "https://[::ffff:127.0.0.1]/", false},
		{"https://mcp.test/mcp", "https://localhost/", false},
		{"https://mcp.test/mcp", "file:///etc/passwd", false},
		{"https://mcp.test/mcp", "javascript:alert(1)", false},
		{"https://mcp.test/mcp", "https://u:p@login.test/", false},
		{"http://127.0.0.1:1/mcp", "http://localhost:2/", true},
		{"http://127.0.0.1:1/mcp", "https://login.test/", true},
		{"http://127.0.0.1:1/mcp", "http://login.test/", false},
	} {
		if err := newGuard(test.upstream).check("URL", test.target); (err == nil) != test.ok {
			t.Errorf("%s sends us to %s: %v", test.upstream, test.target, err)
		}
	}
}

// The addresses count that a name really has, not how it is written.
func TestGuardDial(t *testing.T) {
	for address, ok := range map[string]bool{
		"93.184.216.34:443": true, "127.0.0.1:443": false, "[::1]:443": false, "10.0.0.1:443": false, "169.254.169.254:80": false,
		"[::ffff:10.0.0.1]:443": false, "[fd00::1]:443": false, "100.64.0.1:443": false, "0.0.0.0:80": false,
	} {
		if err := newGuard("https://93.184.216.34/mcp").dial(t.Context(), "tcp", address, nil); (err == nil) != ok {
			t.Errorf("dial %s: %v", address, err)
		}
	}
	if err := newGuard("https://10.0.0.2/mcp").dial(t.Context(), "tcp", "10.0.0.1:443", nil); err != nil {
		t.Errorf("from private to private: %v", err)
	}
	if !isPrivate(netip.MustParseAddr("100.127.0.1")) || isPrivate(netip.MustParseAddr("100.128.0.1")) {
		t.Error("RFC 6598")
	}
}

func TestGuardRedirect(t *testing.T) {
	for target, ok := range map[string]bool{
		"https://login.test/x": true, "http://login.test/": false, "https://10.0.0.1/": false, "https://localhost/": false, "https://169.254.169.254/": false,
	} {
		from := httptest.NewRequest(http.MethodGet, "https://mcp.test/", nil)
		next := httptest.NewRequest(http.MethodGet, target, nil)
		next.Body = nil
		if err := newGuard("https://93.184.216.34/mcp").redirect(next, []*http.Request{from}); (err == nil) != ok {
			t.Errorf("to %s: %v", target, err)
		}
	}
	post := httptest.NewRequest(http.MethodPost, "https://evil.test/", strings.NewReader("client_secret=x"))
	if err := newGuard("https://mcp.test").redirect(post, []*http.Request{post}); !errors.Is(err, http.ErrUseLastResponse) {
		t.Errorf("a body goes elsewhere: %v", err)
	}
}
