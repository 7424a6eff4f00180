package shared

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/workspace"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

var id = ID{"ada", "default"}

// machine is a gateway with a directory of its own.
type machine struct {
	t       *testing.T
	records *store.Store
	all     *Workspaces
	dir     string
	copy    *workspace.Copy
	opts    workspace.Options
}

func newMachine(t *testing.T, c *natscluster.Cluster) *machine {
	t.Helper()
	m := &machine{t: t, records: storetest.Connect(t, c.Server("")), dir: filepath.Join(t.TempDir(), "default"), opts: workspace.Options{Bytes: 64 << 20, Inodes: 1000}}
	all, err := Open(m.records)
	if err != nil {
		t.Fatal(err)
	}
	m.all = all
	m.restart()
	return m
}

// restart forgets what the process knows.
func (m *machine) restart() { m.copy = workspace.NewCopy(m.all.Origin(id), testutil.Logger(m.t)) }

// open opens the workspace, up to date.
func (m *machine) open() *workspace.Dir {
	m.t.Helper()
	opts := m.opts
	opts.Copy = m.copy
	d, err := workspace.Open(m.dir, opts)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = d.Close() })
	if err := d.Refresh(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	return d
}

func file(path, text string) workspace.File {
	return workspace.File{Path: path, Size: int64(len(text)), Content: io.NopCloser(strings.NewReader(text))}
}

func update(t *testing.T, d *workspace.Dir, files ...workspace.File) workspace.Updated {
	t.Helper()
	updated, err := d.Update(workspace.Changes(files...))
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

// list returns the files as "path=content", folders as "path/".
func list(t *testing.T, d *workspace.Dir) (all []string) {
	t.Helper()
	files, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Folder {
			all = append(all, f.Path+"/")
			continue
		}
		all = append(all, f.Path+"="+read(t, d, f.Path))
	}
	return all
}

func read(t *testing.T, d *workspace.Dir, path string) string {
	t.Helper()
	f, err := d.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Content.Close() }()
	data, err := io.ReadAll(f.Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantFiles(t *testing.T, d *workspace.Dir, want ...string) {
	t.Helper()
	if got := list(t, d); !slices.Equal(got, want) {
		t.Errorf("files %.300q, want %.300q", got, want)
	}
}

// fileOf returns a file as a program got it.
func fileOf(t *testing.T, d *workspace.Dir, path string) workspace.File {
	t.Helper()
	files, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f workspace.File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("there is no %s: %v", path, files)
	}
	return files[i]
}

// TestTwoMachines: what one writes, the other reads, with the same versions, and the rules of an update hold between them.
func TestTwoMachines(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	d := one.open()
	wantFiles(t, d)
	run := file("bin/run", "echo")
	run.Executable = true
	written := update(t, d, file("a", "1"), file("empty", ""), run, file("big", strings.Repeat("x", 3*chunkSize+1)), file("b", "1"))
	wantFiles(t, two.open(), "a=1", "b=1", "big="+strings.Repeat("x", 3*chunkSize+1), "bin/", "bin/run=echo", "empty=")
	if got := fileOf(t, two.open(), "bin/run"); !got.Executable || got.Version != written.Versions["bin/run"] {
		t.Errorf("%+v, written as %q", got, written.Versions)
	}

	// Both have a program that began now. The last to end wins file by file, and removes only what the other has not changed.
	d2 := two.open()
	a, b := fileOf(t, d2, "a"), fileOf(t, d2, "b")
	update(t, d, file("a", "of one"))
	update(t, d2, file("c", "of two"), workspace.File{Path: "a", Gone: true, Version: a.Version}, workspace.File{Path: "b", Gone: true, Version: b.Version}, workspace.File{Path: "big", Gone: true, Version: fileOf(t, d2, "big").Version})
	wantFiles(t, d2, "a=of one", "bin/", "bin/run=echo", "c=of two", "empty=")
	wantFiles(t, one.open(), "a=of one", "bin/", "bin/run=echo", "c=of two", "empty=")

	// A careful writer does not replace what has changed.
	one.opts.Careful, two.opts.Careful = true, true
	d, d2 = one.open(), two.open()
	stale, fresh := file("a", "stale"), file("a", "fresh")
	stale.Version, fresh.Version = fileOf(t, d2, "a").Version, fileOf(t, d, "a").Version
	update(t, d, fresh)
	if refused := update(t, d2, stale); len(refused.Notes) != 1 || !strings.Contains(refused.Notes[0], "changed") {
		t.Errorf("%+v", refused)
	}
	wantFiles(t, two.open(), "a=fresh", "bin/", "bin/run=echo", "c=of two", "empty=")

	// The bounds are those of the workspace in the store.
	two.opts.Inodes = 5
	if full := update(t, two.open(), file("more", "x")); len(full.Notes) != 1 || !strings.Contains(full.Notes[0], "full") {
		t.Errorf("%+v", full)
	}
	if names, err := one.all.Names(t.Context(), "ada"); err != nil || !slices.Equal(names, []string{"default"}) {
		t.Errorf("%q, %v", names, err)
	}
	var gone []workspace.File
	for _, path := range []string{"a", "bin", "bin/run", "c", "empty"} {
		gone = append(gone, workspace.File{Path: path, Gone: true, Version: fileOf(t, one.open(), path).Version})
	}
	update(t, one.open(), gone...)
	wantFiles(t, two.open())
	if names, err := two.all.Names(t.Context(), "ada"); err != nil || len(names) > 0 {
		t.Errorf("without files: %q, %v", names, err)
	}
}

