package plugin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/codegen/bundle"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/sandbox"
)

//go:embed guest/host.py
var hostPython []byte

//go:embed guest/host.mjs
var hostNode []byte

//go:embed guest/sallyport.ts
var moduleTypeScript []byte

// Paths in the sandbox of a plugin.
const (
	pluginDir = "/plugin"
	codeDir   = "code"
	filesDir  = "/files/"
)

const (
	processes = 32
	openFiles = 128
	// maxFailures is how many times a plugin may crash or hang in a row before it is off; provenAfter is how long it must
	// run to begin the count again.
	maxFailures = 5
	provenAfter = time.Minute
	backoffMin  = 200 * time.Millisecond
	backoffMax  = 10 * time.Second
)

// Serve starts a sandbox.
type Serve func(service sandbox.Service) (Conn, error)

// Grants are what a plugin may use of what it asks for.
type Grants = config.PluginGrants

// runner runs one version of a plugin: it starts its sandbox when it is needed, and again after a crash. It is safe for
// concurrent use.
type runner struct {
	plugin  folder.Plugin
	grants  Grants
	serve   Serve
	log     *slog.Logger
	id      func() string
	secrets *redact.Mask
	// wanted is the digest of the offer that was reviewed, "" for any. onOffer gets the offer after each start.
	wanted  string
	onOffer func(*offer)
	// slots bound the concurrent calls: those of tools and steps, which may take long, and all others.
	slots [2]chan struct{}
	calls atomic.Int64
	// quit is closed to end a start that is under way.
	quit chan struct{}

	mu       sync.Mutex
	process  *process
	attempt  *attempt // nil if none is under way
	started  time.Time
	failures int
	until    time.Time // of the pause before the next start
	last     error     // why it failed
	off      error     // why it is not started again; nil if it is
	closed   bool
	work     sync.WaitGroup
}

// attempt is a start that several calls wait for. process and err are set when done is closed.
type attempt struct {
	done    chan struct{}
	process *process
	err     error
}

// OffError says that a plugin is not running, and why.
type OffError struct {
	Plugin string
	Reason string
	// Pause says that it will be started again.
	Pause bool
}

// Error names the plugin and the reason.
func (e *OffError) Error() string {
	if e.Pause {
		return "plugin " + e.Plugin + " failed: " + e.Reason
	}
	return "plugin " + e.Plugin + " is off: " + e.Reason
}

func (r *runner) offError(err error, pause bool) error {
	return &OffError{Plugin: r.plugin.Name, Reason: r.secrets.Text(err.Error()), Pause: pause}
}

var errClosed = errors.New("the gateway has stopped it")

