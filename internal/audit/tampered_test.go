package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/audit"
)

// TestTampered (K08): each way to change the files is found, at the first record that is concerned.
func TestTampered(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	l := open(t, whole, &audit.Options{Segment: 3000})
	for i := range 30 {
		add(t, l, call(fmt.Sprint("a.t", i)))
	}
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := l.Head()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	forged := open(t, t.TempDir(), nil)
	add(t, forged, call("x.forged"))
	line := forgedLine(t, forged)
	for _, c := range []struct {
		name string
		edit func(lines [][]byte) [][]byte
		seq  uint64
		text string
	}{
		{"nothing", func(l [][]byte) [][]byte { return l }, 0, ""},
		{"edited", func(l [][]byte) [][]byte { l[6] = bytes.Replace(l[6], []byte("allow"), []byte("deny!"), 1); return l }, 7, "edited"},
		{"hash edited", func(l [][]byte) [][]byte { l[6][len(l[6])-4] ^= 1; return l }, 7, ""}, // edited or, where that is no digit any more, no record
		{"no record", func(l [][]byte) [][]byte { l[6] = []byte("{}"); return l }, 7, "not a record"},
		{"time changed", func(l [][]byte) [][]byte {
			l[6] = bytes.Replace(l[6], []byte(`"time":"2`), []byte(`"time":"3`), 1)
			return l
		}, 7, "edited"},
		{"rewritten", func(l [][]byte) [][]byte { l[6] = audit.Rewrite(l[6], "allow", "deny"); return l }, 7, ""},
		{"removed", func(l [][]byte) [][]byte { return slices.Delete(l, 6, 7) }, 7, "missing"},
		{"several removed", func(l [][]byte) [][]byte { return slices.Delete(l, 6, 9) }, 7, "records 7 to 9 are missing"},
		{"first removed", func(l [][]byte) [][]byte { return slices.Delete(l, 0, 2) }, 1, "records 1 to 2 are missing"},
		{"reordered", func(l [][]byte) [][]byte { l[6], l[7] = l[7], l[6]; return l }, 7, "missing"},
		{"inserted", func(l [][]byte) [][]byte { return slices.Insert(l, 6, line) }, 2, "inserted"},
		{"repeated", func(l [][]byte) [][]byte { return slices.Insert(l, 7, l[6]) }, 7, "inserted"},
		{"tail cut", func(l [][]byte) [][]byte { return l[:len(l)-2] }, 30, "records 30 to 31 are missing"},
		{"all but one", func(l [][]byte) [][]byte { return l[:1] }, 2, "records 2 to 31 are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyLog(t, whole)
			editLines(t, dir, c.edit)
			for _, checks := range []*audit.Checks{nil, {Heads: []audit.Head{kept}}, {Mirror: mirrorOf(t, whole)}} {
				got := verify(t, dir, checks)
				if c.seq == 0 {
					if !got.OK() || checks != nil && checks.Mirror != nil && got.Mirrored != 31 {
						t.Errorf("%+v", got)
					}
					continue
				}
				if got.OK() || got.Problems[0].Seq != c.seq || !strings.Contains(got.Problems[0].Text, c.text) {
					t.Errorf("want %d %q, got %v", c.seq, c.text, got.Problems)
				}
			}
		})
	}
	t.Run("without a head", func(t *testing.T) {
		dir := copyLog(t, whole)
		editLines(t, dir, func(l [][]byte) [][]byte { return l[:len(l)-2] })
		if err := os.Remove(filepath.Join(dir, "head")); err != nil {
			t.Fatal(err)
		}
		if got := verify(t, dir, nil); !got.OK() || len(got.Notes) == 0 {
			t.Errorf("nobody can know: %+v", got)
		}
		if got := verify(t, dir, &audit.Checks{Heads: []audit.Head{kept}}); got.OK() || got.Problems[0].Seq != 30 {
			t.Errorf("with a head that was kept: %+v", got)
		}
		if got := verify(t, dir, &audit.Checks{Mirror: mirrorOf(t, whole)}); got.OK() || got.Problems[0].Seq != 30 {
			t.Errorf("with a copy: %+v", got)
		}
	})
	t.Run("a file removed", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(whole, "records-*.jsonl"))
		if err != nil || len(files) < 3 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			dir := copyLog(t, whole)
			if err := os.Remove(filepath.Join(dir, filepath.Base(f))); err != nil {
				t.Fatal(err)
			}
			if got := verify(t, dir, nil); got.OK() || !strings.Contains(got.Problems[0].Text, "missing") {
				t.Errorf("%s: %+v", filepath.Base(f), got)
			}
		}
	})
	t.Run("a forged head", func(t *testing.T) {
		dir := copyLog(t, whole)
		other, err := os.ReadFile(filepath.Join(dir, "head"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "head"), bytes.Replace(other, []byte(`"seq":31`), []byte(`"seq":29`), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := verify(t, dir, nil); got.OK() || !strings.Contains(got.Problems[0].Text, "signed") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("in a row", func(t *testing.T) { // a new process goes on behind what was cut off, and it stays known
		dir := copyLog(t, whole)
		editLines(t, dir, func(l [][]byte) [][]byte { return l[:len(l)-2] })
		add(t, open(t, dir, nil), call("a.next"))
		got := verify(t, dir, nil)
		if got.OK() || got.Problems[0].Seq != 30 || got.Last != 34 || len(got.Problems) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// editLines edits all lines of a log, of which each file keeps as many as it had; the last one gets the rest.
func editLines(t *testing.T, dir string, edit func([][]byte) [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "records-*.jsonl"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	var counts []int
	var lines [][]byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		these := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		counts = append(counts, len(these))
		lines = append(lines, these...)
	}
	lines = edit(lines)
	for i, f := range files {
		n := min(counts[i], len(lines))
		if i == len(files)-1 {
			n = len(lines)
		}
		if n == 0 {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.Chmod(f, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, append(bytes.Join(lines[:n], []byte("\n")), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		lines = lines[n:]
	}
}
