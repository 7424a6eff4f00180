//go:build linux

package runsc_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/testutil"
	"sallyport/sandbox/runsc"
)

// standIn writes a shell script that stands in for runsc, in a directory of its
// own whose name every process of the test carries in its command line. At the
// end none may be left.
func standIn(t *testing.T, script string) (path, dir string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "runsc")
	testutil.WriteProgram(t, path, "#!/bin/sh\nDIR='"+dir+"'\n"+script+"\n")
	t.Cleanup(func() { testutil.NoProcesses(t, dir) })
	return path, dir
}

// TestArguments is what runsc is called with, verb by verb.
func TestArguments(t *testing.T) {
	path, dir := standIn(t, `printf '%s\n' "$@" >"$DIR/args"`)
	called := func() []string {
		data, err := os.ReadFile(filepath.Join(dir, "args"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	image := filepath.Join(dir, "image")
	plain := []string{"--root=/r", "--platform=systrap", "--network=none", "--host-uds=open", "--overlay2=none", "--file-access-mounts=exclusive", "--ignore-cgroups=true"}
	full := []string{"--root=/r", "--platform=kvm", "--network=none", "--host-uds=open", "--overlay2=none", "--file-access-mounts=exclusive", "--ignore-cgroups=true", "--debug", "--debug-log=/log/"}
	for _, settings := range []struct {
		name  string
		runsc runsc.Runsc
		flags []string
	}{
		{"plain", runsc.Runsc{Path: path, Root: "/r"}, plain},
		{"service", runsc.Runsc{Path: path, Root: "/r", SharedMounts: true, NoSockets: true, Nice: 5},
			[]string{"--root=/r", "--platform=systrap", "--network=none", "--host-uds=none", "--overlay2=none", "--file-access-mounts=shared", "--ignore-cgroups=true"}},
		{"full", runsc.Runsc{Path: path, Root: "/r", Platform: "kvm", Rootless: true, DebugLog: "/log/"}, full},
	} {
		r := settings.runsc
		for _, verb := range []struct {
			name string
			call func() error
			args []string
		}{
			{"kill", func() error { return r.Stop(t.Context(), "e-1") }, []string{"kill", "--all", "e-1", "STOP"}},
			{"pipe", func() error { return r.Pipe(t.Context(), "e-1", nil, nil, "/bin/cat", "-n") },
				[]string{"exec", "--user=0:0", "--cap=CAP_DAC_READ_SEARCH", "--cwd=/", "e-1", "/bin/cat", "-n"}},
			{"run", func() error {
				p, err := r.Start("e-1", "/b", runsc.Stdio{})
				if err == nil {
					_, err = p.Wait()
				}
				return err
			}, []string{"run", "--bundle=/b", "--pid-file=/b/sentry.pid", "e-1"}},
			{"restore", func() error {
				p, err := r.Restore("e-1", "/b", "/i", runsc.Stdio{})
				if err == nil {
					_, err = p.Wait()
				}
				return err
			}, []string{"restore", "--image-path=/i", "--bundle=/b", "--pid-file=/b/sentry.pid", "e-1"}},
			{"checkpoint", func() error { return r.Checkpoint(t.Context(), "e-1", image) }, []string{"checkpoint", "--image-path=" + image, "e-1"}},
		} {
			t.Run(settings.name+" "+verb.name, func(t *testing.T) {
				if err := verb.call(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(append(append([]string{}, settings.flags...), verb.args...), called()); diff != "" {
					t.Errorf("arguments (-want +got):\n%s", diff)
				}
			})
		}
	}
	if _, err := (&runsc.Runsc{Path: path}).Version(t.Context()); err != nil || !cmp.Equal(called(), []string{"--version"}) {
		t.Errorf("version was asked for with %q, %v", called(), err)
	}
}

func TestExitError(t *testing.T) {
	path, _ := standIn(t, `echo "$DIR out"; echo 'cannot do that' >&2; exit 3`)
	err := (&runsc.Runsc{Path: path}).Stop(t.Context(), "x")
	exit, ok := errors.AsType[*runsc.ExitError](err)
	if !ok || !cmp.Equal(*exit, runsc.ExitError{Verb: "kill", Status: 3, Output: "cannot do that"}) {
		t.Errorf("error %+v", err)
	}
	if got, want := err.Error(), "runsc kill: exit status 3: cannot do that"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	path, _ = standIn(t, `i=0; while [ $i -lt 500 ]; do echo "line $i of many" >&2; i=$((i+1)); done; exit 1`)
	err = (&runsc.Runsc{Path: path}).Stop(t.Context(), "x")
	if exit, ok := errors.AsType[*runsc.ExitError](err); !ok || len(exit.Output) != 2048 || !strings.HasSuffix(exit.Output, "line 499 of many") {
		t.Errorf("error %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SALLYPORT_CANARY", "canary-0123456789abcdef")
	path, dir := standIn(t, `env >"$DIR/env"`)
	r := runsc.Runsc{Path: path}
	for name, call := range map[string]func() error{
		"kill": func() error { return r.Stop(t.Context(), "e-1") },
		"run": func() error {
			p, err := r.Start("e-1", dir, runsc.Stdio{})
			if err == nil {
				_, err = p.Wait()
			}
			return err
		},
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
		env, err := os.ReadFile(filepath.Join(dir, "env"))
		if err != nil || !strings.Contains(string(env), "PATH="+os.Getenv("PATH")) || strings.Contains(string(env), "canary") {
			t.Errorf("%s: %v, environment:\n%s", name, err, env)
		}
	}
}

func TestContextEndsACommand(t *testing.T) {
	path, _ := standIn(t, "trap '' TERM INT HUP; while :; do :; done")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := (&runsc.Runsc{Path: path}).Stop(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestNoRunsc(t *testing.T) {
	r := runsc.Runsc{Path: filepath.Join(t.TempDir(), "runsc")}
	_, versionErr := r.Version(t.Context())
	_, startErr := r.Start("e-1", t.TempDir(), runsc.Stdio{})
	for _, err := range []error{versionErr, startErr, r.Stop(t.Context(), "x")} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	}
}

// TestPipe: what a process inside reads and says goes through.
func TestPipe(t *testing.T) {
	path, _ := standIn(t, `cat; echo 'it is' >&2; exit 5`)
	var out strings.Builder
	err := (&runsc.Runsc{Path: path}).Pipe(t.Context(), "e-1", strings.NewReader("asked"), &out, "x")
	if exit, ok := errors.AsType[*runsc.ExitError](err); !ok || exit.Status != 5 || exit.Verb != "exec" || out.String() != "asked" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestRealRunsc asks the real one what can be asked without a container; package sandbox runs containers.
func TestRealRunsc(t *testing.T) {
	r := runsc.Runsc{Path: testutil.Runsc(t), Root: filepath.Join(t.TempDir(), "not there yet"), Rootless: os.Geteuid() != 0}
	if version, err := r.Version(t.Context()); err != nil || !strings.HasPrefix(version, "runsc version ") {
		t.Errorf("version %q, %v", version, err)
	}
	if exit, ok := errors.AsType[*runsc.ExitError](r.Stop(t.Context(), "never-was")); !ok || exit.Verb != "kill" {
		t.Errorf("stopping what is not there: %v", exit)
	}
}
