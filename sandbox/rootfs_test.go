//go:build linux

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindInterpreter(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	sh, err := resolveBinary("/bin/sh")
	must(t, err)
	elf, err := os.ReadFile(sh)
	must(t, err)
	for name, content := range map[string]string{"shims/tool": "#!/bin/sh\nexec real-tool\n", "text": "hello", "empty": "", "real/tool": string(elf), "plain/tool": string(elf)} {
		must(t, os.MkdirAll(filepath.Dir(in(name)), 0o700), os.WriteFile(in(name), []byte(content), 0o700))
	}
	must(t, os.Chmod(in("plain/tool"), 0o600), os.Symlink(in("real/tool"), in("link")), os.Symlink("/bin/sh", in("sh")), os.Symlink(in("shims/tool"), in("shim-link")), os.Symlink("nowhere", in("dead")))
	t.Setenv("PATH", strings.Join([]string{in("shims"), "relative", "", in("plain"), in("real")}, ":"))

	outside := interpreter{path: in("real/tool"), inside: "/opt/interpreter/tool"}
	for _, test := range []struct {
		name, explicit string
		names          []string
		want           interpreter
		wrong          string
	}{
		{"in PATH, behind a shim and a file that is no program", "", []string{"tool"}, outside, ""},
		{"by its path", in("real/tool"), nil, outside, ""},
		{"by a link", in("link"), nil, outside, ""},
		{"a link into what sandboxes see", in("sh"), nil, interpreter{sh, sh}, ""},
		{"the first of several", "", []string{"/nonexistent/tool", in("real/tool"), "tool"}, outside, ""},
		{"a shim", in("shims/tool"), nil, interpreter{}, "is a script that starts an interpreter"},
		{"a link to a shim", in("shim-link"), nil, interpreter{}, "is a script that starts an interpreter"},
		{"nothing but a shim", "", []string{in("shims/tool")}, interpreter{}, "is a script that starts an interpreter"},
		{"no program", in("text"), nil, interpreter{}, "is not a program"},
		{"empty", in("empty"), nil, interpreter{}, "is not a program"},
		{"not executable", in("plain/tool"), nil, interpreter{}, "is not an executable file"},
		{"a folder", in("real"), nil, interpreter{}, "is not an executable file"},
		{"a link to nowhere", in("dead"), nil, interpreter{}, "no such file"},
		{"nothing at all", "", []string{"never", "ever"}, interpreter{}, "no never or ever on this machine"},
	} {
		got, err := findInterpreter(test.explicit, "/opt/interpreter/tool", test.names...)
		if got != test.want || test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
	if _, err := findInterpreter(in("shims/tool"), "x"); !errors.Is(err, errScript) {
		t.Errorf("a shim is not told from the rest: %v", err)
	}
	if _, err := findInterpreter(in("gone"), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing one: %v", err)
	}
}

func TestRootfsHoldsNothingOfTheHost(t *testing.T) {
	root := filepath.Join(t.TempDir(), "rootfs")
	must(t, makeRootfs(root, []string{"/usr/bin"}), mountPoint(root, guestBin+"/node"))
	for _, dir := range []string{"proc", "dev", "tmp", "workspace", "usr/bin", guestDir, bridgeDir, serversDir} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry.Type()&fs.ModeSymlink != 0 {
			if target, _ := os.Readlink(path); filepath.IsAbs(target) || strings.Contains(target, "..") {
				t.Errorf("%s leads to %s", path, target)
			}
		}
		return err
	}))
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil || strings.Count(string(passwd), "\n") != 2 {
		t.Errorf("passwd: %q, %v", passwd, err)
	}
	if err := makeRootfs(root, nil); err == nil {
		t.Error("laid out twice")
	}
}

func TestExisting(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/real", 0o700), os.Symlink("real", dir+"/link"), os.WriteFile(dir+"/file", nil, 0o600))
	if got := existingDirs([]string{dir + "/real", dir + "/link", dir + "/file", dir + "/gone"}); len(got) != 1 || got[0] != dir+"/real" {
		t.Errorf("existing: %v", got)
	}
}
