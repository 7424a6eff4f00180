//go:build linux

package runsc_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox/runsc"
)

// start runs a script as the runsc of a container "e-1", which at the end of the test is destroyed.
func start(t *testing.T, script string) (*runsc.Process, string) {
	t.Helper()
	path, dir := standIn(t, script)
	p, err := (&runsc.Runsc{Path: path, Root: dir}).Start("e-1", dir, runsc.Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Destroy(); err != nil {
			t.Errorf("destroy: %v", err)
		}
		_, _ = p.Wait()
	})
	return p, dir
}

// asSentry is shell that starts a process which stands in for the sentry. It ignores what can be ignored.
const asSentry = `sh -c "trap '' TERM INT HUP; while :; do sleep 1; done # $DIR" & echo $! >"$DIR/sentry.pid"` + "\n"

// awaitFile waits until there is something in the file.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	testutil.Eventually(t, path+" is there", 5*time.Second, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
}

func ended(p *runsc.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

func TestWait(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 137": 137, "kill -KILL $$": 137, "kill -SEGV $$": 139} {
		t.Run(script, func(t *testing.T) {
			p, _ := start(t, script)
			for range 2 {
				if status, err := p.Wait(); err != nil || status != want {
					t.Errorf("status %d, %v; want %d", status, err, want)
				}
			}
			if !ended(p) || p.Sentry() != 0 {
				t.Errorf("ended %t, sentry %d", ended(p), p.Sentry())
			}
		})
	}
}

func TestStdio(t *testing.T) {
	path, dir := standIn(t, "echo to stdout; echo to stderr >&2")
	var streams [2]string
	var files [2]*os.File
	var readers sync.WaitGroup
	for i := range files {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		files[i] = w
		readers.Go(func() { data, _ := io.ReadAll(r); streams[i] = string(data); _ = r.Close() })
	}
	p, err := (&runsc.Runsc{Path: path, Root: dir}).Start("e-1", dir, runsc.Stdio{Stdout: files[0], Stderr: files[1]})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = files[0].Close(), files[1].Close()
	_, _ = p.Wait()
	readers.Wait()
	if streams != [2]string{"to stdout\n", "to stderr\n"} {
		t.Errorf("streams %q", streams)
	}
}

func TestSentry(t *testing.T) {
	p, dir := start(t, `: >"$DIR/sentry.pid"; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; echo junk >"$DIR/sentry.pid"; sleep 0.05; `+asSentry+`wait`)
	if pid := p.Sentry(); pid != 0 {
		t.Errorf("sentry %d before there is one", pid)
	}
	time.Sleep(100 * time.Millisecond) // an empty file is read again, however long it stays empty
	if pid := p.Sentry(); pid != 0 {
		t.Errorf("sentry %d of an empty file", pid)
	}
	_ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
	deadline := time.Now().Add(30 * time.Second)
	for p.Sentry() == 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	data, _ := os.ReadFile(filepath.Join(dir, "sentry.pid"))
	if want := strings.TrimSpace(string(data)); strconv.Itoa(p.Sentry()) != want {
		t.Errorf("sentry %d, want %s", p.Sentry(), want)
	}
}

// TestDestroy goes down the stairs: each step is for what the one before could not end.
func TestDestroy(t *testing.T) {
	for _, test := range []struct {
		name, script string
		clean        bool // the command itself had the time to clean up
		within       time.Duration
	}{
		{"a command that cleans up after its sentry", asSentry + `wait; echo yes >"$DIR/clean"; exit 137`, true, time.Second},
		{"a command without a sentry", `echo x >"$DIR/sentry.wait"; trap '' TERM INT HUP; while :; do sleep 1; done`, false, time.Second},
		{"a command that outlives its sentry", asSentry + `trap '' TERM INT HUP; wait; while :; do sleep 1; done`, false, time.Second},
		{"a command that is stopped", asSentry + `kill -STOP $$; wait`, false, time.Second},
		{"a command that makes processes elsewhere", asSentry + `setsid sh -c "echo x >'$DIR/elsewhere'; while :; do sleep 1; done" & while :; do sleep 1; done`, false, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, dir := start(t, test.script)
			ready := "sentry.pid"
			if strings.Contains(test.script, "sentry.wait") {
				ready = "sentry.wait"
			}
			awaitFile(t, filepath.Join(dir, ready))
			began := time.Now()
			if err := p.Destroy(); err != nil {
				t.Errorf("destroy: %v", err)
			}
			if took := time.Since(began); took > test.within+10*time.Second || !ended(p) {
				t.Errorf("took %s, ended %t", took, ended(p))
			}
			if _, err := os.Stat(filepath.Join(dir, "clean")); (err == nil) != test.clean {
				t.Errorf("the command cleaned up: %t", err == nil)
			}
			if err := p.Destroy(); err != nil {
				t.Errorf("destroy again: %v", err)
			}
		})
	}
}

func TestDestroyAtOnceAndTogether(t *testing.T) {
	p, _ := start(t, "while :; do sleep 1; done")
	var destroys sync.WaitGroup
	for range 4 {
		destroys.Go(func() {
			if err := p.Destroy(); err != nil {
				t.Errorf("destroy: %v", err)
			}
		})
	}
	destroys.Wait()
	if status, err := p.Wait(); err != nil || status != 137 {
		t.Errorf("status %d, %v", status, err)
	}
}

// TestDestroyForgets: the files of the container in runsc's root directory are removed without runsc, and no others.
func TestDestroyForgets(t *testing.T) {
	p, dir := start(t, `for verb; do [ "$verb" = run ] || continue; exit 1; done; echo "$@" >"$DIR/called"`)
	own := []string{"e-1_sandbox:e-1.state", "e-1_sandbox:e-1.lock", "runsc-e-1.sock"}
	others := []string{"e-2_sandbox:e-2.state", "runsc-e-2.sock", "runsc-e-11.sock"}
	for _, name := range append(own, others...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = p.Wait()
	if err := p.Destroy(); err != nil {
		t.Errorf("destroy: %v", err)
	}
	for i, name := range append(own, append(others, "called")...) {
		_, err := os.Stat(filepath.Join(dir, name))
		if want := i >= len(own) && name != "called"; (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", name, err == nil, want)
		}
	}
}

// TestDestroyReports: what cannot be removed is an error.
func TestDestroyReports(t *testing.T) {
	p, dir := start(t, "exit 1")
	left := filepath.Join(dir, "e-1_sandbox:e-1.state")
	if err := os.MkdirAll(filepath.Join(left, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _ = p.Wait()
	if err := p.Destroy(); err == nil {
		t.Error("no error about a file that stays")
	}
	if err := os.RemoveAll(left); err != nil {
		t.Fatal(err)
	}
}
