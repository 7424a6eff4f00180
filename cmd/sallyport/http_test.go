package main_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
)

// TestOverHTTP drives the built binary with clients of both eras at once, at
// both endpoints, and ends it while a program of one of them is running.
func TestOverHTTP(t *testing.T) {
	runsc, modules := testutil.Runsc(t), testutil.Upstreams(t)
	dir, err := os.MkdirTemp("/tmp", "http-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(t.TempDir(), "sallyport")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	config := filepath.Join(dir, "upstreams.yaml")
	settings := fmt.Sprintf("upstreams:\n  everything: {command: node, args: [%q, stdio]}\nsandbox: {runsc: %q}\nhttp: {tokens: {test: a-token-for-a-test}}\n",
		filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), runsc)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--config", config, "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_STATE_HOME="+dir)
	url, rest := started(t, cmd)

	sessions := map[string]*mcp.ClientSession{}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, path := range []string{"", "/direct"} {
			sessions[version+path] = dialHTTP(t, url+path, version)
		}
	}
	var work sync.WaitGroup
	for name, session := range sessions {
		work.Go(func() {
			params := &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "from servers.everything import echo\necho('hi')"}}
			if strings.HasSuffix(name, "/direct") {
				params = &mcp.CallToolParams{Name: "everything__echo", Arguments: map[string]any{"message": "hi"}}
			}
			for range 3 {
				if got, err := callHTTP(t.Context(), session, params); err != nil || !strings.Contains(got, "Echo: hi") {
					t.Errorf("%s: %s, %v", name, got, err)
				}
			}
		})
	}
	work.Wait()
	stopWhileRunning(t, cmd, sessions["2026-07-28"])
	log := <-rest
	if err := cmd.Wait(); err != nil || !strings.Contains(log, "msg=stopped") || strings.Contains(log, "a-token") || strings.Contains(log, "level=ERROR") {
		t.Errorf("ended with %v:\n%s", err, log)
	}
	wait := time.Now().Add(5 * time.Second)
	for left := processesWith(dir); len(left) > 0; left = processesWith(dir) {
		if time.Now().After(wait) {
			t.Fatalf("processes left: %v", left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// started returns the address that the binary logs, and later the rest of its log.
func started(t *testing.T, cmd *exec.Cmd) (url string, rest <-chan string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	address := regexp.MustCompile(`address=(\S+)`)
	for url == "" && lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			url = found[1]
		}
	}
	all := make(chan string, 1)
	go func() {
		var log strings.Builder
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
		}
		all <- log.String()
	}()
	return url, all
}

func dialHTTP(t *testing.T, url, version string) *mcp.ClientSession {
	t.Helper()
	web := &http.Client{Transport: withToken{}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: web}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%s %s: %v", url, version, err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("asked for %s, got %s", version, got)
	}
	return session
}

type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer a-token-for-a-test")
	return http.DefaultTransport.RoundTrip(r)
}

func callHTTP(ctx context.Context, session *mcp.ClientSession, params *mcp.CallToolParams) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	result, err := session.CallTool(ctx, params)
	if err != nil || len(result.Content) == 0 {
		return "", err
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	return text.Text, nil
}

// stopWhileRunning sends SIGTERM while a program runs, which may end.
func stopWhileRunning(t *testing.T, cmd *exec.Cmd, session *mcp.ClientSession) {
	t.Helper()
	answer := make(chan string, 1)
	go func() {
		got, err := callHTTP(t.Context(), session, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{
			"code": "import time\nfrom servers.everything import echo\necho('a')\ntime.sleep(3)\necho('it ended')",
		}})
		answer <- fmt.Sprint(got, err)
	}()
	time.Sleep(1500 * time.Millisecond) // longer than a sandbox takes to start, shorter than the program
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; !strings.Contains(got, "it ended") {
		t.Errorf("the running program: %s", got)
	}
}
