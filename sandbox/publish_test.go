//go:build linux

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree reads all files below dir; a folder that holds nothing is an entry of its own.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			if entries, _ := os.ReadDir(path); len(entries) == 0 {
				found[name+"/"] = ""
			}
			return nil
		}
		data, err := os.ReadFile(path)
		found[name] = string(data)
		return err
	}))
	return found
}

func TestPublish(t *testing.T) {
	h := &Host{dir: t.TempDir()}
	for _, step := range []struct {
		name  string
		files map[string]string
	}{
		{"nothing", map[string]string{}},
		{"some", map[string]string{"__init__.py": "", "a/__init__.py": "a", "a/x.py": "1", "b/c/d.ts": "2"}},
		{"one changes", map[string]string{"__init__.py": "", "a/__init__.py": "a", "a/x.py": "10", "b/c/d.ts": "2"}},
		{"a folder goes", map[string]string{"__init__.py": "", "a/x.py": "10"}},
		{"a file becomes a folder, a folder a file", map[string]string{"__init__.py/x": "", "a": "10"}},
		{"and back", map[string]string{"__init__.py": "y", "a/x.py": "10"}},
		{"nothing again", map[string]string{}},
	} {
		files := map[string][]byte{}
		for path, text := range step.files {
			files[path] = []byte(text)
		}
		if err := h.Publish(files); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.files, tree(t, h.servers())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestPublishRemovesWhatACrashLeft(t *testing.T) {
	h := &Host{dir: t.TempDir()}
	must(t, h.Publish(nil), os.WriteFile(h.servers()+"/x.py.new", []byte("half"), 0o600), os.MkdirAll(h.servers()+"/empty/deep", 0o700))
	must(t, h.Publish(map[string][]byte{"x.py": []byte("whole")}))
	if diff := cmp.Diff(map[string]string{"x.py": "whole"}, tree(t, h.servers())); diff != "" {
		t.Error(diff)
	}
}

// TestPublishWritesOnlyWhatDiffers looks at the inodes.
func TestPublishWritesOnlyWhatDiffers(t *testing.T) {
	h := &Host{dir: t.TempDir()}
	must(t, h.Publish(map[string][]byte{"a/same": []byte("1"), "a/other": []byte("1"), "a/empty": nil}))
	inode := func(name string) uint64 {
		info, err := os.Stat(filepath.Join(h.servers(), name))
		must(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	same, empty, other := inode("a/same"), inode("a/empty"), inode("a/other")
	old, err := os.Open(filepath.Join(h.servers(), "a/other")) // as a sandbox has it open; it also keeps the inode in use
	must(t, err, h.Publish(map[string][]byte{"a/same": []byte("1"), "a/other": []byte("2"), "a/empty": {}}))
	defer func() { _ = old.Close() }()
	if inode("a/same") != same || inode("a/empty") != empty {
		t.Error("an equal file was written again")
	}
	data := make([]byte, 1)
	if _, err := old.Read(data); err != nil || string(data) != "1" || inode("a/other") == other {
		t.Errorf("a changed file was written in its place: %q, %v", data, err)
	}
}

func TestPublishHostilePaths(t *testing.T) {
	dir := t.TempDir()
	h := &Host{dir: filepath.Join(dir, "host")}
	must(t, os.Mkdir(h.dir, 0o700), h.Publish(map[string][]byte{"a": []byte("1")}), os.WriteFile(filepath.Join(dir, "victim"), []byte("1"), 0o600))
	must(t, os.Symlink(dir, filepath.Join(h.servers(), "link"))) // nobody can make one, but if
	for _, path := range []string{"../x", "../../victim", "/x", "//", "a/../../x", "a/..", "..", ".", "", "x/", "./x", "x\x00y", "link/victim"} {
		err := h.Publish(map[string][]byte{path: []byte("pwned")})
		if path == "link/victim" { // the link is no folder of ours: it is removed, and the file written where it belongs
			must(t, err)
			continue
		}
		if err == nil {
			t.Errorf("%q was published", path)
		}
	}
	want := map[string]string{"victim": "1", "host/servers/link/victim": "pwned"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestModesDoNotDependOnUmask: a sandbox's user is not ours and has to read all of it.
func TestModesDoNotDependOnUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	h := &Host{dir: t.TempDir()}
	must(t, h.Publish(map[string][]byte{"a/b/c": nil}), makeRootfs(filepath.Join(h.dir, "rootfs"), []string{"/usr/bin"}))
	must(t, mountPoint(filepath.Join(h.dir, "rootfs"), "/opt/interpreter/node"), makeReadable(filepath.Join(h.dir, "rootfs")))
	must(t, filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		info, infoErr := entry.Info()
		must(t, err, infoErr)
		if want := map[bool]os.FileMode{true: 0o755, false: 0o644}[info.IsDir()]; path != h.dir && info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm() != want {
			t.Errorf("%s is %v", path, info.Mode())
		}
		return nil
	}))
}

// TestPublishIsAtomic reads while others publish: every file is one version, whole.
func TestPublishIsAtomic(t *testing.T) {
	h := &Host{dir: t.TempDir()}
	version := func(c byte) map[string][]byte {
		data := make([]byte, 256<<10)
		for i := range data {
			data[i] = c
		}
		return map[string][]byte{"a/x": data}
	}
	must(t, h.Publish(version('a')))
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for i := range 40 {
			if err := h.Publish(version('a' + byte(i%20))); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for reads := 0; ; reads++ {
		data, err := os.ReadFile(filepath.Join(h.servers(), "a/x"))
		if err != nil || len(data) != 256<<10 || data[0] != data[len(data)-1] {
			t.Fatalf("read %d: %d bytes, %v", reads, len(data), err)
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
