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

func task(t *testing.T, name string) *suite.Task {
	t.Helper()
	all := suite.Tasks()
	i := slices.IndexFunc(all, func(t *suite.Task) bool { return t.Name == name })
	if i < 0 {
		t.Fatalf("no task %s", name)
	}
	return all[i]
}

// What a task is to leave in the world is looked for, and nothing else passes for it.
func TestChecks(t *testing.T) {
	w := newWorld(t)
	t.Run("nothing is done in a new world", func(t *testing.T) { nothingDone(t, w) })
	t.Run("hotfix-branch", func(t *testing.T) { hotfixBranch(t, w) })
	t.Run("new-project", func(t *testing.T) { newProject(t, w) })
}

func nothingDone(t *testing.T, w *suite.World) {
	t.Helper()
	for _, task := range suite.Tasks() {
		if task.Done != nil && task.Done(w) == nil {
			t.Errorf("%s is done", task.Name)
		}
	}
}

// The branch has to be at that very commit, and main to be checked out.
func hotfixBranch(t *testing.T, w *suite.World) {
	t.Helper()
	hotfix := task(t, "hotfix-branch")
	at := strings.Fields(git(t, w, "log", "--format=%H", "main", "--", "src/pay.txt"))
	git(t, w, "branch", "hotfix-pay", at[1])
	if err := hotfix.Done(w); err == nil {
		t.Error("at another commit")
	}
	git(t, w, "branch", "--force", "hotfix-pay", at[0])
	if err := hotfix.Done(w); err != nil {
		t.Error(err)
	}
	git(t, w, "checkout", "--quiet", "hotfix-pay")
	if err := hotfix.Done(w); err == nil {
		t.Error("main is not checked out")
	}
	git(t, w, "checkout", "--quiet", "main")
	git(t, w, "branch", "--force", "hotfix-pay", git(t, w, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-m", hotfix.Want(w), at[0]+"^{tree}"))
	if err := hotfix.Done(w); err == nil {
		t.Error("at a commit that only has its subject")
	}
}

// What is to be left in the graph counts with its type, whatever the order of its fields.
func newProject(t *testing.T, w *suite.World) {
	t.Helper()
	project := task(t, "new-project")
	relation := `{"relationType":"led_by","to":"` + project.Want(w) + `","from":"Lighthouse","type":"relation"}`
	for _, c := range []struct {
		entity string
		done   bool
	}{
		{`{"name":"Lighthouse","type":"entity","observations":["starts 2027-02-01"],"entityType":"project"}`, true},
		{`{"name":"Lighthouse","observations":["starts 2027-02-01"],"entityType":"project"}`, false},
		{`{"name":"Lighthouse","type":"entity","observations":[],"entityType":"project"}`, false},
	} {
		if err := os.WriteFile(w.Memory(), []byte(c.entity+"\n"+relation+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := project.Done(w); (err == nil) != c.done {
			t.Errorf("%s: %v", c.entity, err)
		}
	}
}
