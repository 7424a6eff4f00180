package workspace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/workspace"
)

// open opens a workspace beside a secret that nothing may read or change.
func open(t testing.TB, opts workspace.Options) (*workspace.Dir, string) {
	t.Helper()
	parent := t.TempDir()
	if err := os.WriteFile(filepath.Join(parent, "secret"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "ws")
	d, err := workspace.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.Close()
		if data, err := os.ReadFile(filepath.Join(parent, "secret")); err != nil || string(data) != "canary" {
			t.Errorf("the secret outside: %q, %v", data, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".sallyport-*")); len(left) > 0 {
			t.Errorf("left of updates: %v", left)
		}
	})
	return d, dir
}

func file(path, content string) workspace.File {
	return workspace.File{Path: path, Size: int64(len(content)), Content: io.NopCloser(strings.NewReader(content))}
}

// update makes changes and returns the notes.
func update(t testing.TB, d *workspace.Dir, changes ...workspace.File) workspace.Updated {
	t.Helper()
	updated, err := d.Update(workspace.Changes(changes...))
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

// holds returns the paths of a workspace.
func holds(t testing.TB, d *workspace.Dir) string {
	t.Helper()
	files, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return strings.Join(paths, " ")
}

// TestTraversal (G01, G02, G07): no spelling of a path leads out, to read or to write.
func TestTraversal(t *testing.T) {
	d, dir := open(t, workspace.Options{})
	for link, target := range map[string]string{"link": "../secret", "absolute": "/etc/passwd", "folder": "..", "inside": "real"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	update(t, d, file("real", "r"))
	for _, path := range []string{
		"", ".", "..", "/", "../secret", "/etc/passwd", "a/../../secret", "a//b", "./real", "real/", "link", "absolute", "folder/secret", "folder", "inside",
		"..%2fsecret", "%2e%2e/secret", `..\secret`, `\..\secret`, "real\x00", "\x00", "a\nb", "\u202ea", "\xff", "real/x",
		strings.Repeat("a", 10_000), strings.Repeat("a/", 1000) + "a", strings.Repeat("a", 256),
	} {
		if f, err := d.Open(path); err == nil {
			t.Errorf("%.40q was opened", path)
			_ = f.Content.Close()
		} else if strings.Contains(err.Error(), dir) {
			t.Errorf("the error names the host: %v", err)
		}
		if strings.HasPrefix(path, "..%") || strings.HasPrefix(path, "%") || path == "real/x" { // names like any other
			continue
		}
		if notes := update(t, d, file(path, "written")).Notes; len(notes) == 0 {
			t.Errorf("%.40q was written", path)
		}
	}
	if got := holds(t, d); got != "real" {
		t.Errorf("it holds %s", got)
	}
}

// TestOddFiles (G04): what is neither file nor folder is neither read nor waited for nor replaced.
func TestOddFiles(t *testing.T) {
	d, dir := open(t, workspace.Options{})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := d.Open("fifo")
	notes := update(t, d, file("fifo", "x"), file("fifo/y", "x")).Notes
	if err == nil || len(notes) != 2 || holds(t, d) != "" {
		t.Errorf("error %v, notes %q, holds %s", err, notes, holds(t, d))
	}
}

// TestSwap (G05): a file that turns into a link and back all the time leaks nothing.
func TestSwap(t *testing.T) {
	d, dir := open(t, workspace.Options{})
	name, stop := filepath.Join(dir, "f"), make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			temp := filepath.Join(dir, "t")
			if i%2 == 0 {
				_ = os.Symlink("../secret", temp)
			} else {
				_ = os.WriteFile(temp, []byte("own"), 0o600)
			}
			_ = os.Rename(temp, name)
		}
	})
	read := 0
	start := time.Now()
	for tries := 0; tries < 10_000 || read == 0 && time.Since(start) < time.Minute; tries++ { // on a busy machine, the swapper begins late
		f, err := d.Open("f")
		if err != nil {
			continue
		}
		data, _ := io.ReadAll(f.Content)
		_ = f.Content.Close()
		if string(data) != "own" {
			t.Fatalf("read %q", data)
		}
		read++
	}
	close(stop)
	swapper.Wait()
	if read == 0 {
		t.Error("nothing was read: the test shows nothing")
	}
}

// TestQuota (G16): the bounds hold whatever comes at once, grows, shrinks or goes.
func TestQuota(t *testing.T) {
	d, _ := open(t, workspace.Options{Bytes: 1000, Inodes: 10})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 25 {
				size := (i*37 + w*211) % 700
				_, _ = d.Update(workspace.Changes(file(fmt.Sprintf("f%d", (i+w)%12), strings.Repeat("x", size))))
			}
		})
	}
	writers.Wait()
	files, err := d.List()
	var bytes int64
	for _, f := range files {
		bytes += f.Size
	}
	if err != nil || bytes > 1000 || bytes == 0 || len(files) > 10 {
		t.Errorf("%d bytes in %d files, %v", bytes, len(files), err)
	}
	notes := update(t, d, file("huge", strings.Repeat("x", 1001)), workspace.File{Path: "negative", Size: -1}).Notes
	if len(notes) != 2 {
		t.Errorf("notes %q", notes)
	}
	for _, f := range files {
		f.Gone = true
		update(t, d, f)
	}
	if notes := update(t, d, file("all", strings.Repeat("x", 1000))).Notes; len(notes) > 0 || holds(t, d) != "all" {
		t.Errorf("after all has gone: %q, %s", notes, holds(t, d))
	}
}

