package chroot_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/chroot"
)

func TestResolve(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "root")
	write(t, filepath.Join(outer, "secret"), "")
	for _, file := range []string{"usr/bin/python3.11", "etc/secret", "a/b/c/file"} {
		write(t, filepath.Join(dir, file), file)
	}
	for link, target := range map[string]string{
		"bin": "usr/bin", "usr/bin/python3": "python3.11", "usr/bin/python": "/usr/bin/python3",
		"abs": outer + "/secret", "up": "../secret", "far": "../../../../../../etc/secret", "a/b/up": "../../etc",
		"loop": "loop", "one": "two", "two": "one", "dead": "nowhere", "self": ".", "top": "/", "under": "etc/secret/x",
	} {
		link = filepath.Join(dir, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 45 {
		if err := os.Symlink("chain"+strconv.Itoa(i+1), filepath.Join(dir, "chain"+strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "chain45"), "")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"/", ".", nil}, {"", ".", nil}, {"..", ".", nil}, {"/../..", ".", nil},
		{"/usr/bin/python", "usr/bin/python3.11", nil},
		{"bin//./python3", "usr/bin/python3.11", nil},
		{"/../../usr/bin/python3.11", "usr/bin/python3.11", nil},
		{"/far", "etc/secret", nil}, // climbs to the root and no further
		{"/a/b/up/secret", "etc/secret", nil},
		{"/bin/../bin/python3", "usr/bin/python3.11", nil}, // ".." of where the link led to
		{"/bin/../../etc", "etc", nil},
		{"/self/self/top/self/bin", "usr/bin", nil},
		{"/chain6", "chain45", nil}, {"/chain5", "chain45", nil},
		{"/chain4", "", syscall.ELOOP}, {"/loop", "", syscall.ELOOP}, {"/one/x", "", syscall.ELOOP},
		{"/abs", "", fs.ErrNotExist}, {"/up", "", fs.ErrNotExist}, {"/dead", "", fs.ErrNotExist}, {"/gone/x", "", fs.ErrNotExist},
		{"/etc/secret/x", "", syscall.ENOTDIR}, {"/etc/secret/..", "", syscall.ENOTDIR}, {"/under", "", syscall.ENOTDIR},
	} {
		got, err := chroot.Resolve(root, test.name)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%q leads to %q, %v; want %q, %v", test.name, got, err, test.want, test.err)
		}
	}
}

// FuzzResolve: whatever links there are, what comes out is a path without a link below the root.
func FuzzResolve(f *testing.F) {
	f.Add("bin/x", "../..", "/a/../b", "a/b/c")
	f.Add("x", "/", "x/x", "../../x")
	f.Fuzz(func(t *testing.T, link, target, other, name string) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		_, _, _ = root.MkdirAll("a/b", 0o755), root.Symlink(target, link), root.Symlink(other, "a/link")
		got, err := chroot.Resolve(root, name)
		if err != nil {
			return
		}
		if !filepath.IsLocal(got) {
			t.Fatalf("%q leads to %q", name, got)
		}
		for at := ""; ; {
			part, rest, more := strings.Cut(strings.TrimPrefix(got[len(at):], "/"), "/")
			at = strings.TrimPrefix(at+"/"+part, "/")
			if info, err := root.Lstat(at); err != nil || info.Mode()&fs.ModeSymlink != 0 {
				t.Fatalf("%q leads to %q, where %q is %v, %v", name, got, at, info, err)
			}
			if !more || rest == "" {
				return
			}
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}
