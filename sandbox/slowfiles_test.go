//go:build linux

package sandbox_test

import (
	"io"
	"iter"
	"testing"
	"time"

	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

// slowWorkspace takes the end of each file late, as one behind a slow connection does.
type slowWorkspace struct{ sandbox.Workspace }

func (w slowWorkspace) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
	return w.Workspace.Update(func(yield func(workspace.File, error) bool) {
		for f, err := range changes {
			if f.Content != nil {
				f.Content = slowReader{f.Content}
			}
			if !yield(f, err) {
				return
			}
		}
	})
}

type slowReader struct{ io.ReadCloser }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return r.ReadCloser.Read(p)
}

// TestFilesArriveLate: a program whose files are still read when its sandbox has ended has its result, and its files are kept.
func TestFilesArriveLate(t *testing.T) {
	host, _ := newHost(t)
	ws, dir := openWorkspace(t, workspace.Options{})
	code := "for i in range(8): open(f'f{i}', 'w').write('x' * 1000)\n'done'"
	o := inWorkspace(t, host, slowWorkspace{ws}, sandbox.Python, code)
	if o.Status != sandbox.OK || o.Value == nil || o.Value.Text != `"done"` {
		t.Errorf("%+v", o)
	}
	if files := onDisk(t, dir); len(files) != 8 {
		t.Errorf("%d files are kept", len(files))
	}
}
