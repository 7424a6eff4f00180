//go:build linux

package isolation_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/gateway/isolation"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/egress"
	"sallyport/sandbox/image"
)

func TestMain(m *testing.M) {
	egress.Child()
	upstreamtest.Main()
	os.Exit(tlstest.M{Tests: m}.Run())
}

// installer installs without the environments of a gateway.
type installer struct{ *deps.Installer }

// images are without the environments of a gateway too.
type images struct{ image.Options }

func (i images) Image(ctx context.Context, reference string) (image.Root, error) {
	pinned, err := image.PinOnce(ctx, reference, i.Options)
	if err != nil {
		return image.Root{}, err
	}
	return image.Pull(ctx, pinned, i.Options)
}

func (i images) Moved(ctx context.Context, reference string) (string, error) {
	return image.Moved(ctx, reference, i.Options)
}

func (i installer) Layer(ctx context.Context, request deps.Request) (deps.Layer, error) {
	return i.Install(ctx, request)
}

// newLauncher returns one with real sandboxes, of which nothing may be left at the end.
func newLauncher(t testing.TB) *isolation.Launcher {
	t.Helper()
	return launcherWith(t, isolation.Options{})
}

// launcherWith is newLauncher with options.
func launcherWith(t testing.TB, opts isolation.Options) *isolation.Launcher {
	t.Helper()
	return launcherAt(t, t.TempDir(), opts)
}

// launcherAt is launcherWith with a folder of packages and images.
func launcherAt(t testing.TB, packages string, opts isolation.Options) *isolation.Launcher {
	t.Helper()
	state := testutil.ShortDir(t)
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: state, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	made, err := deps.New(host, packages, &deps.Options{Logger: testutil.Logger(t), Certificates: tlstest.Authority(t)})
	if err != nil {
		t.Fatal(err)
	}
	opts.Sandboxes, opts.Installer, opts.DataDir, opts.Logger = host, installer{made}, t.TempDir(), testutil.Logger(t)
	opts.Images = images{image.Options{Dir: filepath.Join(packages, "images"), Program: true, Logger: opts.Logger}}
	launcher := isolation.New(opts)
	t.Cleanup(func() {
		launcher.Close()
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		testutil.NoProcesses(t, state)
		_ = filepath.WalkDir(packages, func(path string, entry os.DirEntry, err error) error { // layers are read-only
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return launcher
}

// parse reads the settings of one upstream.
func parse(t testing.TB, text string) config.Upstream {
	t.Helper()
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "upstreams.yaml"), []byte("upstreams:\n  it:\n    "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")+"\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Upstreams[0]
}

// open returns a session with an upstream.
func open(t testing.TB, launcher *isolation.Launcher, up config.Upstream) *upstream.Session {
	t.Helper()
	s := upstream.New(up, &upstream.Options{Logger: testutil.Logger(t), Isolate: launcher, ConnectTimeout: 2 * time.Minute})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// hostile returns the settings of the server of testdata, whose code is mounted at a path without links.
func hostile(t testing.TB, isolate string) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return "command: python3\nargs: [" + dir + "/server.py, one]\nisolate:\n  mounts:\n    - {path: " + dir + "}\n" + isolate
}

// run has the hostile server run code and returns the value of the variable answer.
func run(t testing.TB, s *upstream.Session, code string) any {
	t.Helper()
	args, _ := json.Marshal(map[string]string{"code": code})
	got, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "it", Name: "run"}, Args: args})
	if err != nil {
		t.Fatalf("%s\n%v\n%s", code, err, s.State().Stderr)
	}
	var value any
	if err := json.Unmarshal([]byte(got.Content[0].Text), &value); err != nil {
		t.Fatalf("%s: %v", got.Content[0].Text, err)
	}
	return value
}
