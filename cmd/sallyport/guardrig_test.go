package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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

	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// guarded is the built binary with all of the guard on, before two real npm upstreams, the hostile one and a desk of
// the test, and a client of one era: over stdio with a session, or over HTTP without.
type guarded struct {
	t       *testing.T
	version string
	binary  string
	dir     string // all that it may leave behind; short, as a socket's path has room for little
	desk    *counter
	log     *lines
	cmd     *exec.Cmd
	url     string // over HTTP
	session *mcp.ClientSession
	// person answers what the client is asked.
	person *person
}

// The tokens of those who speak over HTTP.
const aliceToken, malloryToken, opsToken = "a-token-of-alice-1", "a-token-of-mallory-1", "a-token-of-the-ops-1"

func newGuarded(t *testing.T, binary, version string) *guarded {
	t.Helper()
	g := &guarded{t: t, version: version, binary: binary, dir: testutil.ShortDir(t), desk: newCounter(t), log: &lines{}, person: &person{}}
	g.write("files/people.csv", "name,email\nAnn,ann.lee@example.com\nBob,bob.roy@example.com\n")
	g.configure("30s")
	testutil.ShareSnapshots(g.path("cache"))
	t.Cleanup(func() {
		g.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", version, g.log)
		}
	})
	return g
}

func (g *guarded) path(name string) string { return filepath.Join(g.dir, name) }

func (g *guarded) write(name, text string) {
	g.t.Helper()
	if err := os.MkdirAll(filepath.Dir(g.path(name)), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(g.path(name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guarded) read(name string) string {
	g.t.Helper()
	data, err := os.ReadFile(g.path(name))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(data)
}

// configure writes the settings; programs wait that long for an approval that is not given at once.
func (g *guarded) configure(wait string) {
	g.t.Helper()
	server := func(name string) string {
		return filepath.Join(testutil.Upstreams(g.t), "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	self, err := os.Executable()
	if err != nil {
		g.t.Fatal(err)
	}
	settings, err := os.ReadFile(filepath.Join("testdata", "guard", "upstreams.yaml"))
	if err != nil {
		g.t.Fatal(err)
	}
	quote := func(text string) string {
		data, _ := json.Marshal(text)
		return string(data)
	}
	g.write("upstreams.yaml", strings.NewReplacer(
		"$FILESYSTEM", quote(server("filesystem")), "$FILES", quote(g.path("files")), "$MEMORY", quote(server("memory")), "$GRAPH", quote(g.path("graph.jsonl")),
		"$HOSTILE", quote(self), "$MODE", upstreamtest.Var, "$DESK", quote(g.desk.url), "$RUNSC", quote(testutil.Runsc(g.t)), "$WAIT", wait,
		"$ALICE", aliceToken, "$MALLORY", malloryToken, "$OPS", opsToken,
	).Replace(string(settings)))
}

// command is our binary with the settings and the directories of the test.
func (g *guarded) command(args ...string) *exec.Cmd {
	cmd := exec.Command(g.binary, append(args, "--config", g.path("upstreams.yaml"))...)
	cmd.Env = append(os.Environ(), "HOME="+g.dir, "XDG_RUNTIME_DIR="+g.dir, "XDG_CACHE_HOME="+g.path("cache"), "XDG_DATA_HOME="+g.path("data"),
		"XDG_STATE_HOME="+g.path("state"), "XDG_CONFIG_HOME="+g.path("config"), "DESK_SECRET="+deskSecret)
	return cmd
}

// cli runs a command while the gateway runs, and returns its stdout.
func (g *guarded) cli(args ...string) string {
	g.t.Helper()
	out, err := g.try(args...)
	if err != nil {
		g.t.Errorf("sallyport %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (g *guarded) try(args ...string) (string, error) {
	cmd := g.command(args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, errs.String(), out)
	}
	return string(out), err
}

// serve starts the gateway, with a client that can be asked or one that cannot.
func (g *guarded) serve(asks bool) {
	g.t.Helper()
	if g.version == "2025-11-25" {
		g.cmd = g.command("serve")
		g.cmd.Stderr = g.log
		g.session = g.dial(&mcp.CommandTransport{Command: g.cmd, TerminateDuration: 10 * time.Second}, asks)
		return
	}
	g.cmd = g.command("serve", "--http", "127.0.0.1:0")
	g.cmd.Stderr = g.log
	before := len(g.log.String())
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	testutil.Eventually(g.t, "it listens", 20*time.Second, func() bool {
		found := listeningAt.FindStringSubmatch(g.log.String()[before:])
		if found != nil {
			g.url = found[1]
		}
		return found != nil
	})
	g.session = g.as(aliceToken, asks)
}

var listeningAt = regexp.MustCompile(`msg=listening address=(\S+)`)

// as is a client over HTTP with that token.
func (g *guarded) as(token string, asks bool) *mcp.ClientSession {
	g.t.Helper()
	return g.dial(&mcp.StreamableClientTransport{Endpoint: g.url, HTTPClient: &http.Client{Transport: bearing(token)}}, asks)
}

type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (g *guarded) dial(transport mcp.Transport, asks bool) *mcp.ClientSession {
	g.t.Helper()
	opts := &mcp.ClientOptions{}
	if asks {
		opts.ElicitationHandler = g.person.answer
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "guard-test", Version: "1"}, opts).Connect(g.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: g.version})
	if err != nil {
		g.t.Fatalf("%v\n%s", err, g.log)
	}
	if got := session.InitializeResult().ProtocolVersion; got != g.version {
		g.t.Fatalf("speaks %s, not %s", got, g.version)
	}
	return session
}

// kill ends the gateway as a crash would.
func (g *guarded) kill() {
	if g.session == nil {
		return
	}
	_ = g.cmd.Process.Signal(syscall.SIGKILL)
	_ = g.session.Close()
	if g.version != "2025-11-25" {
		_ = g.cmd.Wait()
	}
	g.session = nil
}

// stop ends it politely; it must end well.
func (g *guarded) stop() {
	g.t.Helper()
	if g.session == nil {
		return
	}
	if g.version == "2025-11-25" {
		if err := g.session.Close(); err != nil {
			g.t.Error(err)
		}
	} else {
		_ = g.cmd.Process.Signal(syscall.SIGTERM)
		if err := g.cmd.Wait(); err != nil {
			g.t.Error(err)
		}
		_ = g.session.Close()
	}
	g.session = nil
}

// run has a program run as a model would, and gives what the model reads.
func (g *guarded) run(code string) string { return g.runWith(map[string]any{"code": code}) }

func (g *guarded) runWith(args map[string]any) string {
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	return execute(ctx, g.session, args)
}

// execute gives what a model reads of execute_code, or the error of the protocol.
func execute(ctx context.Context, session *mcp.ClientSession, args map[string]any) string {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: args})
	if err != nil {
		return "protocol: " + err.Error()
	}
	var text strings.Builder
	for _, content := range result.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			text.WriteString(block.Text)
		}
	}
	return text.String()
}

