// Command load has many clients at the API of a real gateway for a while, and tells how they were answered, how long that took
// and what it cost the gateway. It fails for any answer but 200, 429 and 503, the latter with Retry-After.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil/load"
)

const token = "token-of-the-load-1"

func main() {
	sallyport := flag.String("sallyport", ".cache/bin/sallyport", "the binary, with runsc in the same folder")
	clients := flag.Int("clients", 200, "clients at once")
	lasts := flag.Duration("for", time.Minute, "how long they ask")
	out := flag.String("out", "", "a file for the results as well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	text, err := measure(ctx, *sallyport, *clients, *lasts)
	fmt.Print(text)
	if *out != "" && text != "" {
		err = errors.Join(err, os.WriteFile(*out, []byte(text), 0o644)) //nolint:gosec // results are for everybody
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// measure runs a gateway under load and writes the results.
func measure(ctx context.Context, sallyport string, clients int, lasts time.Duration) (text string, err error) {
	dir, err := os.MkdirTemp("/tmp", "load-") // short: a socket's path has room for little
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	upstream, closeUpstream, err := serveUpstream()
	if err != nil {
		return "", err
	}
	defer closeUpstream()
	g, err := start(ctx, sallyport, dir, upstream)
	if err != nil {
		return "", err
	}
	options := load.Options{URL: g.url, Token: token, Clients: clients, For: lasts, Call: "from servers.bench import ping\n[ping() for _ in range(3)][-1]"}
	warm := options
	warm.Clients, warm.For = 4, 3*time.Second
	if r := load.Run(ctx, warm); r.Failed > 0 {
		return "", errors.Join(fmt.Errorf("before the load: %q", r.Wrong), g.end())
	}
	before := g.look()
	samples := g.sample(lasts)
	report := load.Run(ctx, options)
	seen := <-samples
	time.Sleep(3 * time.Second) // what is left to do for the last ones
	after := g.look()
	text = results(clients, lasts, report, seen, before, after)
	if err := g.end(); err != nil {
		return text, err
	}
	if report.Failed > 0 {
		return text, fmt.Errorf("%d wrong answers, such as %q", report.Failed, report.Wrong)
	}
	return text, nil
}

// serveUpstream is an MCP server of this process with one tool that answers at once.
func serveUpstream() (url string, closeAll func(), err error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ping", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "pong"}}}, nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(listener) }) // ErrServerClosed
	return "http://" + listener.Addr().String(), func() {
		_ = web.Close()
		serving.Wait()
	}, nil
}

// instance is a running gateway.
type instance struct {
	command *exec.Cmd
	url     string
	logged  chan struct{} // closed at the end of its log
}

var address = regexp.MustCompile(`https?://[0-9.]+:[0-9]+`)

func start(ctx context.Context, sallyport, dir, upstream string) (*instance, error) {
	binary, err := filepath.Abs(sallyport)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "upstreams.yaml")
	text := fmt.Sprintf("upstreams:\n  bench: {url: %q}\nsandbox: {typecheck: false}\nhttp: {tokens: {load: %s}, operators: [load], limits: {requests: 0, executions: 0}}\n", upstream, token)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	g := &instance{command: exec.CommandContext(ctx, binary, "serve", "--config", config, "--http", "127.0.0.1:0"), logged: make(chan struct{})}
	g.command.Cancel = func() error { return g.command.Process.Signal(syscall.SIGTERM) }
	g.command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	stderr, err := g.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stderr)
	var said strings.Builder
	for g.url == "" {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serve: %s", said.String()), g.command.Wait())
		}
		if strings.Contains(line, "127.0.0.1") {
			g.url = address.FindString(line)
		}
	}
	go func() {
		_, _ = io.Copy(os.Stderr, lines)
		close(g.logged)
	}()
	return g, nil
}

// end ends the gateway as a service manager does.
func (g *instance) end() error {
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-g.logged
	return g.command.Wait()
}

// state is what the gateway has at a moment. Goroutines is 0 where it does not say.
type state struct {
	resident          int64
	files, goroutines int
}

func (g *instance) look() (s state) {
	s.resident, s.files, _ = load.Memory(g.command.Process.Pid) // 0 for one that has gone
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, g.url+"/metrics", nil)
	if err != nil {
		return s
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return s
	}
	defer func() { _ = response.Body.Close() }()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		for _, name := range []string{"go_goroutines ", "go_goroutine_count "} {
			if value, ok := strings.CutPrefix(lines.Text(), name); ok {
				_, _ = fmt.Sscan(value, &s.goroutines) // 0 for what is no number
			}
		}
	}
	return s
}

// sample looks each second, as long as the load lasts.
func (g *instance) sample(lasts time.Duration) <-chan []int64 {
	done := make(chan []int64, 1)
	go func() {
		var all []int64
		for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Second) {
			resident, _, _ := load.Memory(g.command.Process.Pid)
			all = append(all, resident)
		}
		done <- all
	}()
	return done
}

// results are for people.
func results(clients int, lasts time.Duration, r load.Report, resident []int64, before, after state) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d concurrent POST /execute for %s (make bench-load)\n%s, %d processors, clients and upstream on the same machine\n\n", clients, lasts, runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU())
	for _, status := range slices.Sorted(maps.Keys(r.Answers)) {
		fmt.Fprintf(&b, "%-28s %8d\n", fmt.Sprintf("answers %d", status), r.Answers[status])
	}
	for _, status := range slices.Sorted(maps.Keys(r.Programs)) {
		fmt.Fprintf(&b, "%-28s %8d\n", "programs that ended "+status, r.Programs[status])
	}
	fmt.Fprintf(&b, "%-28s %8d\n%-28s %8d\n%-28s %8d\n", "clients that went away", r.Left, "events of streams", r.Streams, "wrong answers", r.Failed)
	fmt.Fprintf(&b, "%-28s %8.1f\n", "programs a second", float64(len(r.Took))/lasts.Seconds())
	fmt.Fprintf(&b, "%-28s %8s\n%-28s %8s\n\n", "p50 of those that ran", r.Percentile(0.5).Round(time.Millisecond), "p99", r.Percentile(0.99).Round(time.Millisecond))
	third := max(1, len(resident)/3)
	fmt.Fprintf(&b, "%-28s %8.1f MiB before, %.1f in the first third, %.1f in the second, %.1f in the last, %.1f after\n", "memory of the gateway (mean)",
		mib(before.resident), mean(resident[:third]), mean(resident[third:max(third, len(resident)-third)]), mean(resident[len(resident)-third:]), mib(after.resident))
	fmt.Fprintf(&b, "%-28s %8d before, %d after\n%-28s %8d before, %d after\n", "open files", before.files, after.files, "goroutines", before.goroutines, after.goroutines)
	return b.String()
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func mean(all []int64) float64 {
	if len(all) == 0 {
		return 0
	}
	var sum int64
	for _, n := range all {
		sum += n
	}
	return mib(sum / int64(len(all)))
}
