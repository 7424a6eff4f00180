package workspace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/workspace"
)

// project is a folder as people have them, with a link and a hook of git.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range map[string]string{
		"app.py": "print(1)", "src/lib.py": "x = 1", ".git/config": "[core]", ".git/HEAD": "ref: refs/heads/main", "node_modules/a/index.js": "1", "debug.log": "log", "run.sh": "#!/bin/sh",
		".sallyport-notes/mine.txt": "a folder of the owner's",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(dir, "link")), os.Symlink("/etc", filepath.Join(dir, "src", "etc")), os.Chmod(filepath.Join(dir, "run.sh"), 0o750)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mapFolder(t *testing.T, dir string, opts workspace.MappedOptions) *workspace.Mapped {
	t.Helper()
	m, err := workspace.OpenMapped(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func change(path, version, content string) workspace.File {
	return workspace.File{Path: path, Size: int64(len(content)), Version: version, Content: io.NopCloser(strings.NewReader(content))}
}

// snapshot is all that is in a folder, links as what they point to.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, _ := d.Info()
		if target, err := os.Readlink(path); err == nil {
			fmt.Fprintf(&b, "%s -> %s\n", path[len(dir):], target)
			return nil
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %v %s\n", path[len(dir):], info.Mode(), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMappedWrites: what is written to a mapped folder is files in it, and none that the host runs by itself.
func TestMappedWrites(t *testing.T) {
	t.Parallel()
	dir := project(t)
	out, err := workspace.Open(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := mapFolder(t, dir, workspace.MappedOptions{Write: true, Ignore: []string{"node_modules", "*.log"}, Output: out})
	var paths []string
	versions, left := map[string]string{}, 0
	for f, err := range m.Files() {
		if err != nil {
			left++
			if f.Path == "" || !strings.Contains(err.Error(), "not followed") {
				t.Errorf("%s: %v", f.Path, err)
			}
			continue
		}
		versions[f.Path] = f.Version
		paths = append(paths, f.Path)
	}
	if want := []string{".git", ".git/HEAD", ".git/config", "app.py", "run.sh", "src", "src/lib.py"}; !slices.Equal(paths, want) || left != 1 {
		t.Errorf("programs get %q and %d notes", paths, left)
	}
	if err := os.WriteFile(filepath.Join(dir, "src/lib.py"), []byte("the owner's"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	never := []string{
		".git/config", ".git/hooks/post-checkout", ".GIT/config", "sub/.git/config", ".g\u200cit/config", ".vscode/tasks.json", ".envrc", "src/.envrc", ".husky/pre-commit", ".idea/x.xml",
		"bare/HEAD", "bare/head", "x.code-workspace", ".npmrc", ".pre-commit-config.yaml", "git~1/config", ".git./config", ".claude/settings.json", "upstreams.yaml", ".mcp.json",
		"node_modules/a/index.js", "new.log", "link", "src/etc/x", "../up", "/etc/x", "src/lib.py",
	}
	for _, path := range never {
		updated, err := m.Update(workspace.Changes(change(path, versions[path], "evil")))
		if err != nil || len(updated.Versions) > 0 || len(updated.Notes) != 1 {
			t.Errorf("%q: %v, %q", path, err, updated)
		}
	}
	gone := workspace.File{Path: ".git/config", Gone: true, Version: versions[".git/config"]}
	if updated, err := m.Update(workspace.Changes(gone)); err != nil || len(updated.Notes) != 1 {
		t.Errorf("gone: %v, %v", updated, err)
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	run := change("run.sh", versions["run.sh"], "#!/bin/sh\nls")
	run.Executable = true
	updated, err := m.Update(workspace.Changes(change("app.py", versions["app.py"], "new"), change("new/a.py", "", "made"), run,
		change(".out/e-1.stdout.txt", "", "output"), workspace.File{Path: "src/lib.py", Gone: true, Version: versions["src/lib.py"]}))
	if err != nil || len(updated.Versions) != 4 {
		t.Errorf("%v, %+v", err, updated)
	}
	after := snapshot(t, dir)
	for _, want := range []string{"/app.py -rw-r----- new\n", "/new/a.py -rw-r--r-- made\n", "/run.sh -rwxr-x--- #!/bin/sh\nls\n", "/src/lib.py -rw-r----- the owner's", "/.sallyport-notes/mine.txt"} {
		if !strings.Contains(after, want) {
			t.Errorf("no %q in\n%s", want, after)
		}
	}
	if strings.Contains(after, ".out") {
		t.Errorf("output is in the folder:\n%s", after)
	}
	if f, err := m.Open(".out/e-1.stdout.txt"); err != nil {
		t.Error(err)
	} else {
		_ = f.Content.Close()
	}
	for _, path := range []string{"link", "src/etc/passwd", "node_modules/a/index.js", "../x"} {
		if f, err := m.Open(path); err == nil {
			t.Errorf("%s could be read", path)
			_ = f.Content.Close()
		}
	}
}

// TestMappedReadOnly: nothing at all is written to the folder, and that is told once.
func TestMappedReadOnly(t *testing.T) {
	t.Parallel()
	dir := project(t)
	before := snapshot(t, dir)
	m := mapFolder(t, dir, workspace.MappedOptions{})
	updated, err := m.Update(workspace.Changes(change("app.py", "", "evil"), change("new.py", "", "new"), workspace.File{Path: "src", Gone: true}))
	if want := `not kept: "app.py" (as 2 more: the folder is mapped read-only)`; err != nil || len(updated.Notes) != 1 || updated.Notes[0] != want {
		t.Errorf("%v, %q", err, updated.Notes)
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestMappedTooLarge: programs get all of a folder or nothing, and what is large is named.
func TestMappedTooLarge(t *testing.T) {
	t.Parallel()
	dir := project(t)
	for i := range 30 {
		if err := os.WriteFile(filepath.Join(dir, "node_modules", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := mapFolder(t, dir, workspace.MappedOptions{Inodes: 20}).Measure()
	if large, ok := errors.AsType[*workspace.TooLarge](err); !ok || large.Names[0] != "node_modules" || large.Files < 35 {
		t.Errorf("%+v", err)
	}
	if err := mapFolder(t, dir, workspace.MappedOptions{Inodes: 20, Ignore: []string{"node_modules/*"}}).Measure(); err != nil {
		t.Error(err)
	}
	large, ok := errors.AsType[*workspace.TooLarge](mapFolder(t, dir, workspace.MappedOptions{Bytes: 3}).Measure())
	if !ok || large.Bytes < 20 {
		t.Errorf("%+v", large)
	}
}
