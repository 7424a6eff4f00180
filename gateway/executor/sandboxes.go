package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/workers"
)

// Sandboxes owns the sandbox host. The first program that needs the host opens it; after
// a failure the next program tries again. Searching and calling tools work without
// gVisor, running code does not.
type Sandboxes struct {
	opts      SandboxOptions
	onPublish func(files map[string][]byte) // called with the published files
	quit      chan struct{}                 // closed by EndPrograms
	runs      sync.WaitGroup
	programs  sync.WaitGroup // the runs that are programs
	mu        sync.Mutex
	host      Host
	local     *sandbox.Host // nil if the sandboxes are on another machine
	files     func() map[string][]byte
	stale     bool // files are not published
	ended     bool
}

// NewSandboxes returns sandboxes that are not open yet.
func NewSandboxes(opts SandboxOptions) *Sandboxes {
	return &Sandboxes{opts: opts, onPublish: func(map[string][]byte) {}, quit: make(chan struct{})}
}

// Run runs one job. EndPrograms cancels it and waits for it. Errors are *tool.Error.
func (r *Sandboxes) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	host, err := r.acquire(&r.programs)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	defer r.release()
	defer r.programs.Done()
	ctx, cancel := r.untilEnd(ctx)
	defer cancel()
	outcome, err := host.Run(ctx, job, caller)
	if err == nil {
		return outcome, nil
	}
	if refused, ok := errors.AsType[*remote.AddError](err); ok {
		return outcome, &tool.Error{Kind: tool.Failed, Message: sanitize.Line(refused.Text, 600), Err: err}
	}
	refusal := &tool.Error{Kind: tool.Internal, Message: "the sandbox could not be started", Hint: "try again; if it persists, the operator's `sallyport doctor` says why", Err: err}
	if r.local == nil { // workers may come back, and the program was not started
		refusal.Kind, refusal.Retryable = tool.Busy, true
		refusal.Message = "the sandbox could not be started: " + sanitize.Line(err.Error(), 300)
	}
	return outcome, refusal
}

