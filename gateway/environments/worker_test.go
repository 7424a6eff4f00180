//go:build linux

package environments_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/gateway/environments"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/packageindex"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// workerOf is a worker with environments of its own, for a gateway.
type workerOf struct {
	*remote.Client

	cache string
}

// Local implements [environments.Sandboxes].
func (*workerOf) Local() (*sandbox.Host, func(), error) { return nil, nil, errors.New("not here") }

// newWorker starts a worker with the environments of its settings.
func newWorker(t *testing.T, name string, all map[string]config.Environment) *workerOf {
	t.Helper()
	state := testutil.ShortDir(t)
	opts := sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: state, Snapshots: testutil.Snapshots(), Logger: testutil.Logger(t)}
	host, err := sandbox.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Environments = all
	var settings atomic.Pointer[config.Config]
	settings.Store(&cfg)
	w := &workerOf{cache: filepath.Join(state, "cache")}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := environments.MakeAll(t.Context(), host, environments.Options{Settings: &settings, CacheDir: w.cache, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	opts.Environments = made.All
	var links sync.WaitGroup
	dial := func(context.Context) (io.ReadWriteCloser, error) {
		near, far := net.Pipe()
		links.Go(func() {
			_ = remote.ServeWorker(context.Background(), far, remote.WorkerOptions{Version: "v1", Host: opts, Spool: t.TempDir(), Extend: made.Extend})
		})
		return near, nil
	}
	if w.Client, err = remote.New(dial, &remote.Options{Version: "v1", Guest: runtime.Guest(), Name: "worker " + name, Logger: testutil.Logger(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Close()
		links.Wait()
		made.Close()
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// evaluate runs a program on a worker, and returns its value or its error.
func (w *workerOf) evaluate(ctx context.Context, t *testing.T, e *environments.Environments, code string) string {
	t.Helper()
	job := sandboxtest.Job(sandbox.Python, code)
	if err := e.EnsureFor(ctx, &job, "data", job.Limits.Timeout); err != nil {
		return err.Error()
	}
	outcome, err := w.Run(ctx, job, sandboxtest.Echo{})
	switch {
	case err != nil:
		return err.Error()
	case outcome.Fault != nil:
		return outcome.Fault.Message
	case outcome.Value == nil:
		return fmt.Sprint(outcome)
	}
	return outcome.Value.Text
}

// gatewayOf returns the environments of a gateway with workers, of which one at a time is asked.
func gatewayOf(t *testing.T, data string, asked *atomic.Pointer[workerOf], settings config.Environment) *environments.Environments {
	t.Helper()
	cfg := config.Default()
	cfg.Sandbox.Remote = config.RemoteWorkers
	cfg.Environments = map[string]config.Environment{"data": settings}
	var source atomic.Pointer[config.Config]
	source.Store(&cfg)
	e := environments.New(environments.Options{
		Settings: &source, Logger: testutil.Logger(t), DataDir: data, Sandboxes: anyWorker{asked},
		MayInstall: func(context.Context) error { return nil },
		Packages: func(ctx context.Context, job sandbox.Job) (map[sandbox.Interpreter][]deps.InstalledPackage, error) {
			return asked.Load().Packages(ctx, *job.Added)
		},
	})
	t.Cleanup(e.Close)
	return e
}

// anyWorker runs programs on the worker that is asked.
type anyWorker struct{ asked *atomic.Pointer[workerOf] }

func (a anyWorker) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	return a.asked.Load().Run(ctx, job, caller)
}

func (a anyWorker) Local() (*sandbox.Host, func(), error) { return a.asked.Load().Local() }

// TestInstallOnWorkers: packages that a model installs are for its principal, on every worker whose settings permit it, also after a restart
// of the gateway. What cannot be installed harms nothing.
func TestInstallOnWorkers(t *testing.T) {
	testutil.Long(t)
	index := packageindex.Serve(t, "alpha", "beta", "gamma")
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	own := func(install bool) map[string]config.Environment {
		return map[string]config.Environment{"data": {Python: config.PythonPackages{Requirements: []string{"alpha==1.0"}, Index: index}, Install: install}}
	}
	one, two, closed := newWorker(t, "w1", own(true)), newWorker(t, "w2", own(true)), newWorker(t, "w3", own(false))
	var asked atomic.Pointer[workerOf]
	asked.Store(one)
	data := t.TempDir()
	e := gatewayOf(t, data, &asked, config.Environment{Install: true, Keep: true})
	ann, ben := tool.WithPrincipal(t.Context(), "ann"), tool.WithPrincipal(t.Context(), "ben")
	install := func(names ...string) string {
		said, err := e.InstallPackages(ann, environments.Packages{Names: names, Environment: "data"})
		if err != nil {
			return err.Error()
		}
		return said
	}
	want := func(got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("%q has no %q", got, part)
		}
	}
	const uses = "import alpha, beta\nalpha.NAME + ', ' + beta.NAME"
	want(one.evaluate(ann, t, e, uses), "No module named 'beta'")
	if got := install("beta"); got != "installed: beta 1.0. The next program can import them; sessions restart." {
		t.Error(got)
	}
	want(one.evaluate(ann, t, e, uses), "alpha is here, beta is here")
	want(two.evaluate(ann, t, e, uses), "alpha is here, beta is here") // it has not been asked for them before
	want(one.evaluate(ben, t, e, uses), "No module named 'beta'")
	want(install("delta"), "worker w1: install packages: ")
	want(install("delta"), "delta")
	want(install("resets"), "resets")
	want(install("--index-url=http://example.com"), "refused")
	want(install("alpha==2.0"), "named twice")
	want(one.evaluate(ann, t, e, uses), "alpha is here, beta is here")
	want(closed.evaluate(ann, t, e, uses), "worker w3: packages cannot be installed in environment data: the settings of that machine do not have `install: true`")
	asked.Store(closed)
	want(install("gamma"), "worker w3: packages cannot be installed in environment data")
	asked.Store(one)
	for principal, packages := range map[context.Context]string{ann: "alpha 1.0\nbeta 1.0", ben: "alpha 1.0"} {
		if got, err := e.InstalledPackages(principal, environments.Packages{Environment: "data"}); err != nil || got != packages {
			t.Errorf("%q, %v", got, err)
		}
	}
	if found, err := e.FindPackages(ann, environments.Packages{Environment: "data", Names: []string{"beta", "gamma"}}); err != nil || len(found) != 1 || found["beta"] != "1.0" {
		t.Error(found, err)
	}
	again := gatewayOf(t, data, &asked, config.Environment{Install: true, Keep: true})
	want(two.evaluate(ann, t, again, uses), "alpha is here, beta is here")
	want(two.evaluate(ben, t, again, uses), "No module named 'beta'")
	if _, err := gatewayOf(t, data, &asked, config.Environment{}).InstallPackages(ann, environments.Packages{Names: []string{"gamma"}, Environment: "data"}); err == nil || !strings.Contains(err.Error(), "packages cannot be installed in environment data") {
		t.Errorf("where the gateway does not permit it: %v", err)
	}
}

// TestInstallNodeOnWorkers: packages of npm are installed and listed as those of Python are, in the same environment.
func TestInstallNodeOnWorkers(t *testing.T) {
	testutil.Long(t)
	testutil.Program(t, "npm")
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	own := config.Environment{Python: config.PythonPackages{Index: packageindex.Serve(t, "alpha")}, TypeScript: config.NodePackages{Registry: packageindex.ServeNPM(t, "delta")}, Install: true}
	one := newWorker(t, "w1", map[string]config.Environment{"data": own})
	var asked atomic.Pointer[workerOf]
	asked.Store(one)
	e := gatewayOf(t, "", &asked, config.Environment{Install: true})
	for language, names := range map[string][]string{"python": {"alpha", "alpha 1.0"}, "typescript": {"delta", "delta 1.0.0"}} {
		said, err := e.InstallPackages(t.Context(), environments.Packages{Names: names[:1], Language: language, Environment: "data"})
		if err != nil || said != "installed: "+names[1]+". The next program can import them; sessions restart." {
			t.Errorf("%q, %v", said, err)
		}
		if said, err := e.InstalledPackages(t.Context(), environments.Packages{Language: language, Environment: "data"}); err != nil || said != names[1] {
			t.Errorf("%q, %v", said, err)
		}
	}
	for interpreter, code := range map[sandbox.Interpreter]string{sandbox.Python: "import alpha\nalpha.NAME", sandbox.Node: "import delta from 'delta'; export default delta"} {
		job := sandboxtest.Job(interpreter, code)
		if err := e.EnsureFor(t.Context(), &job, "data", time.Minute); err != nil {
			t.Fatal(err)
		}
		if o, err := one.Run(t.Context(), job, sandboxtest.Echo{}); err != nil || o.Value == nil || !strings.Contains(o.Value.Text, "a is here") {
			t.Errorf("%s: %+v, %v", interpreter, o, err)
		}
	}
}

// TestHostileGateway: a worker checks all that a gateway asks it to add, and runs no program without it.
func TestHostileGateway(t *testing.T) {
	testutil.Long(t)
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	w := newWorker(t, "w1", map[string]config.Environment{"open": {Python: config.PythonPackages{Index: packageindex.Serve(t, "alpha")}, Install: true}, "closed": {}})
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf("p%d", i)
	}
	python := func(names ...string) map[sandbox.Interpreter][]string {
		return map[sandbox.Interpreter][]string{sandbox.Python: names}
	}
	for name, test := range map[string]struct {
		added sandbox.Added
		want  string
	}{
		"not permitted":     {sandbox.Added{Environment: "closed", Packages: python("alpha")}, "do not have `install: true`"},
		"no environment":    {sandbox.Added{Environment: "\x1b[31mred", Packages: python("alpha")}, "does not have the environment"},
		"the host's own":    {sandbox.Added{Packages: python("alpha")}, "does not have the environment"},
		"too many":          {sandbox.Added{Environment: "open", Packages: python(many...)}, "at most 50 packages"},
		"none":              {sandbox.Added{Environment: "open", Packages: python()}, "name 1 to"},
		"an option":         {sandbox.Added{Environment: "open", Packages: python("--pre")}, "options are not accepted"},
		"a URL":             {sandbox.Added{Environment: "open", Packages: python("alpha @ https://example.com/a.whl")}, "URLs and paths are not accepted"},
		"two lines":         {sandbox.Added{Environment: "open", Packages: python("alpha\n--pre")}, "invalid characters"},
		"a name twice":      {sandbox.Added{Environment: "open", Packages: python("alpha", "Alpha")}, "named twice"},
		"an interpreter":    {sandbox.Added{Environment: "open", Packages: map[sandbox.Interpreter][]string{"ruby": {"alpha"}}}, "there is no interpreter"},
		"what there is not": {sandbox.Added{Environment: "open", Packages: python("nothing")}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Packages(t.Context(), test.added)
			if _, ok := errors.AsType[*remote.AddError](err); !ok || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("a list: %v", err)
			}
			job := sandboxtest.Job(sandbox.Python, "1")
			job.Environment, job.Added = "x", &test.added
			if o, err := w.Run(t.Context(), job, sandboxtest.Echo{}); err == nil || !strings.Contains(err.Error(), "environment") && !strings.Contains(err.Error(), test.want) {
				t.Errorf("a program: %+v, %v", o, err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	job := sandboxtest.Job(sandbox.Python, "1")
	job.Environment, job.Added = "x", &sandbox.Added{Environment: "open", Packages: python("alpha")}
	if o, err := w.Run(ctx, job, sandboxtest.Echo{}); err != nil || o.Status != sandbox.Canceled && o.Status != sandbox.OK {
		t.Errorf("a program that is canceled while its packages are added: %+v, %v", o, err)
	}
}

// TestShareInstallation: programs that need the same packages share one installation, and one whose time is over does not end it.
func TestShareInstallation(t *testing.T) {
	testutil.Long(t)
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	w := newWorker(t, "w1", map[string]config.Environment{"open": {Python: config.PythonPackages{Index: packageindex.Serve(t, "alpha")}, Install: true}})
	job := func() sandbox.Job {
		j := sandboxtest.Job(sandbox.Python, "import alpha\nalpha.NAME")
		j.Environment, j.Added = "x", &sandbox.Added{Environment: "open", Packages: map[sandbox.Interpreter][]string{sandbox.Python: {"alpha"}}}
		return j
	}
	short := job()
	short.Limits.Timeout = time.Millisecond
	if o, err := w.Run(t.Context(), short, sandboxtest.Echo{}); err == nil || !strings.Contains(err.Error(), "environment open is being installed (try again in a moment)") {
		t.Errorf("%+v, %v", o, err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if o, err := w.Run(t.Context(), job(), sandboxtest.Echo{}); err != nil || o.Value == nil || !strings.Contains(o.Value.Text, "alpha is here") {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
	all.Wait()
	layers, err := filepath.Glob(filepath.Join(w.cache, "packages", "layers", "*"))
	if err != nil || len(layers) != 1 {
		t.Error(layers, err)
	}
}

// TestTooManyInstallations: a worker bounds the installations that gateways begin, also if these no longer wait for them, and ends them when it
// ends.
func TestTooManyInstallations(t *testing.T) {
	testutil.Long(t)
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	silent := tlstest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	w := newWorker(t, "w1", map[string]config.Environment{"open": {Python: config.PythonPackages{Index: silent.URL + "/simple/"}, Install: true}})
	ask := func(name string) error {
		job := sandboxtest.Job(sandbox.Python, "1")
		job.Limits.Timeout = time.Millisecond
		job.Environment, job.Added = name, &sandbox.Added{Environment: "open", Packages: map[sandbox.Interpreter][]string{sandbox.Python: {name}}}
		_, err := w.Run(t.Context(), job, sandboxtest.Echo{})
		return err
	}
	for i := range 32 {
		if err := ask(fmt.Sprintf("p%d", i)); err == nil || !strings.Contains(err.Error(), "is being installed") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := ask("p7"); err == nil || !strings.Contains(err.Error(), "is being installed") {
		t.Errorf("one that is in progress: %v", err)
	}
	if err := ask("one-more"); err == nil || !strings.Contains(err.Error(), "too many packages are being installed") {
		t.Errorf("one more: %v", err)
	}
}
