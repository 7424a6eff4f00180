package suite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/bench/suite"
	"sallyport/internal/testutil"
)

// newWorld is a world in a folder that has been used before.
func newWorld(t *testing.T) *suite.World {
	t.Helper()
	testutil.Program(t, "git")
	testutil.Program(t, "node")
	w, err := suite.NewWorld(filepath.Join(t.TempDir(), "world"), testutil.Upstreams(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"files/out/report.txt", "memory.jsonl", "shop.db", "files/repo/.git/index"} {
		file := filepath.Join(w.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("other"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Reset(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWorldIsAlwaysTheSame(t *testing.T) {
	one := newWorld(t)
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "another")) // as below a git hook
	two := newWorld(t)
	os.Unsetenv("GIT_DIR")
	same(t, digests(t, one), digests(t, two))
	if head := git(t, one, "rev-parse", "main"); head != "3674d754c3218c6bc285b5275caf1dcec4027611" {
		t.Errorf("main is %s: the numbers are drawn otherwise than when results were measured", head)
	}
	if changed := git(t, two, "status", "--porcelain"); changed != "" {
		t.Errorf("the repository is not clean: %s", changed)
	}
}

func same(t *testing.T, one, two map[string]string) {
	t.Helper()
	names := maps.Clone(one)
	maps.Copy(names, two)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if one[name] != two[name] {
			t.Errorf("%s is not the same: %q, %q", name, one[name], two[name])
		}
	}
}

// digests are those of all files, and what the repository has instead of its files, in which git keeps times.
func digests(t *testing.T, w *suite.World) map[string]string {
	t.Helper()
	all := map[string]string{"refs": git(t, w, "show-ref"), "tree": git(t, w, "ls-files", "--stage")}
	err := filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(w.Dir, path)
		sum := sha256.Sum256(data)
		all[name] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil || len(all) < 50 {
		t.Fatal(len(all), err)
	}
	return all
}

func git(t *testing.T, w *suite.World, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", w.Repo()}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestServersArePinned(t *testing.T) {
	w, err := suite.NewWorld("somewhere", "modules")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Expand("read {files}/a and {repo}/b"); got != "read "+w.Dir+"/files/a and "+w.Dir+"/files/repo/b" || !filepath.IsAbs(w.Dir) {
		t.Errorf("Expand: %s", got)
	}
	for _, s := range w.Servers() {
		if s.Version == "" || !filepath.IsAbs(s.Args[0]) {
			t.Errorf("%s: version %q, program %q", s.Name, s.Version, s.Args[0])
		}
	}
}
