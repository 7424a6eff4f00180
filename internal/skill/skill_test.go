package skill_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sallyport/internal/testutil/natscluster"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/skill"
	"sallyport/internal/workspace"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	if dir := os.Getenv("SKILL_TEST_WRITER"); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// one is a skill whose files all say the same number.
func one(name string, n int) skill.Skill {
	text := fmt.Sprintf("# %d\n", n)
	return skill.Skill{
		Front: skill.Front{Name: name, Description: strconv.Itoa(n), Language: skill.Python, Tools: map[string]string{"calc.add": "aa"}, Functions: []string{"f(a: int = 1)"}, Parameters: []string{"a: int = 1"}},
		Body:  text, Files: map[string][]byte{"skill.py": []byte(text), "data/more.txt": []byte(text)},
	}
}

func save(t *testing.T, s *skill.Store, owner string, one skill.Skill) skill.Skill {
	t.Helper()
	saved, err := s.Save(owner, one)
	if err != nil {
		t.Fatalf("save %s: %v", one.Name, err)
	}
	return saved
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{"weekly-report": "weekly-report", "weekly_report": "weekly-report", "Weekly Report": "weekly-report", "a1": "a1"} {
		if name, err := skill.Name(text); err != nil || name != want {
			t.Errorf("%q: %q, %v", text, name, err)
		}
	}
	for _, text := range []string{
		"", ".", "..", "../x", "/etc", `a\b`, "a/b", "a\x00", "con", "CON", "nul", "com1", "class", "import", "None", "1a", "-a", "a-", "a--b", "a__b", "_a", "+shared", ".versions",
		"caf\u00e9", "a\u0301", "a\u200b", "\u202ea", "\uff41", "a.", "a ", " a", "a\n", strings.Repeat("a", 65), strings.Repeat("a", 10000), "\u212a", "a:b", "skill.py",
	} {
		if name, err := skill.Name(text); err == nil {
			t.Errorf("%q is a name: %q", text, name)
		}
	}
}

func TestVersions(t *testing.T) {
	s := skill.New(t.TempDir())
	for n := 1; n <= skill.MaxVersions+3; n++ {
		if saved := save(t, s, "ann", one("x", n)); saved.Version != n {
			t.Fatalf("version %d is %d", n, saved.Version)
		}
	}
	all := s.Versions("ann", "x")
	if len(all) != skill.MaxVersions+1 || all[0] != 3 {
		t.Errorf("versions %v", all)
	}
	for _, n := range []int{0, 3, 10, skill.MaxVersions + 3} {
		got, err := s.Load("ann", "x", n)
		want := n
		if n == 0 {
			want = skill.MaxVersions + 3
		}
		if err != nil || got.Version != want || got.Code() != fmt.Sprintf("# %d\n", want) || got.Tools["calc.add"] != "aa" || got.Functions[0] != "f(a: int = 1)" || string(got.Files["data/more.txt"]) != got.Code() {
			t.Errorf("version %d: %+v, %v", n, got, err)
		}
	}
	for _, n := range []int{-1, 1, 2, 99} {
		if _, err := s.Load("ann", "x", n); !errors.Is(err, skill.ErrNotFound) {
			t.Errorf("version %d: %v", n, err)
		}
	}
	if err := s.Remove("ann", "x"); err != nil || len(s.Names("ann")) != 0 || s.Versions("ann", "x") != nil {
		t.Errorf("removed: %v, %v", err, s.Names("ann"))
	}
}