// TestConcurrent: writers at two machines lose nothing that was acknowledged, and all see the same at the end.
func TestConcurrent(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	machines := []*machine{newMachine(t, c), newMachine(t, c)}
	var work sync.WaitGroup
	for i := range 4 {
		d := machines[i%2].open()
		work.Go(func() {
			for n := range 40 {
				text := strings.Repeat(fmt.Sprintf("%d-%d ", i, n), 50)
				updated, err := d.Update(workspace.Changes(file(fmt.Sprintf("of%d/%d", i, n), text), file("shared", text), file(fmt.Sprintf("last%d", i), text)))
				if err != nil || len(updated.Notes) > 0 || len(updated.Versions) != 3 {
					t.Errorf("%+v, %v", updated, err)
				}
			}
		})
	}
	work.Wait()
	machines = append(machines, newMachine(t, c))
	want := list(t, machines[0].open())
	for _, m := range machines {
		d := m.open()
		wantFiles(t, d, want...)
		for i := range 4 {
			for n := range 40 {
				if text := read(t, d, fmt.Sprintf("of%d/%d", i, n)); text != strings.Repeat(fmt.Sprintf("%d-%d ", i, n), 50) {
					t.Errorf("%d/%d: %.20q", i, n, text)
				}
			}
			if text := read(t, d, fmt.Sprintf("last%d", i)); !strings.HasPrefix(text, fmt.Sprintf("%d-39 ", i)) {
				t.Errorf("the last of %d is %.20q", i, text)
			}
		}
	}
	if keys, err := machines[0].all.log.Usage(t.Context()); err != nil || keys.Records > 2*maxDepth {
		t.Errorf("%d records are left, %v", keys.Records, err)
	}
}

