package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/internal/testutil/tlstest"
)

// TestGuardEncodings: however this machine is written, a public upstream cannot send us to it. The canary counts who comes.
func TestGuardEncodings(t *testing.T) {
	var hits atomic.Int64
	canary := tlstest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer canary.Close()
	at, err := url.Parse(canary.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := newGuard("https://93.184.216.34/mcp").client(nil, Settings{})
	defer client.CloseIdleConnections()
	for _, host := range []string{
		"127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.1.", "localhost", "LOCALHOST", "localhost.", "a.localhost",
		"[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "0.0.0.0", "0", "[::]", "127.255.255.254", "a@127.0.0.1", "93.184.216.34@127.0.0.1", "%6c%6fcalhost", "①27.0.0.1", "127。0。0。1",
	} {
		for _, target := range []string{"http://" + host + ":" + at.Port() + "/", "http://" + host + ":" + at.Port() + "/#@93.184.216.34/", "http://" + host + ":" + at.Port() + "\\@93.184.216.34/"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
			if err != nil {
				continue // it is no URL
			}
			resp, err := client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Errorf("%s was reached", target)
			}
		}
	}
	if n := hits.Load(); n > 0 {
		t.Errorf("this machine was asked %d times", n)
	}
	// The canary is one: who may speak to it gets there.
	local := newGuard(canary.URL).client(nil, Settings{})
	defer local.CloseIdleConnections()
	resp, err := local.Get(strings.Replace(canary.URL, "127.0.0.1", "localhost", 1))
	if err != nil || hits.Load() != 1 {
		t.Fatalf("an upstream on this machine: %v", err)
	}
	_ = resp.Body.Close()
}
