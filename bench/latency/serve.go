package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/bareserver"
)

// setup is how serve is started.
type setup struct {
	// pool is sandbox.pool of the settings: "" is the default.
	pool string
	// checkers has programs type-checked, as they are where pyright and tsc are installed.
	checkers bool
	// upstreams is that part of the settings; "" is one small upstream over stdio, which is this program.
	upstreams string
	// principals gives the first client a token of its own, and the others another one.
	principals bool
	// dir is a folder that an earlier serve has used; "" makes one.
	dir string
}

// folder makes a folder that knows no earlier run.
func (b *bench) folder() (string, error) {
	b.folders++
	dir := filepath.Join(b.dir, strconv.Itoa(b.folders))
	return dir, os.MkdirAll(filepath.Join(dir, "run"), 0o700)
}

// settings writes what serve reads.
func (b *bench) settings(dir string, s setup) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	ups := s.upstreams
	if ups == "" {
		ups = fmt.Sprintf("upstreams:\n  bench: {command: %q, env: {%s: %q}}\n", self, upstreamVar, echoing)
	}
	tokens := ""
	if s.principals {
		tokens = fmt.Sprintf("tokens: {first: %s, others: %s}, ", firstToken, otherToken)
	}
	text := ups + "http: {" + tokens + "limits: {requests: 0, executions: 0}}\nsandbox:\n  timeout: 60s\n"
	if s.pool != "" {
		text += "  pool: " + s.pool + "\n"
	}
	if s.checkers {
		text += fmt.Sprintf("  pyright: %q\n  tsc: %q\n", b.modules+"/.bin/pyright", b.modules+"/.bin/tsc")
	}
	path = filepath.Join(dir, "upstreams.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// command is sallyport with everything that it keeps below dir.
func (b *bench) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, b.sallyport, args...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	command.Env = []string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "PATH=" + filepath.Dir(b.sallyport) + ":/usr/bin:/bin"}
	for _, name := range []string{"GODEBUG", "GOGC"} {
		if value, ok := os.LookupEnv(name); ok {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.Stderr = os.Stderr
	return command
}

// instance is one serve and its clients.
type instance struct {
	dir      string
	command  *exec.Cmd
	sessions []*mcp.ClientSession
	http     bool
}

// start starts serve over stdio, with one client, after its handshake.
func (b *bench) start(ctx context.Context, s setup) (*instance, error) {
	dir, config, err := b.prepare(s)
	if err != nil {
		return nil, err
	}
	g := &instance{dir: dir, command: b.command(ctx, dir, "--config", config, "--log-level", "error", "serve")}
	session, err := client().Connect(ctx, &mcp.CommandTransport{Command: g.command}, nil)
	if err != nil {
		return nil, err
	}
	g.sessions = append(g.sessions, session)
	return g, nil
}

func (b *bench) prepare(s setup) (dir, config string, err error) {
	if dir = s.dir; dir == "" {
		if dir, err = b.folder(); err != nil {
			return "", "", err
		}
	}
	config, err = b.settings(dir, s)
	return dir, config, err
}

func client() *mcp.Client { return mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil) }

// The tokens of clients, if there are two principals.
const firstToken, otherToken = "token-of-the-first-client", "token-of-other-clients"

// listen starts serve over HTTP, on a Unix socket, with so many clients.
func (b *bench) listen(ctx context.Context, s setup, clients int) (*instance, error) {
	dir, config, err := b.prepare(s)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "serve.sock")
	g := &instance{dir: dir, http: true, command: b.command(ctx, dir, "--config", config, "--log-level", "error", "serve", "--http", "unix:"+socket)}
	if err := g.command.Start(); err != nil {
		return nil, err
	}
	web := bareserver.Through(socket)
	if s.principals {
		web.Transport = bearer{web.Transport, firstToken}
	}
	for end := time.Now().Add(10 * time.Second); len(g.sessions) < clients; {
		session, err := client().Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://localhost/mcp", HTTPClient: web}, nil)
		if err == nil {
			g.sessions = append(g.sessions, session)
			if s.principals && len(g.sessions) == 1 {
				web = bareserver.Through(socket)
				web.Transport = bearer{web.Transport, otherToken}
			}
		} else if time.Now().After(end) {
			return nil, errors.Join(err, g.close())
		}
	}
	return g, nil
}

// bearer adds a token to requests.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// execute runs a program and returns how long that took, in milliseconds.
func (g *instance) execute(ctx context.Context, client int, l language, code, want string) (float64, error) {
	return g.call(ctx, client, l, code, want, false)
}

// call is one execute_code. Its answer, or error, must have the text want in it.
func (g *instance) call(ctx context.Context, client int, l language, code, want string, fails bool) (float64, error) {
	begin := time.Now()
	result, err := g.sessions[client].CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": code, "language": l.name}})
	took := milliseconds(time.Since(begin))
	if err != nil {
		return 0, err
	}
	if text := textOf(result); result.IsError != fails || !strings.Contains(text, want) {
		return 0, fmt.Errorf("execute_code answered %.300q, want %q", text, want)
	}
	return took, nil
}

// line runs the program of one line for the first client.
func (g *instance) line(ctx context.Context, l language) (float64, error) {
	return g.execute(ctx, 0, l, l.line, l.prints)
}

func textOf(result *mcp.CallToolResult) string {
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// close ends serve and waits until nothing of it is left.
func (g *instance) close() error {
	var errs []error
	for _, session := range g.sessions {
		errs = append(errs, session.Close())
	}
	if g.http {
		errs = append(errs, g.command.Process.Signal(syscall.SIGTERM), g.command.Wait())
	}
	return errors.Join(append(errs, g.waitExit())...)
}
