//go:build linux

package sandbox

import (
	"fmt"
	"io"
	"os"

	"sallyport/internal/workspace"
)

// spill is a stream that was too long for memory, up to a
// limit, in a file that is gone when we are, however that happens: it has no name.
type spill struct {
	dir  string // where the file is made
	max  int64
	size int64
	file *os.File
	err  error // why it ended early
}

// write takes what fits. A full disk costs the rest of the stream only.
func (s *spill) write(p []byte) {
	if s.file == nil && s.err == nil {
		s.err = s.open()
	}
	if s.err != nil {
		return
	}
	n, err := s.file.Write(p[:min(int64(len(p)), s.max-s.size)])
	s.size += int64(n)
	s.err = err
}

func (s *spill) open() error {
	f, err := os.CreateTemp(s.dir, ".spill-")
	if err != nil {
		return fmt.Errorf("make file for output: %w", err)
	}
	s.file = f
	return os.Remove(f.Name())
}

// content reads what was written.
func (s *spill) content() io.ReadCloser {
	return io.NopCloser(io.NewSectionReader(s.file, 0, s.size))
}

func (s *spill) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// outputs is the folder of a workspace that gets output which was cut.
const outputs = ".out"

// keepOutput makes files of the workspace of those streams that were cut, so that a
// later program can read all of them, and lets their clips say where. The notes are for the model.
func keepOutput(w Workspace, execution string, stdout, stderr *clip) (notes []string, err error) {
	files := []workspace.File{{Path: outputs, Folder: true}}
	clips := []*clip{nil} // one for each file
	for i, c := range []*clip{stdout, stderr} {
		if s := c.spill; s != nil && s.size > 0 {
			path := outputs + "/" + execution + []string{".stdout", ".stderr"}[i] + ".txt"
			files, clips = append(files, workspace.File{Path: path, Size: s.size, Content: s.content()}), append(clips, c)
		}
	}
	if w == nil || len(files) == 1 {
		return nil, nil
	}
	updated, err := w.Update(func(yield func(workspace.File, error) bool) {
		for _, file := range files {
			if !yield(file, nil) {
				return
			}
		}
	})
	for i, file := range files {
		if _, kept := updated.Versions[file.Path]; kept && !file.Folder {
			clips[i].kept = "/workspace/" + file.Path
		}
	}
	if err != nil {
		err = fmt.Errorf("keep output in the workspace: %w", err)
	}
	return updated.Notes, err
}
