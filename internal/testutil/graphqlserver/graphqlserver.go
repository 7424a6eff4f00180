// Package graphqlserver runs a GraphQL server for tests: server.mjs, by graphql-js, the reference implementation.
package graphqlserver

import (
	"bufio"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// Key is the value of the header X-Key that the server asks for.
const Key = "k-12345678"

// Start runs a server until the test ends, and returns its URL: its API is at /graphql, and /log returns the requests.
func Start(tb testing.TB) string {
	tb.Helper()
	node := testutil.Program(tb, "node")
	script := filepath.Join(testutil.ModuleRoot(tb), "internal/testutil/graphqlserver/server.mjs")
	cmd := exec.CommandContext(tb.Context(), node, script, testutil.Upstreams(tb)) //nolint:forbidigo // killed when the test ends
	cmd.Stderr = tb.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("the GraphQL server does not start: %v", err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// Proxy returns a handler that passes requests to a server that [Start] runs.
func Proxy(tb testing.TB, to string) *httputil.ReverseProxy {
	tb.Helper()
	target, err := url.Parse(to)
	if err != nil {
		tb.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(target)
}