// untilEnd returns a context that EndPrograms cancels. The caller must call cancel, which Close waits for.
func (r *Sandboxes) untilEnd(ctx context.Context) (_ context.Context, cancel func()) {
	ctx, cancel = context.WithCancel(ctx)
	r.runs.Go(func() {
		select {
		case <-r.quit:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// Packages lists the packages of a job's environment on a worker, as [workers.Pool.Packages] does.
func (r *Sandboxes) Packages(ctx context.Context, job sandbox.Job) (map[sandbox.Interpreter][]deps.InstalledPackage, error) {
	host, release, err := r.borrow()
	if err != nil {
		return nil, err
	}
	defer release()
	lister, ok := host.(packageLister)
	if !ok {
		return nil, errors.New("the machine of sandbox.remote does not list packages")
	}
	ctx, cancel := r.untilEnd(ctx)
	defer cancel()
	return lister.Packages(ctx, job)
}

// packageLister is a host whose machines list and add packages.
type packageLister interface {
	Packages(ctx context.Context, job sandbox.Job) (map[sandbox.Interpreter][]deps.InstalledPackage, error)
}

// errRemote is the error for features that need the sandboxes on the gateway's machine.
var errRemote = errors.New("the sandboxes are on another machine (sandbox.remote)")

// Serve starts a service in a sandbox of its own. The caller must close it before Close is called.
func (r *Sandboxes) Serve(service sandbox.Service) (*sandbox.Server, error) {
	if _, err := r.acquire(nil); err != nil {
		return nil, err
	}
	defer r.release()
	if r.local == nil {
		return nil, errRemote
	}
	return r.local.Serve(service)
}

// borrow returns the host for uses other than running programs, until release is called.
// Close waits for release.
func (r *Sandboxes) borrow() (host Host, release func(), err error) {
	host, err = r.acquire(nil)
	if err != nil {
		return nil, nil, err
	}
	return host, sync.OnceFunc(r.release), nil
}

// Ready opens the sandboxes if necessary, and returns an error if programs cannot be run.
func (r *Sandboxes) Ready() error {
	_, release, err := r.borrow()
	if err == nil {
		release()
	}
	return err
}

// Local returns the host of this machine's sandboxes, until the returned function is called.
func (r *Sandboxes) Local() (*sandbox.Host, func(), error) {
	_, release, err := r.borrow()
	if err != nil {
		return nil, nil, err
	}
	if r.local == nil {
		release()
		return nil, nil, errRemote
	}
	return r.local, release, nil
}

// setOnPublish sets a function that is called with the files whenever they are published.
func (r *Sandboxes) setOnPublish(f func(files map[string][]byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onPublish = f
}

// acquire returns the host, opened and with the newest wrappers, and adds one to group unless that is nil. The caller must call
// release.
func (r *Sandboxes) acquire(group *sync.WaitGroup) (Host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, toolcall.ClosedError()
	}
	if err := r.prepare(); err != nil {
		return nil, &tool.Error{Kind: tool.Internal, Message: "programs cannot be run: " + err.Error(), Hint: "the operator's `sallyport doctor` says how to fix it", Err: err}
	}
	if group != nil {
		group.Add(1)
	}
	r.runs.Add(1)
	return r.host, nil
}

// retain makes Close wait until leave is called, for a program that may have to wait for a slot.
func (r *Sandboxes) retain() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return toolcall.ClosedError()
	}
	r.runs.Add(1)
	return nil
}

// release ends the use that take or hold began.
func (r *Sandboxes) release() { r.runs.Done() }

// prepare opens the host and publishes the files. It is called with mu held.
func (r *Sandboxes) prepare() error {
	if r.host == nil {
		host, local, err := r.opts.open()
		if err != nil {
			return err
		}
		r.host, r.local, r.stale = host, local, true
	}
	return r.publish()
}

// publish publishes the files to the host. After a failure the next program retries. It is called with mu held.
func (r *Sandboxes) publish() error {
	if r.host == nil || r.ended || !r.stale {
		return nil
	}
	files := r.files()
	if err := r.host.Publish(files); err != nil {
		return err
	}
	r.stale = false
	r.onPublish(files)
	return nil
}

// Publish passes the wrappers to the host, or keeps them until it is opened. Running programs keep their wrappers.
func (r *Sandboxes) Publish(files func() map[string][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files, r.stale = files, true
	return r.publish()
}

// Closing reports whether EndPrograms or Close has been called.
func (r *Sandboxes) Closing() bool {
	select {
	case <-r.quit:
		return true
	default:
		return false
	}
}

// EndPrograms cancels running programs and waits for them. No other use of the sandboxes begins afterwards.
func (r *Sandboxes) EndPrograms() {
	r.mu.Lock()
	if !r.ended {
		r.ended = true
		close(r.quit)
	}
	r.mu.Unlock()
	r.programs.Wait()
}

// Close ends running programs, waits for all uses, and closes the host. The owners of other uses must have ended them.
func (r *Sandboxes) Close() error {
	r.EndPrograms()
	r.runs.Wait()
	if r.host == nil {
		return nil
	}
	if err := r.host.Close(); err != nil {
		return fmt.Errorf("close sandboxes: %w", err)
	}
	return nil
}

// PoolSizes returns how many sandboxes of this machine are ready for programs, by language.
func (r *Sandboxes) PoolSizes() map[string]int {
	r.mu.Lock()
	host := r.local
	if r.ended {
		host = nil
	}
	r.mu.Unlock()
	all := map[string]int{}
	if host == nil {
		return all
	}
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		all[execution.LanguageName(i)], _ = host.Waiting(i)
	}
	return all
}

// Workers returns what is known of the workers of a cluster; nil if programs run elsewhere, or none has run.
func (r *Sandboxes) Workers() []workers.Stats {
	r.mu.Lock()
	pool, _ := r.host.(*workers.Pool)
	r.mu.Unlock()
	if pool == nil {
		return nil
	}
	return pool.Stats()
}

// Waiting returns how many sandboxes are ready for programs of an interpreter, 0 before the host is opened.
func (r *Sandboxes) Waiting(i sandbox.Interpreter) int {
	r.mu.Lock()
	host := r.host
	if r.ended {
		host = nil
	}
	r.mu.Unlock() // another machine may respond slowly
	if host == nil {
		return 0
	}
	n, _ := host.Waiting(i)
	return n
}
