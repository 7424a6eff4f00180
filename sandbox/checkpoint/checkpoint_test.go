package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/sandbox/checkpoint"
)

// trace is a log of runsc, as it prints system calls.
const trace = `D1126 21:44:22.1 1 config.go:548] Spec:
{
  "process": {}
}
I1126 21:44:22.859667       1 strace.go:602] [   1:   1] node X access(0x7ece /etc/ld.so.preload, 0o4) = -1 errno=2 (no such file or directory) (33.3µs)
I1126 21:44:22.859734       1 strace.go:608] [   1:   1] node X openat(AT_FDCWD /home/server, 0x7ece /srv/docs/a, b.txt, O_RDONLY|O_CLOEXEC, 0o0) = 3 (0x3) (6.7µs)
I1126 21:44:22.859735       1 strace.go:608] [   1:   1] node E openat(AT_FDCWD /home/server, 0x7ece /srv/started, O_RDONLY|O_CLOEXEC, 0o0)
I1126 21:44:22.859736       1 strace.go:608] [   1:   1] node X newfstatat(0x3 /srv/docs, 0x7ea1 c.txt, 0x7eba {dev=25, mode=S_IFDIR|0o755}, 0x0) = 0 (0x0) (1µs)
I1126 21:44:22.859737       1 strace.go:608] [   1:   1] node X newfstatat(0x1 host:[2], 0x7ea1 , 0x7eba {dev=8}, 0x1000) = 0 (0x0) (1µs)
I1126 21:44:22.859738       1 strace.go:602] [   1:   1] node X chdir(0x7ea1 /srv) = 0 (0x0) (1µs)
I1126 21:44:22.859739       1 strace.go:602] [   1:   1] python3 main X rename(0x7ea1 one, 0x7ea2 two) = 0 (0x0) (1µs)
I1126 21:44:22.859740       1 strace.go:602] [   1:   1] node X openat(AT_FDCWD /srv, 0x7ece log, O_WRONLY|O_APPEND, 0o0) = -1 errno=30 (read-only file system) (6.7µs)
I1126 21:44:22.859741       1 strace.go:605] [   1:   1] node X execve(0x7ea1 /bin/ls, 0x7ea1 ["ls", "/x"], 0xaca7 ["PATH=/usr/bin"]) = 0 (0x0) (7.9µs)
I1126 21:44:22.859742       1 strace.go:605] [   1:   1] node X connect(0x3 socket:[5], 0x7ea1 {Family: AF_INET, Addr: 198.18.0.1, Port: 53}, 0x10) = 0 (0x0) (6.4µs)
I1126 21:44:22.859743       1 strace.go:605] [   1:   1] node X connect(0x3 socket:[5], 0x7ea1 {Family: AF_UNIX, Addr: "/run/x"}, 0x10) = -1 errno=2 (no such file or directory) (6.4µs)
`

// TestTrace checks what a trace says, and that one with a line break in a path is incomplete.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "runsc.log.boot.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := checkpoint.ReadTrace(dir, "/home/server"); !errors.Is(err, checkpoint.ErrTrace) {
		t.Errorf("no trace: %v", err)
	}
	write(trace)
	got, err := checkpoint.ReadTrace(dir, "/home/server")
	if err != nil {
		t.Fatal(err)
	}
	want := checkpoint.Activity{
		Looked:  []string{"/bin/ls", "/etc/ld.so.preload", "/srv", "/srv/docs/a, b.txt", "/srv/docs/c.txt", "/srv/log", "/srv/one", "/srv/two"},
		Missing: []string{"/etc/ld.so.preload"}, Written: []string{"/srv/log", "/srv/one", "/srv/two"}, Opened: []string{"/srv/docs/a, b.txt", "/srv/log"},
		Network: []string{"connect 198.18.0.1:53"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	write(trace + "I1126 21:44:22.9 1 strace.go:602] [ 1: 1] node X mkdir(0x7ea1 /srv/a\nb, 0o777) = 0 (0x0) (1µs)\n")
	if _, err := checkpoint.ReadTrace(dir, "/home/server"); !errors.Is(err, checkpoint.ErrTrace) {
		t.Errorf("a path with a line break: %v", err)
	}
}

// FuzzTrace checks that no log makes ReadTrace fail in another way.
func FuzzTrace(f *testing.F) {
	f.Add(trace)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.boot.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		used, _ := checkpoint.ReadTrace(dir, "/home/server")
		for _, path := range used.Looked {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				t.Errorf("%q", path)
			}
		}
	})
}

// TestStore checks that a checkpoint is used while its inputs are unchanged, and that an owner has one.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	input := filepath.Join(t.TempDir(), "input")
	store, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(digest, owner string) {
		t.Helper()
		half, _, err := store.Begin()
		if err == nil {
			err = os.WriteFile(filepath.Join(half, "pages.img"), []byte("pages"), 0o600)
		}
		if err == nil {
			err = store.Commit(digest, half, checkpoint.Record{Owner: owner, Inputs: map[string]string{input: checkpoint.State(input, true)}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	found := func(digest string) bool { image, _ := store.Find(digest); return image != "" }
	commit("aaaaaaaa", "one")
	commit("bbbbbbbb", "two")
	if !found("aaaaaaaa") || !found("bbbbbbbb") {
		t.Error("a checkpoint is not found")
	}
	commit("cccccccc", "one")
	if found("aaaaaaaa") || !found("cccccccc") || found("../input") {
		t.Error("an owner has two checkpoints")
	}
	if err := os.WriteFile(input, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found("cccccccc") {
		t.Error("a checkpoint is used although a file appeared that the program had missed")
	}
	if err := store.Refuse("dddddddd", checkpoint.Record{Owner: "one", Refused: "because"}); err != nil {
		t.Fatal(err)
	}
	if image, refused := store.Find("dddddddd"); image != "" || refused != "because" {
		t.Errorf("%q, %q", image, refused)
	}
	all, err := store.List(t.Context())
	if err != nil || len(all) != 2 || all[0].Owner != "one" || all[1].Bytes == 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if removed, err := store.Prune(t.Context(), time.Now().Add(-time.Hour), false); err != nil || len(removed) != 0 {
		t.Errorf("too early: %+v, %v", removed, err)
	}
	if removed, err := store.Prune(t.Context(), time.Now().Add(time.Hour), true); err != nil || len(removed) != 2 {
		t.Errorf("dry run: %+v, %v", removed, err)
	}
	if removed, err := store.Prune(t.Context(), time.Now().Add(time.Hour), false); err != nil || len(removed) != 2 || found("bbbbbbbb") {
		t.Errorf("%+v, %v", removed, err)
	}
}
