//go:build linux

package sandbox

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox/runsc"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestStateDir(t *testing.T) {
	base := testutil.ShortDir(t)
	in := func(name string) string { return filepath.Join(base, name) }
	made := func(name string, mode os.FileMode) string {
		must(t, os.Mkdir(in(name), 0o700), os.Chmod(in(name), mode))
		return in(name)
	}
	must(t, os.WriteFile(in("file"), nil, 0o600), os.Symlink(made("target", 0o700), in("link")))
	for _, test := range []struct{ name, dir, refused string }{
		{"new", in("new/deep"), ""},
		{"private", made("private", 0o700), ""},
		{"others may read", made("readable", 0o755), ""},
		{"a group may write", made("group", 0o770), "not writable by others"},
		{"all may write, as in /tmp", made("sticky", 0o777|os.ModeSticky), "not writable by others"},
		{"a link to a good one", in("link"), "must be a directory owned by this user"},
		{"a file", in("file"), "make state directory"},
		{"below a file", in("file/x"), "make state directory"},
		{"as long as it may be", in(strings.Repeat("x", 50-len(base)-1)), ""},
		{"too long", in(strings.Repeat("x", 50-len(base))), "too long for sockets"},
	} {
		got, err := stateDir(test.dir)
		if test.refused == "" && (err != nil || got != test.dir) || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
	if info, err := os.Stat(in("new/deep")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the new one is %v, %v", info, err)
	}
	if os.Geteuid() == 0 {
		must(t, os.Chown(made("foreign", 0o700), 65534, 65534))
		if _, err := stateDir(in("foreign")); err == nil {
			t.Error("another user's directory was taken")
		}
	}
}

func TestDefaultStateDir(t *testing.T) {
	base := testutil.ShortDir(t)
	t.Setenv("TMPDIR", base)
	t.Setenv("XDG_RUNTIME_DIR", "")
	if dir, err := stateDir(""); err != nil || !strings.HasPrefix(dir, base+"/sallyport-") {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv("XDG_RUNTIME_DIR", base)
	if dir, err := stateDir(""); err != nil || dir != base+"/sallyport" {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/proc/nobody/can/write/here")
	if dir, err := stateDir(""); err != nil || !strings.HasPrefix(dir, base+"/sallyport-") {
		t.Errorf("after a runtime directory that will not do: %q, %v", dir, err)
	}
	t.Setenv("TMPDIR", base+"/"+strings.Repeat("x", 60))
	if dir, err := stateDir(""); err != nil || !strings.HasPrefix(dir, "/tmp/sallyport-") {
		t.Errorf("after a TMPDIR that is too long: %q, %v", dir, err)
	}
}

// TestClearStale leaves what is alive, which its lock tells, and removes the rest.
func TestClearStale(t *testing.T) {
	parent := testutil.ShortDir(t)
	for _, name := range []string{"host-dead/e-1/bridge", "host-alive/e-1", "host-killed-early", "other"} {
		must(t, os.MkdirAll(filepath.Join(parent, name), 0o700))
	}
	alive, err := lockDir(filepath.Join(parent, "host-alive"))
	must(t, err, os.WriteFile(filepath.Join(parent, "host-dead", "lock"), nil, 0o600))
	h := &Host{log: slog.New(slog.DiscardHandler), runsc: &runsc.Runsc{Path: "/bin/true"}}
	clearStale(parent, h.cgroups, h.log)
	if left := names(t, parent); left != "host-alive other" {
		t.Errorf("left: %s", left)
	}
	must(t, alive.Close())
	clearStale(parent, h.cgroups, h.log)
	if left := names(t, parent); left != "other" {
		t.Errorf("left: %s", left)
	}
}

// TestHostsComeAndGoTogether: gateways that start and end at once never take each other's directory for a dead one's.
func TestHostsComeAndGoTogether(t *testing.T) {
	parent := testutil.ShortDir(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				h := &Host{log: slog.New(slog.DiscardHandler), runsc: &runsc.Runsc{Path: "/bin/true"}}
				clearStale(parent, h.cgroups, h.log)
				if err := withDirLock(parent, func() error { return h.createDir(parent) }); err != nil {
					t.Errorf("start: %v", err)
					return
				}
				err := os.WriteFile(filepath.Join(h.dir, "file"), nil, 0o600)
				if err = errors.Join(err, h.remove()); err != nil {
					t.Errorf("end: %v", err)
				}
			}
		})
	}
	all.Wait()
	if left := names(t, parent); left != "" {
		t.Errorf("left: %s", left)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	first, err := lockDir(dir)
	must(t, err)
	if second, err := lockDir(dir); err == nil {
		t.Error("locked twice")
		_ = second.Close()
	}
	must(t, first.Close())
	again, err := lockDir(dir)
	must(t, err, again.Close())
}
