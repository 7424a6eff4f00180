//go:build linux

package sandbox

import (
	"errors"
	"io"
	"iter"
	"os"
	"strings"
	"testing"

	"sallyport/internal/workspace"
)

// memoryWorkspace is a workspace that takes files of that size at most.
type memoryWorkspace struct {
	files map[string]string
	most  int64
	err   error
}

func (k *memoryWorkspace) Files() iter.Seq2[workspace.File, error] {
	return func(func(workspace.File, error) bool) {}
}
func (k *memoryWorkspace) Open(string) (workspace.File, error) {
	return workspace.File{}, os.ErrNotExist
}
func (k *memoryWorkspace) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
	updated := workspace.Updated{Versions: map[string]string{}}
	for file := range changes {
		switch {
		case file.Folder:
			k.files[file.Path+"/"] = ""
		case file.Size > k.most:
			updated.Notes = append(updated.Notes, "not kept: "+file.Path)
		default:
			data, err := io.ReadAll(file.Content)
			if err != nil || int64(len(data)) != file.Size {
				return updated, errors.New("wrong size")
			}
			k.files[file.Path], updated.Versions[file.Path] = string(data), "1"
		}
	}
	return updated, k.err
}

func TestOutputThatIsCutIsKept(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr := newOutputBuffer(100, 5000, func() {}), newOutputBuffer(100, 5000, func() {})
	stdout.spillTo(dir, 1<<20)
	stderr.spillTo(dir, 1000)
	want := ""
	for range 300 { // in pieces, across the limit
		_, _ = stdout.Write([]byte("0123456\n"))
		_, _ = stderr.Write([]byte("abcdefg\n"))
		want += "0123456\n"
	}
	if left := names(t, dir); left != "" {
		t.Errorf("files with a name: %s", left)
	}
	w := &memoryWorkspace{files: map[string]string{}, most: 1 << 20}
	notes, err := saveOutput(w, "e-1", stdout, stderr)
	must(t, err)
	if len(notes) > 0 || w.files[".out/e-1.stdout.txt"] != want || len(w.files[".out/e-1.stderr.txt"]) != 1000 || len(w.files) != 3 {
		t.Errorf("notes %q, files %v", notes, len(w.files))
	}
	if text := stdout.output().Text; !strings.Contains(text, "\n[... 2300 bytes cut; all of it: /workspace/.out/e-1.stdout.txt ...]\n") {
		t.Error(text)
	}
	if text := stderr.output().Text; !strings.Contains(text, "; the first 1000 bytes: /workspace/.out/e-1.stderr.txt ...]") {
		t.Error(text)
	}
	stdout.spill.close()
	stderr.spill.close()
}

func TestOutputThatIsNotKept(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		name   string
		w      Workspace
		dir    string
		print  string
		notes  int
		failed bool
	}{
		{"no workspace", nil, t.TempDir(), long, 0, false},
		{"nothing is cut", &memoryWorkspace{files: map[string]string{}}, t.TempDir(), "short", 0, false},
		{"a workspace that is full", &memoryWorkspace{files: map[string]string{}, most: 10}, t.TempDir(), long, 1, false},
		{"a workspace that fails", &memoryWorkspace{files: map[string]string{}, most: 10, err: errors.New("gone")}, t.TempDir(), long, 1, true},
		{"no place for a file", &memoryWorkspace{files: map[string]string{}, most: 1000}, "/nonexistent", long, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr := newOutputBuffer(100, 5000, func() {}), newOutputBuffer(100, 5000, func() {})
			stdout.spillTo(test.dir, 1<<20)
			_, _ = stdout.Write([]byte(test.print))
			notes, err := saveOutput(test.w, "e-1", stdout, stderr)
			if len(notes) != test.notes || (err != nil) != test.failed {
				t.Errorf("notes %q, %v", notes, err)
			}
			if text := stdout.output().Text; strings.Contains(text, "/workspace") || len(test.print) > 100 && !strings.Contains(text, "[... 200 bytes cut ...]") {
				t.Error(text)
			}
			stdout.spill.close()
		})
	}
}