// TestTakeover: files that a directory had before are in the store afterwards, once; those that differ are moved away, not lost.
func TestTakeover(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	for m, text := range map[*machine]string{one: "of one", two: "of two"} {
		d, err := workspace.Open(m.dir, workspace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		update(t, d, file("same", "same"), file("only/"+text, text), file("differs", text))
		_ = d.Close()
	}
	one.open()
	want := []string{"differs=of one", "only/", "only/of one=of one", "only/of two=of two", "same=same"}
	wantFiles(t, two.open(), want...)
	wantFiles(t, one.open(), want...)
	moved, _ := filepath.Glob(two.dir + ".replaced-*/differs")
	if len(moved) != 1 {
		t.Fatalf("moved away: %q", moved)
	}
	if text, err := os.ReadFile(moved[0]); err != nil || string(text) != "of two" {
		t.Errorf("%q, %v", text, err)
	}
	if others, _ := filepath.Glob(one.dir + ".replaced-*"); len(others) > 0 {
		t.Errorf("moved away: %q", others)
	}
	// What a person changes in a directory is noticed at the next start.
	if err := os.WriteFile(filepath.Join(one.dir, "same"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(one.dir, "differs")); err != nil {
		t.Fatal(err)
	}
	one.restart()
	want[4] = "same=edited"
	wantFiles(t, one.open(), want...)
	wantFiles(t, two.open(), want...)
}

// TestMended: whatever is lost of a directory, the next Open restores it; and what was removed elsewhere does not come back.
func TestMended(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	update(t, one.open(), file("a", "1"), file("b/c", "2"), file("gone", "3"))
	d := two.open()
	update(t, d, workspace.File{Path: "gone", Gone: true, Version: fileOf(t, d, "gone").Version}, file("a", "changed"))
	want := []string{"a=changed", "b/", "b/c=2"}
	for name, damage := range map[string]func() error{
		"all files":     func() error { return os.RemoveAll(one.dir) },
		"one file":      func() error { return os.Remove(filepath.Join(one.dir, "a")) },
		"torn index":    func() error { return os.Truncate(filepath.Join(one.dir, ".sallyport-index"), 40) },
		"invalid index": func() error { return os.WriteFile(filepath.Join(one.dir, ".sallyport-index"), []byte("{}\nx"), 0o600) },
		"a copied directory": func() error {
			moved := one.dir + "-moved"
			return errors.Join(os.Rename(one.dir, moved), os.CopyFS(one.dir, os.DirFS(moved)), os.RemoveAll(moved))
		},
	} {
		wantFiles(t, one.open(), want...)
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		one.restart()
		t.Log(name)
		wantFiles(t, one.open(), want...)
		wantFiles(t, two.open(), want...)
	}
	// A process that is killed after the commit and before the files are in the directory.
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "before"), os.DirFS(one.dir)); err != nil {
		t.Fatal(err)
	}
	d = one.open()
	update(t, d, file("a", "newer"), workspace.File{Path: "b/c", Gone: true, Version: fileOf(t, d, "b/c").Version}, file("new", "new"))
	index, err := os.ReadFile(filepath.Join(one.dir, ".sallyport-index"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(index, []byte("\n"))
	end := slices.IndexFunc(lines, func(line []byte) bool {
		return bytes.Contains(line, []byte(`"path":"new"`)) && !bytes.Contains(line, []byte("local"))
	})
	for !bytes.Contains(lines[end], []byte(`"point"`)) {
		end++
	}
	if err := errors.Join(os.RemoveAll(one.dir), os.CopyFS(one.dir, os.DirFS(filepath.Join(dir, "before"))), os.WriteFile(filepath.Join(one.dir, ".sallyport-index"), bytes.Join(lines[:end+1], nil), 0o600)); err != nil {
		t.Fatal(err)
	}
	one.restart()
	wantFiles(t, one.open(), "a=newer", "b/", "new=new")
	wantFiles(t, two.open(), "a=newer", "b/", "new=new")
}

// TestHostile: records that no gateway wrote are named, and no file outside of the directory is touched.
func TestHostile(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	m := newMachine(t, c)
	for text, want := range map[string]error{
		`{"version":1,"entries":[{"path":"../x","hash":"` + strings.Repeat("0", 64) + `"}]}`: workspace.ErrDamaged,
		`{"version":1,"entries":[{"path":"x","hash":"1"}]}`:                                  workspace.ErrDamaged,
		`{"version":1,"entries":[{"path":".sallyport-index","gone":true}]}`:                  workspace.ErrDamaged,
		`{"version":2,"entries":[]}`:                                                         workspace.ErrNewer,
		`{`:                                                                                  workspace.ErrDamaged,
		`{"version":1,"entries":[{"path":"x","size":3,"hash":"` + strings.Repeat("0", 64) + `"}]}`: workspace.ErrDamaged,
	} {
		one := ID{"eve", fmt.Sprintf("w%x", sha256.Sum256([]byte(text)))[:20]}
		h := headOf(isFirst | isLast)
		h.depth = 1
		if _, err := m.all.log.Append(t.Context(), one.key(), h.format([]byte(text))); err != nil {
			t.Fatal(err)
		}
		opts := m.opts
		opts.Copy = workspace.NewCopy(m.all.Origin(one), testutil.Logger(t))
		d, err := workspace.Open(filepath.Join(t.TempDir(), "w"), opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Refresh(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
		if files, _ := d.List(); len(files) > 0 {
			t.Errorf("%s: %v", text, files)
		}
		_ = d.Close()
	}
	if _, err := m.all.log.Append(t.Context(), store.Key{"eve", "short"}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.all.Origin(ID{"eve", "short"}).Head(t.Context()); !errors.Is(err, workspace.ErrDamaged) {
		t.Errorf("short: %v", err)
	}
}

// TestAway: without the store nothing is written, and the files in the directory can be read; afterwards all works again.
func TestAway(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	d := one.open()
	update(t, d, file("a", "1"))
	c.Kill(t, 0)
	if updated, err := d.Update(workspace.Changes(file("a", "2"), file("b", "2"))); !errors.Is(err, store.ErrUnreachable) || len(updated.Versions) > 0 {
		t.Errorf("%+v, %v", updated, err)
	}
	if err := d.Refresh(t.Context()); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("refreshed: %v", err)
	}
	wantFiles(t, d, "a=1")
	c.Start(t, 0)
	testutil.Eventually(t, "the store answers", time.Minute, func() bool { _, err := two.all.Origin(id).Head(t.Context()); return err == nil })
	wantFiles(t, two.open(), "a=1")
	update(t, d, file("b", "3"))
	wantFiles(t, two.open(), "a=1", "b=3")
	if _, err := d.Open("c"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