// acquire returns the running process, after it has been started if necessary.
func (r *runner) acquire(ctx context.Context) (*process, error) {
	r.mu.Lock()
	switch {
	case r.closed:
		r.mu.Unlock()
		return nil, r.offError(errClosed, false)
	case r.process != nil && r.process.ctx.Err() == nil:
		p := r.process
		r.mu.Unlock()
		return p, nil
	case r.off != nil:
		defer r.mu.Unlock()
		return nil, r.offError(r.off, false)
	case r.attempt == nil && time.Now().Before(r.until):
		defer r.mu.Unlock()
		return nil, r.offError(fmt.Errorf("%w; it failed %d times, the next start is in %v", r.last, r.failures, time.Until(r.until).Round(100*time.Millisecond)), true)
	}
	if r.attempt == nil {
		r.attempt = &attempt{done: make(chan struct{})}
		r.work.Go(r.start)
	}
	a := r.attempt
	r.mu.Unlock()
	select {
	case <-a.done:
		return a.process, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start starts the sandbox, and tells those who wait for it.
func (r *runner) start() {
	p, err := r.launch()
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempt
	r.attempt = nil
	switch {
	case err != nil:
		r.fail(err)
		a.err = r.offError(err, r.off == nil)
	case r.closed:
		p.kill(errClosed)
		a.err = r.offError(errClosed, false)
	default:
		r.process, r.started, a.process = p, time.Now(), p
		r.work.Go(func() { r.watch(p) })
	}
	close(a.done)
}

// watch records the end of a process.
func (r *runner) watch(p *process) {
	<-p.ended
	<-p.conn.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == p {
		r.process = nil
	}
	if !r.closed {
		if time.Since(r.started) > provenAfter {
			r.failures = 0
		}
		r.fail(p.why())
	}
}

// fail records a crash, a hang or a start that failed. It is called with mu held.
func (r *runner) fail(why error) {
	if r.failures++; r.failures > 1 { // the first restart is immediate
		r.until = time.Now().Add(min(backoffMin<<min(r.failures-2, 10), backoffMax))
	}
	r.last = why
	reason := r.secrets.Text(why.Error())
	if r.failures >= maxFailures || permanent(why) {
		r.off = why
		r.log.Error("plugin is off", "plugin", r.plugin.Name, "reason", reason, "failures", r.failures)
		return
	}
	r.log.Warn("plugin failed", "plugin", r.plugin.Name, "reason", reason, "failures", r.failures)
}

// manifestError is a disagreement of code and manifest, which a restart does not fix.
type manifestError struct{ text string }

func (e *manifestError) Error() string { return e.text }

func permanent(err error) bool {
	_, lie := errors.AsType[*manifestError](err)
	return lie
}

// launch starts the sandbox and waits until the code is loaded.
func (r *runner) launch() (*process, error) {
	service, err := r.service()
	if err != nil {
		return nil, err
	}
	conn, err := r.serve(service)
	if err != nil {
		return nil, fmt.Errorf("its sandbox did not start: %w", err)
	}
	p := newProcess(conn, newFetcher(r.grants.Hosts).do)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { p.kill(fmt.Errorf("its code was not loaded within %v", startTimeout)) })
	defer stop()
	r.work.Go(func() {
		select {
		case <-r.quit:
			p.kill(errClosed)
		case <-ctx.Done():
		}
	})
	m := &r.plugin.Manifest
	init := map[string]any{"entry": r.plugin.Entry, "functions": m.Functions(), "described": append([]string{}, slices.Concat(m.Tools, m.Steps)...), "secrets": map[string]string(r.grants.Secrets)}
	if err := p.send(ctx, map[string]any{"init": init}); err != nil {
		p.close(err)
		return nil, p.why()
	}
	select {
	case functions := <-p.ready:
		if err := r.check(functions); err != nil {
			p.close(err)
			return nil, err
		}
		return p, nil
	case <-p.ctx.Done():
		p.close(p.why())
		return nil, p.why()
	}
}

// service returns the sandbox of the plugin.
func (r *runner) service() (sandbox.Service, error) {
	s := sandbox.Service{
		ID: r.id(), Interpreter: sandbox.Python, Dir: pluginDir, Memory: int64(r.plugin.Memory), Processes: processes, OpenFiles: openFiles,
		Args: []string{"-I", "-S", "-B", "-u", pluginDir + "/host.py"}, Files: map[string][]byte{"host.py": hostPython}, Mounts: map[string]string{},
	}
	for name, data := range r.plugin.Content {
		s.Files[codeDir+"/"+name] = data
	}
	for name, at := range r.grants.Files {
		s.Mounts[filesDir+name] = at
	}
	if !r.plugin.TypeScript() {
		return s, nil
	}
	code, err := bundle.Compile(string(r.plugin.Content[r.plugin.Entry]), noServers{}, moduleTypeScript, &bundle.Options{File: r.plugin.Entry, Files: func(name string) ([]byte, bool) {
		data, ok := r.plugin.Content[name]
		return data, ok
	}})
	if err != nil {
		return s, compileError(err, r.plugin.Entry)
	}
	s.Interpreter, s.Args = sandbox.Node, []string{"--enable-source-maps", pluginDir + "/host.mjs"}
	delete(s.Files, "host.py")
	s.Files["host.mjs"], s.Files[codeDir+"/main.mjs"] = hostNode, []byte(code)
	return s, nil
}

// compileError returns an error of the compiler with its place.
func compileError(err error, entry string) error {
	if e, ok := errors.AsType[*bundle.Error](err); ok && e.Line > 0 {
		file := entry
		if e.File != "" {
			file = e.File
		}
		return &manifestError{fmt.Sprintf("%s:%d: %s", file, e.Line, e.Message)}
	}
	return &manifestError{err.Error()}
}

// noServers is a tree of wrappers without any: a plugin calls no tools.
type noServers struct{}

func (noServers) File(string) ([]byte, bool) { return nil, false }
func (noServers) List(string) []string       { return nil }

// check compares what the code has with what the manifest says.
func (r *runner) check(functions map[string]function) error {
	var missing []string
	for _, name := range r.plugin.Functions() {
		if _, ok := functions[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return &manifestError{fmt.Sprintf("%s names %s, which %s does not have", folder.ManifestName, strings.Join(missing, ", "), r.plugin.Entry)}
	}
	if r.plugin.TypeScript() {
		described, err := tsFunctions(string(r.plugin.Content[r.plugin.Entry]), slices.Concat(r.plugin.Tools, r.plugin.Steps))
		if err != nil {
			return &manifestError{r.plugin.Entry + ": " + err.Error()}
		}
		maps.Copy(functions, described)
	}
	offer, err := newOffer(&r.plugin, functions)
	if err != nil {
		return &manifestError{err.Error()}
	}
	if r.wanted != "" && r.wanted != offer.digest() {
		return &manifestError{"what it says about its functions is not what was reviewed, although its files are: it depends on more than them"}
	}
	r.onOffer(offer)
	return nil
}

// call calls a function within a time.
func (r *runner) call(ctx context.Context, limit time.Duration, q request) (json.RawMessage, error) {
	r.calls.Add(1)
	defer r.calls.Add(-1)
	slots := r.slots[0]
	if q.Kwargs == nil {
		slots = r.slots[1]
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	value, err := p.call(limited, q)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		hang := fmt.Errorf("%s did not answer within %v", q.Run, limit)
		p.kill(hang)
		return nil, r.offError(hang, true)
	}
	if _, fault := errors.AsType[*Fault](err); err != nil && !fault && ctx.Err() == nil && p.ctx.Err() != nil {
		return nil, r.offError(err, true)
	}
	return value, err
}

// retire closes it when its calls have ended, after a time at the latest.
func (r *runner) retire(patience time.Duration) {
	for end := time.Now().Add(patience); r.calls.Load() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	r.close()
}

// close stops the sandbox and waits until it is removed.
func (r *runner) close() {
	r.mu.Lock()
	if !r.closed {
		close(r.quit)
	}
	r.closed = true
	if r.process != nil {
		r.process.kill(errClosed)
	}
	r.mu.Unlock()
	r.work.Wait()
}

// offReason returns why the plugin is off, "" if it is not.
func (r *runner) offReason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off == nil {
		return ""
	}
	return r.secrets.Text(r.off.Error())
}