// want checks what a model reads: each part is in it, or is not where it begins with "!".
func want(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		absent, no := strings.CutPrefix(part, "!")
		if no && strings.Contains(got, absent) || !no && !strings.Contains(got, part) {
			t.Errorf("%s: want %q in:\n%s", what, part, got)
		}
	}
}

// api asks the JSON API over HTTP, and gives status and body.
func (g *guarded) api(token, method, path, body string) (int, string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, strings.TrimSuffix(g.url, "/mcp")+"/api"+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data)
}

// person sits at the client, and answers each question as the test says; without a word of it, with a refusal.
type person struct {
	mu    sync.Mutex
	asked []string
	next  func(message string) *mcp.ElicitResult
}

// says has the person answer so from now on.
func (p *person) says(next func(message string) *mcp.ElicitResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.asked = next, nil
}

// decides has every question answered with a decision.
func (p *person) decides(decision string) {
	p.says(func(string) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}
	})
}

// questions are those since the person was told how to answer.
func (p *person) questions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func (p *person) answer(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req.Params.Message)
	if p.next == nil {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	return p.next(req.Params.Message), nil
}

// lines is a log that is written and read at once.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(data)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// deskSecret is a secret of the upstream desk, which returns it in its results.
const deskSecret = "s3cret-of-the-desk-0451"

// counter is "desk", an upstream of the test that counts what it is asked to do.
type counter struct {
	url  string
	open chan struct{} // closed, it lets "hold" answer
	held chan struct{} // has one for each call of "hold"

	mu  sync.Mutex
	did map[string]int
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	d := &counter{did: map[string]int{}, open: make(chan struct{}), held: make(chan struct{}, 9)}
	server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	const schema = `{"type":"object","properties":{"text":{"type":"string"}}}`
	add := func(name string, reads bool, answer func(ctx context.Context, req *mcp.CallToolRequest, text string) (string, error)) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var args struct{ Text string }
				_ = json.Unmarshal(req.Params.Arguments, &args) // no text then
				d.count(name + " " + args.Text)
				text, err := answer(ctx, req, args.Text)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, err
			})
	}
	add("look", true, func(_ context.Context, _ *mcp.CallToolRequest, text string) (string, error) {
		return "seen " + text, nil
	})
	add("push", false, func(_ context.Context, _ *mcp.CallToolRequest, text string) (string, error) {
		return "pushed " + text, nil
	})
	add("leak", true, func(_ context.Context, req *mcp.CallToolRequest, _ string) (string, error) {
		return "you sent " + req.Extra.Header.Get("X-Desk-Key"), nil
	})
	add("hold", true, func(ctx context.Context, _ *mcp.CallToolRequest, _ string) (string, error) {
		d.held <- struct{}{}
		select {
		case <-d.open:
		case <-ctx.Done():
		}
		return "let go", nil
	})
	add("greet", true, func(ctx context.Context, req *mcp.CallToolRequest, _ string) (string, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "your name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(answer.Action, " ", answer.Content["name"]), nil
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	d.url = web.URL
	return d
}

func (d *counter) count(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did[what]++
}

// times is how often it was asked to do something.
func (d *counter) times(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.did[what]
}

// post sends one message of a client of 2026-07-28, and gives what comes back.
func (g *guarded) post(t *testing.T, token, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": g.version, "Mcp-Method": "tools/call", "Mcp-Name": "execute_code"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
