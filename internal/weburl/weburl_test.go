package weburl_test

import (
	"testing"

	"sallyport/internal/weburl"
)

func TestIsOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://chat.example.com": true, "http://localhost:3000": true, "http://[::1]:80": true, "app://local": true,
		"null": false, "": false, "https://Chat.example.com": false, "https://*.example.com": false, "https://example.com/": false, "https://u@example.com": false, "example.com": false,
	} {
		if weburl.IsOrigin(text) != want {
			t.Errorf("%q is an origin: %t", text, !want)
		}
	}
}

func TestIsSecure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // IsSecure, IsHTTPS
		"https://example.com/x?y": {true, true}, "http://localhost:9/": {true, false}, "http://127.0.0.2": {true, false}, "http://[::1]:80": {true, false},
		"http://LOCALHOST": {true, false}, "http://[::ffff:127.0.0.1]": {true, false},
		"http://example.com": {}, "https://u@example.com": {}, "https://example.com/#f": {}, "https://": {}, "ftp://localhost": {}, "": {}, "http://localhost.example.com": {},
		"https://:443": {}, "http://127.0.0.1.example.com": {}, "http://%zz": {},
	} {
		if got := [2]bool{weburl.IsSecure(text), weburl.IsHTTPS(text)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