func TestOwnersAreApart(t *testing.T) {
	dir := t.TempDir()
	s := skill.New(dir)
	save(t, s, "ann", one("x", 1))
	for _, other := range []string{"", "bob", "../ann", "+shared", "+pending", "ANN", "ann/", "ann\x00"} {
		if _, err := s.Load(other, "x", 0); !errors.Is(err, skill.ErrNotFound) {
			t.Errorf("%q loads ann's: %v", other, err)
		}
		save(t, s, other, one("y", 1))
		if s.Remove(other, "x") == nil {
			t.Errorf("%q removes ann's", other)
		}
	}
	if got := s.Names("ann"); !slices.Equal(got, []string{"x"}) || len(s.SharedNames()) != 0 || len(s.Pending()) != 0 {
		t.Errorf("%v %v %v", got, s.SharedNames(), s.Pending())
	}
	for _, name := range []string{"..", "../bob/y", ".versions", "x/../x", "X", ""} {
		if _, err := s.Load("ann", name, 0); !errors.Is(err, skill.ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
		if bad := one(name, 1); true {
			if _, err := s.Save("ann", bad); err == nil {
				t.Errorf("%q was saved", name)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	s := skill.New(t.TempDir())
	for path, size := range map[string]int{"big": skill.MaxBytes, "../x": 1, "/x": 1, "a/../../x": 1, "x\x00": 1, "a\\b": 1, strings.Repeat("a/", 70) + "x": 1} {
		bad := one("x", 1)
		bad.Files[path] = make([]byte, size)
		if _, err := s.Save("ann", bad); err == nil {
			t.Errorf("%.20q of %d bytes was saved", path, size)
		}
	}
	many := one("x", 1)
	for i := range skill.MaxFiles {
		many.Files[fmt.Sprint(i)] = nil
	}
	if _, err := s.Save("ann", many); !errors.Is(err, skill.ErrTooLarge) {
		t.Errorf("%d files: %v", len(many.Files), err)
	}
}

// TestByHand: what an operator puts there is a skill too, in the form that others have; what leads out of the folder is not read.
func TestByHand(t *testing.T) {
	dir := t.TempDir()
	s := skill.New(dir)
	home := filepath.Join(dir, workspace.Folder("ann"), "pdf-forms")
	write := func(at, text string) {
		t.Helper()
		at = filepath.Join(home, at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("SKILL.md", "---\nname: other\ndescription: Fills in forms.\nlicense: MIT\nversion: \"1.2\"\nmetadata:\n  author: somebody\nallowed-tools: Read Write\nparameters:\n  - days: int\n---\n# Forms\nDo it.\n")
	write("skill.ts", "export const x = 1\n")
	write("scripts/fill.py", "x = 1\n")
	write(".git/config", "x")
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(home, "secret.txt")), os.Symlink("/etc", filepath.Join(home, "etc"))); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load("ann", "pdf-forms", 0)
	if err != nil || got.Name != "pdf-forms" || got.Language != skill.TypeScript || got.Version != 1 || len(got.Files) != 2 || !strings.HasPrefix(got.Body, "# Forms") || got.Parameters[0] != "days: int" {
		t.Fatalf("%+v, %v", got, err)
	}
	got.Description = "Better."
	saved := save(t, s, "ann", got)
	text := string(saved.Format())
	for _, want := range []string{"license: MIT\n", "allowed-tools: Read Write\n", "author: somebody\n", "version: 2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is lost:\n%s", want, text)
		}
	}
	if old, err := s.Load("ann", "pdf-forms", 1); err != nil || old.Description != "Fills in forms." {
		t.Errorf("%+v, %v", old, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "must begin",
		"# no front":                           "must begin",
		"---\nname: x\n":                       "must begin",
		"---\n- a\n---\n":                      "keys with values",
		"---\nname: x\n---\n":                  "description is missing",
		"---\ndescription: &a x\nb: *a\n---\n": "aliases",
		"---\ndescription: [x]\n---\n":         "line 2: description must be a text",
		"---\ndescription: x\nlanguage: perl\n---\n":         "line 3: language must be",
		"---\ndescription: x\ndescription: y\n---\n":         "twice",
		"---\ndescription: x\na: [[[[[[[[[[1]]]]]]]]]]\n---": "too deep",
		"---\ndescription: \xff\n---\n":                      "UTF-8",
		"---\ndescription: x\ngroups: finance\n---\n":        "line 3: groups must be a list",
		"---\ndescription: x\ngroups: []\n---\n":             "at least one",
		"---\ndescription: x\ngroups:\n---\n":                "at least one",
		"---\ndescription: x\ngroups: {a: b}\n---\n":         "must be a list",
		"---\ndescription: x\ngroups: [a, [b]]\n---\n":       "must be a list",
		"---\ndescription: x\ngroups: [a, ~]\n---\n":         "must be a list",
		"---\ndescription: x\ngroups: [\"a\\u202e\"]\n---\n": "cannot name a group",
		"---\ndescription: x\ngroups: [\" a\"]\n---\n":       "cannot name a group",
		"---\ndescription: " + strings.Repeat("x", 65<<10):   "64 KiB",
	} {
		if _, _, err := skill.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\nname: x\ndescription: y\nversion: 2\nparameters: [a, b: c]\ntools: {a.b: c}\nmore: {a: [1]}\n---\nbody\n")
	f.Add("---\ndescription: 'x'\ngroups: [a, 1, true]\n---\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		front, body, err := skill.Parse([]byte(text))
		if err != nil {
			return
		}
		if front.Language == "" {
			front.Language = skill.Python
		}
		s := skill.Skill{Front: front, Body: body}
		again, _, err := skill.Parse(s.Format())
		if err != nil && len(s.Format()) < 64<<10 || err == nil && (again.Description != front.Description || !slices.Equal(again.Groups, front.Groups) || len(again.Functions) != len(front.Functions)) {
			t.Errorf("%v\n%q\n%q", err, text, s.Format())
		}
	})
}

func TestShared(t *testing.T) {
	dir := t.TempDir()
	s := skill.New(dir)
	propose := func(n int) {
		t.Helper()
		if _, err := s.Propose("ann", one("x", n)); err != nil {
			t.Fatal(err)
		}
	}
	propose(1)
	if len(s.SharedNames()) != 0 {
		t.Error("shared before it was approved")
	}
	waits, err := s.LoadPending("x")
	if err != nil || waits.Author != "ann" {
		t.Fatalf("%+v %v", waits, err)
	}
	propose(2)
	if _, err := s.Approve("x", waits.Digest()[:12]); err == nil {
		t.Error("another one than was seen is approved")
	}
	if _, err := s.Approve("x", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadShared("x", 0); err != nil || got.Code() != "# 2\n" || len(s.Pending()) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	at := filepath.Join(dir, "+shared", "x", "data", "more.txt")
	if err := os.WriteFile(at, []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadShared("x", 0); !errors.Is(err, skill.ErrChanged) {
		t.Errorf("changed: %v", err)
	}
	if _, err := s.Approve("x", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadShared("x", 0); err != nil || string(got.Files["data/more.txt"]) != "evil" {
		t.Errorf("%+v %v", got, err)
	}
	propose(3)
	if err := s.Reject("x"); err != nil || len(s.Pending()) != 0 {
		t.Error(err)
	}
	if err := s.RemoveShared("x"); err != nil || len(s.SharedNames()) != 0 {
		t.Error(err)
	}
}

// writeUntilKilled saves version after version and says which one is there.
func writeUntilKilled(dir string) {
	s := skill.New(dir)
	for {
		saved, err := s.Save("ann", one("x", len(s.Versions("ann", "x"))))
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(saved.Version)
	}
}

// TestKilledWriters: whoever reads while one process writes and is killed at any time finds
// whole versions only, and never an older one than was acknowledged.
func TestKilledWriters(t *testing.T) {
	dir := t.TempDir()
	s := skill.New(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged, read := 0, 0
	for round := range 8 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "SKILL_TEST_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 4+round && lines.Scan(); n++ {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(lines.Text())
			}
			got, err := s.Load("ann", "x", 0)
			if err != nil || got.Version < acknowledged || got.Code() != got.Body || got.Code() != string(got.Files["data/more.txt"]) {
				t.Fatalf("after %d: %+v, %v", acknowledged, got, err)
			}
			read++
		}
		_ = cmd.Process.Kill()
		for lines.Scan() {
			acknowledged, _ = strconv.Atoi(lines.Text())
		}
		_ = cmd.Wait()
		got, err := s.Load("ann", "x", 0)
		if err != nil || got.Version < acknowledged || got.Code() != got.Body || len(got.Files) != 2 {
			t.Fatalf("after the kill, %d acknowledged: %+v, %v", acknowledged, got, err)
		}
	}
	if read < 20 {
		t.Errorf("only %d reads", read)
	}
	save(t, s, "ann", one("x", 1))
	if left, _ := filepath.Glob(filepath.Join(dir, "ann", ".tmp-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