// TestTwoPrograms: the last to end wins, and nobody removes what another has changed.
func TestTwoPrograms(t *testing.T) {
	d, _ := open(t, workspace.Options{})
	seen := update(t, d, file("a", "1"), file("b", "1"), workspace.File{Path: "d", Folder: true}, file("d/x", "1")).Versions
	update(t, d, file("a", "2"), file("d/y", "2")) // by one program
	update(t, d, workspace.File{Path: "a", Gone: true, Version: seen["a"]}, workspace.File{Path: "b", Gone: true, Version: seen["b"]},
		workspace.File{Path: "d/x", Gone: true, Version: seen["d/x"]}, workspace.File{Path: "d", Gone: true}) // by another, that saw the first state
	if got := holds(t, d); got != "a d d/y" {
		t.Errorf("it holds %s", got)
	}
	if notes := update(t, d, file("d", "a file")).Notes; len(notes) != 1 {
		t.Errorf("a folder with a file of somebody else was replaced: %q", notes)
	}
	if notes := update(t, d, file("a", "3"), file("a/b", "4")).Notes; len(notes) != 0 || holds(t, d) != "a a/b d d/y" {
		t.Errorf("a file became a folder: %q, %s", notes, holds(t, d))
	}
}

// TestCutShort: what came whole before an error is kept, the rest is not there at all.
func TestCutShort(t *testing.T) {
	for _, sync := range []bool{false, true} {
		d, dir := open(t, workspace.Options{Sync: sync})
		update(t, d, file("b", "old"))
		lost := errors.New("lost")
		_, err := d.Update(func(yield func(workspace.File, error) bool) {
			_ = yield(file("a", "new"), nil) && yield(workspace.File{Path: "b", Size: 10, Content: io.NopCloser(io.MultiReader(strings.NewReader("12345"), broken{lost}))}, nil) && yield(file("c", ""), nil)
		})
		a, _ := os.ReadFile(filepath.Join(dir, "a"))
		b, _ := os.ReadFile(filepath.Join(dir, "b"))
		if !errors.Is(err, lost) || !bytes.Equal(a, []byte("new")) || string(b) != "old" || holds(t, d) != "a b" {
			t.Errorf("%v: a %q, b %q, holds %s", err, a, b, holds(t, d))
		}
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// TestSweep: what a killed update left is gone at the next start; one that goes on is left alone.
func TestSweep(t *testing.T) {
	d, dir := open(t, workspace.Options{})
	if err := errors.Join(os.Mkdir(filepath.Join(dir, ".sallyport-X"), 0o700), os.WriteFile(filepath.Join(dir, ".sallyport-X", "0"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := d.Update(func(yield func(workspace.File, error) bool) {
		if !yield(file("a", "1"), nil) {
			return
		}
		other, err := workspace.Open(dir, workspace.Options{})
		if err == nil {
			err = other.Close()
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".sallyport-*")); err != nil || len(left) != 1 {
			t.Errorf("while an update goes on: %v, %v", left, err)
		}
	})
	if err != nil || holds(t, d) != "a" {
		t.Errorf("%v, holds %s", err, holds(t, d))
	}
}

// TestNames (G08).
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"default": true, "a": true, "my-app_2": true, "": false, ".": false, "..": false, "../s2": false, "s2/../../": false, "A": false, "con": false, "CON": false,
		"nul": false, "com1": false, "-a": false, "a b": false, "a\n": false, "a\x00": false, "\u2024\u2024": false, strings.Repeat("a", 65): false, strings.Repeat("a", 10_000): false,
	} {
		if err := workspace.Name(name); (err == nil) != ok || err != nil && len(err.Error()) > 300 {
			t.Errorf("Name(%.20q): %v", name, err)
		}
	}
	seen := map[string]string{}
	for _, owner := range []string{"", "ada", "Ada", "..", "../ada", "ada/default", "+" + strings.Repeat("0", 32), "a\x00"} {
		folder := workspace.Folder(owner)
		if before, twice := seen[folder]; twice || !fs.ValidPath(folder) || strings.Contains(folder, "/") || folder == "." {
			t.Errorf("%q and %q have the folder %q", before, owner, folder)
		}
		seen[folder] = owner
	}
}

// FuzzPath writes under any name and reads it again: it is kept under that very name, or nowhere.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "..", "../secret", "/a", "a//b", "a\\b", "\xff", ".sallyport-x/0", "a\u202eb", "con", "é/日本"} {
		f.Add(seed)
	}
	d, dir := open(f, workspace.Options{})
	f.Fuzz(func(t *testing.T, path string) {
		updated, err := d.Update(workspace.Changes(file(path, "x")))
		_, kept := updated.Versions[path]
		if err != nil || kept != (len(updated.Notes) == 0) || kept && (!fs.ValidPath(path) || workspace.Check(path) != nil) {
			t.Fatalf("%q: %v, notes %q", path, err, updated.Notes)
		}
		opened, err := d.Open(path)
		if (err == nil) != kept {
			t.Fatalf("%q: open %v, kept %t", path, err, kept)
		}
		if kept {
			_ = opened.Content.Close()
			first, _, _ := strings.Cut(path, "/")
			if err := os.RemoveAll(filepath.Join(dir, first)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
