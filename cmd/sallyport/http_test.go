package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
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
	"sallyport/internal/testutil/tlstest"
)

// site is the built binary, serving over HTTP the everything-server of npm and a
// gate, an upstream of the test.
type site struct {
	cmd  *exec.Cmd
	url  string
	log  <-chan string // the log after the address, when it has ended
	dir  string        // all that it may leave behind
	gate *gate
}

func newSite(t *testing.T, settings string) *site {
	t.Helper()
	runsc, modules := testutil.Runsc(t), testutil.Upstreams(t)
	dir, err := os.MkdirTemp("/tmp", "http-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := testutil.Binary(t)
	s := &site{dir: dir, gate: newGate(t)}
	config := filepath.Join(dir, "upstreams.yaml")
	text := fmt.Sprintf("upstreams:\n  everything: {command: node, args: [%q, stdio]}\n  gate: {url: %q}\nsandbox: {runsc: %q, pool: {max: 0, min: 0}}\nhttp: {tokens: {test: a-token-for-a-test}%s}\n",
		filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), s.gate.url, runsc, settings)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(binary, "serve", "--config", config, "--http", "127.0.0.1:0")
	s.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	s.url, s.log = startListening(t, s.cmd)
	return s
}

// waitStopped waits for the end that a signal has brought about, and returns the log.
// Nothing may be left then.
func (s *site) waitStopped(t *testing.T) string {
	t.Helper()
	log := <-s.log
	if err := s.cmd.Wait(); err != nil || !strings.Contains(log, "msg=stopped") || strings.Contains(log, "a-token") || strings.Contains(log, "level=ERROR") {
		t.Errorf("ended with %v:\n%s", err, log)
	}
	await(t, "no process is left", func() bool { return len(processesWith(s.dir)) == 0 })
	return log
}

// gate is an upstream whose tool answers when the test lets it.
type gate struct {
	url          string
	inside, open chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{inside: make(chan struct{}, 9), open: make(chan struct{})}
	server := mcp.NewServer(&mcp.Implementation{Name: "gate", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "enter", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		g.inside <- struct{}{}
		select {
		case <-g.open:
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is open"}}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	g.url = web.URL
	return g
}

// enter starts a program that is inside the gate when enter returns, and runs
// on for long after it. What comes of it is sent.
func (s *site) enter(ctx context.Context, t *testing.T, session *mcp.ClientSession, after string) <-chan string {
	t.Helper()
	answer := make(chan string, 1)
	go func() {
		got, err := callHTTP(ctx, session, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{
			"code": "import time\nfrom servers.gate import enter\ngot = enter()\n" + after + "\ngot + ', it ended'",
		}})
		answer <- fmt.Sprint(got, err)
	}()
	select {
	case <-s.gate.inside:
	case got := <-answer:
		t.Fatalf("it does not come to the gate: %s", got)
	}
	return answer
}

func (s *site) terminate(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

// TestOverHTTP drives the built binary with clients of both eras at once, at
// both endpoints, and ends it while a program of one of them is running.
func TestOverHTTP(t *testing.T) {
	s := newSite(t, "")
	sessions := map[string]*mcp.ClientSession{}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, path := range []string{"", "/direct"} {
			sessions[version+path] = dialHTTP(t, s.url+path, version)
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
	answer := s.enter(t.Context(), t, sessions["2026-07-28"], "")
	s.terminate(t)
	await(t, "it stops listening", func() bool { return !listens(s.url) })
	close(s.gate.open)
	if got := <-answer; !strings.Contains(got, "it is open, it ended") {
		t.Errorf("the running program: %s", got)
	}
	s.waitStopped(t)
}

func listens(url string) bool {
	address, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// TestGraceIsOver: a program that runs for longer is ended, and its client told why.
func TestGraceIsOver(t *testing.T) {
	s := newSite(t, ", grace: 300ms")
	var answers []<-chan string
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		answers = append(answers, s.enter(t.Context(), t, dialHTTP(t, s.url, version), "time.sleep(600)"))
	}
	s.terminate(t)
	for _, answer := range answers {
		if got := <-answer; !strings.Contains(got, "stopping") {
			t.Errorf("the running program: %s", got)
		}
	}
	if log := s.waitStopped(t); !strings.Contains(log, `msg="drain timeout, calls canceled" calls=2`) {
		t.Errorf("log:\n%s", log)
	}
}

// TestHangingUpEndsTheSandbox of a modern client's program; that of an older
// client, who may come back for its answer, ends when the client says so.
func TestHangingUpEndsTheSandbox(t *testing.T) {
	s := newSite(t, "")
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		ctx, hangUp := context.WithCancel(t.Context())
		answer := s.enter(ctx, t, dialHTTP(t, s.url, version), "time.sleep(600)")
		if len(s.sandboxes()) == 0 {
			t.Fatal("no sandbox is seen")
		}
		hangUp()
		<-answer
		await(t, "the sandbox is gone", func() bool { return len(s.sandboxes()) == 0 })
	}
	s.terminate(t)
	s.waitStopped(t)
}

// sandboxes returns the processes of runsc that belong to the site.
func (s *site) sandboxes() (found []string) {
	for _, path := range processesWith(s.dir) {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil && strings.Contains(string(data), "runsc") {
			found = append(found, path)
		}
	}
	return found
}

// startListening returns the address that the binary logs, and later the rest of its log.
func startListening(t testing.TB, cmd *exec.Cmd) (url string, rest <-chan string) {
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
