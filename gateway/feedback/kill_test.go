//go:build unix

package feedback_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/feedback"
)

// dirVar makes the test binary one that learns without end.
const dirVar = "CLICKS_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVar); dir != "" {
		learnForever(dir)
	}
	os.Exit(m.Run())
}

func learnForever(dir string) {
	f, err := feedback.OpenFiles(dir)
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		p := feedback.Pair{Words: words("word" + spell(i%1500)), Tool: create, Digest: digest, Strength: 1, At: time.Now().Unix()}
		if _, err := f.Merge("", feedback.Pairs{}, feedback.Pairs{spell(i % 1500): p}); err != nil {
			panic(err)
		}
	}
}

// TestKilled: two gateways that are killed while they write leave a file that is whole.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		var both []*exec.Cmd
		for range 2 {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), dirVar+"="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			both = append(both, cmd)
		}
		size := wait(t, dir, round)
		for _, cmd := range both {
			_ = cmd.Process.Signal(syscall.SIGKILL)
			_ = cmd.Wait()
		}
		known, err := files(t, dir).Load("")
		if err != nil || len(known) < size {
			t.Fatalf("%d pairs, %v", len(known), err)
		}
	}
}

// wait waits until the file has grown, and returns how many pairs there were.
func wait(t *testing.T, dir string, round int) int {
	t.Helper()
	f := files(t, dir)
	for {
		if known, err := f.Load(""); err != nil {
			t.Fatalf("while they write: %v", err)
		} else if len(known) > 40*(round+1) {
			return len(known)
		}
		if t.Context().Err() != nil {
			t.Fatal("they do not write")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestTraps: what lies in the folder in place of a file of ours is not read, not waited for and not followed.
func TestTraps(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	f := files(t, dir)
	if err := os.WriteFile(outside, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Merge("", nil, feedback.Pairs{}); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.clicks"))
	for kind, set := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink(outside, path) },
		"huge":   func(path string) error { return os.WriteFile(path, make([]byte, 9<<20), 0o600) },
	} {
		if err := os.RemoveAll(names[0]); err != nil {
			t.Fatal(err)
		}
		if err := set(names[0]); err != nil {
			t.Fatal(err)
		}
		if known, err := f.Load(""); err == nil || known == nil || len(known) > 0 {
			t.Errorf("%s: %v, %v", kind, known, err)
		}
		if _, err := f.Merge("", nil, feedback.Pairs{}); (err == nil) == (kind == "folder") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if data, err := os.ReadFile(outside); string(data) != "keep me" {
		t.Errorf("outside is %q, %v", data, err)
	}
}

func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	keep := files(f, dir)
	f.Add([]byte(`[{"w":{"creat":1.25,"issu":3},"t":"github.create_issue","d":"00112233445566778899aabbccddeeff","n":1.5,"a":1700000000}]`))
	f.Add([]byte(`[{"w":{"a b":1},"t":"x.y","d":"00","n":-1,"a":-1}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var known feedback.Pairs
		if json.Unmarshal(body, &known) != nil {
			return
		}
		if _, err := keep.Merge("", nil, known); err != nil {
			t.Fatal(err)
		}
		if _, err := keep.Load(""); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
