package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/audit"
)

// back gathers the numbers that Back gives, and 0 for what is damaged.
func back(t *testing.T, dir string, before uint64) (seqs []uint64) {
	t.Helper()
	for r, err := range audit.ReadBackward(dir, before) {
		switch {
		case err == nil:
			seqs = append(seqs, r.Seq)
		case errors.Is(err, audit.ErrDamaged):
			seqs = append(seqs, 0)
		default:
			t.Fatal(err)
		}
	}
	return seqs
}

// TestBack: whatever the sizes of records and files, Back gives what Read gives, the other way round, from any number on.
func TestBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 3000, 200 << 10, 1 << 30} {
		dir := t.TempDir()
		l := open(t, dir, &audit.Options{Segment: size})
		for i := range 60 {
			e := call(fmt.Sprintf("a.b%d", i))
			if i%9 == 0 {
				e.Text = strings.Repeat("print(1)\n", i*140) // up to 64 KiB, as much as a block
			}
			add(t, l, e)
		}
		var all []uint64
		for _, r := range records(t, dir) {
			all = append(all, r.Seq)
		}
		slices.Reverse(all)
		for _, before := range []uint64{0, 1, 2, 9, 10, 30, 61, 62, 1000} {
			want := slices.DeleteFunc(slices.Clone(all), func(seq uint64) bool { return before > 0 && seq >= before })
			if got := back(t, dir, before); !slices.Equal(got, want) {
				t.Errorf("files of %d bytes, before %d: %v, want %v", size, before, got, want)
			}
		}
	}
	if got := back(t, filepath.Join(t.TempDir(), "none"), 0); got != nil {
		t.Error(got)
	}
}

// TestBackDamaged: half a record at the end does not count yet, a line that is none is told of and passed.
func TestBackDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	add(t, open(t, dir, nil), call("a.b"), call("a.c"))
	files, _ := filepath.Glob(filepath.Join(dir, "records-*"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	huge := strings.Repeat("x", 5<<20) + "\n"
	if err := os.WriteFile(files[0], []byte(lines[0]+lines[1]+huge+lines[2]+`{"seq":4,"ti`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := back(t, dir, 0); !slices.Equal(got, []uint64{3, 0, 2, 1}) {
		t.Error(got)
	}
}
