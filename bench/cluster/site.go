package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"sallyport/bench/bareserver"
	"sallyport/bench/procs"
	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox/workers"
)

const (
	token  = "token-of-the-benchmark"
	prefix = "sallyport"
)

// site is the servers, the gateways and the workers of one measurement.
type site struct {
	b   *bench
	dir string
	// servers end with the site.
	servers  *natscluster.Cluster
	ends     []func()
	gateways map[string]*gateway
	workers  map[string]*exec.Cmd
	log      complaints
}

// complaints passes on what gateways and workers log, which is errors alone, and counts it: what was measured while records could not be
// written, for example, is no result.
type complaints struct{ written atomic.Int64 }

// Write implements [io.Writer].
func (c *complaints) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	return os.Stderr.Write(p)
}

// gateway is a running serve.
type gateway struct {
	command *exec.Cmd
	web     *http.Client
}

// withSite starts servers and an upstream, has use start the rest, and ends everything.
func (b *bench) withSite(ctx context.Context, use func(s *site) error) (err error) {
	s := &site{b: b, gateways: map[string]*gateway{}, workers: map[string]*exec.Cmd{}}
	if s.dir, err = os.MkdirTemp(b.dir, ""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := use(s); err != nil {
		return err
	}
	if s.log.written.Load() > 0 {
		return errors.New("a gateway or a worker has logged an error: this is no result (see above)")
	}
	return nil
}

// start starts the servers and the upstream.
func (s *site) start(ctx context.Context) (err error) {
	h := natscluster.NewHolder(ctx, s.b.dir)
	s.ends = append(s.ends, h.End)
	if err := h.Run(func() { s.servers = natscluster.Start(h, s.b.servers) }); err != nil {
		return err
	}
	stop, err := bareserver.ServeAt(filepath.Join(s.dir, "up.sock"), upstream())
	if err == nil {
		s.ends = append(s.ends, func() { _ = stop() })
	}
	return err
}

// end ends everything, the servers last.
func (s *site) end() (err error) {
	for _, all := range []map[string]*exec.Cmd{s.commands(), s.workers} {
		for name, c := range all {
			err = errors.Join(err, endProcess(name, c))
		}
	}
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	return err
}

func (s *site) commands() map[string]*exec.Cmd {
	all := map[string]*exec.Cmd{}
	for name, g := range s.gateways {
		all[name] = g.command
	}
	return all
}

func endProcess(name string, c *exec.Cmd) error {
	err := c.Process.Signal(syscall.SIGTERM)
	if err = errors.Join(err, c.Wait()); err != nil {
		return fmt.Errorf("end %s: %w", name, err)
	}
	return nil
}

// command is sallyport with everything that it keeps below a folder of its own.
func (s *site) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	home := filepath.Join(s.dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, s.b.sallyport, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.Env = []string{"HOME=" + home, "TMPDIR=" + home, "XDG_CACHE_HOME=" + s.b.dir, "XDG_RUNTIME_DIR=" + home, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + filepath.Dir(s.b.sallyport) + ":/usr/bin:/bin"}
	c.Stderr = &s.log
	return c, c.Start()
}

// serve starts a gateway, which runs its programs itself, or on workers.
func (s *site) serve(ctx context.Context, name, sandbox string) error {
	text := fmt.Sprintf(`upstreams:
  bench: {url: "http://localhost/mcp", socket: %q, concurrency: 1024}
store: {url: %q, creds: %q, tls: {ca: %q}, replicas: %d}
http: {tokens: {bench: %s}, limits: {requests: 0, executions: 0}}
sandbox: {typecheck: false, timeout: 5m, %s}
`, filepath.Join(s.dir, "up.sock"), s.servers.URL(), s.servers.Creds, s.servers.CA, min(3, s.b.servers), token, sandbox)
	config := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	socket := filepath.Join(s.dir, name+".sock")
	c, err := s.command(ctx, name, "--config", config, "--log-level", "error", "serve", "--http", "unix:"+socket)
	if err != nil {
		return err
	}
	s.gateways[name] = &gateway{command: c, web: bareserver.Through(socket)}
	return s.warm(ctx, name)
}

// patience is how long something may take to be ready.
const patience = time.Minute

// warm runs a program until it ends well.
func (s *site) warm(ctx context.Context, name string) (err error) {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err = s.execute(ctx, name, python(lineProgram)); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// join starts a worker.
func (s *site) join(ctx context.Context, name string) error {
	rights := workers.WorkerRights(prefix, name)
	h := natscluster.NewHolder(ctx, s.b.dir)
	var creds string
	if err := h.Run(func() { creds = s.servers.User(h, name, rights.Publish, rights.Subscribe) }); err != nil {
		return err
	}
	c, err := s.command(ctx, name, "--log-level", "error", "worker", "--join", s.servers.URL(), "--creds", creds, "--ca", s.servers.CA, "--seats", fmt.Sprint(s.b.seats))
	if err == nil {
		s.workers[name] = c
	}
	return err
}

// program is what a gateway runs.
type program struct {
	Code     string `json:"code"`
	Language string `json:"language"`
	// Isolation "program" gives it a sandbox of its own.
	Isolation string `json:"isolation,omitempty"`
}

func python(code string) program { return program{Code: code, Language: "python"} }

// execute runs a program, and returns its result.
func (s *site) execute(ctx context.Context, name string, p program) (json.RawMessage, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/execute", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.gateways[name].web.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	var answer struct {
		Status string
		Result json.RawMessage
	}
	if err != nil || json.Unmarshal(data, &answer) != nil || answer.Status != "ok" {
		return nil, errors.Join(fmt.Errorf("a program on %s: %s %.500s", name, response.Status, data), err)
	}
	return answer.Result, nil
}

// processes are those of gateways, workers and sandboxes.
func (s *site) processes() map[int]procs.Process {
	procs.Reap(s.pids()...) // or what sandboxes leave behind would fill the table of processes
	return procs.Of(0, s.dir)
}

func (s *site) pids() (all []int) {
	for _, group := range []map[string]*exec.Cmd{s.commands(), s.workers} {
		for _, c := range group {
			all = append(all, c.Process.Pid)
		}
	}
	return all
}
