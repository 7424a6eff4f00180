//go:build linux

package sandbox

import (
	"fmt"
	"io"
	"os"

	"sallyport/internal/workspace"
)

// spill stores a stream that is too long for memory, up to max bytes, in an unlinked
// file, which disappears with this process.
type spill struct {
	dir  string // where the file is made
	max  int64
	size int64
	file *os.File
	err  error // why it stopped early
}

// write stores what fits. After an error, such as a full disk, the rest of the stream is dropped.
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

// outputDir is the workspace folder for output that was cut.
const outputDir = ".out"

// saveOutput saves the streams that were cut as workspace files, so that a later
// program can read them, and sets the paths in their clips. The notes are for the model.
func saveOutput(w Workspace, execution string, stdout, stderr *outputBuffer) (notes []string, err error) {
	files := []workspace.File{{Path: outputDir, Folder: true}}
	clips := []*outputBuffer{nil} // one for each file
	for i, c := range []*outputBuffer{stdout, stderr} {
		if s := c.spill; s != nil && s.size > 0 {
			path := outputDir + "/" + execution + []string{".stdout", ".stderr"}[i] + ".txt"
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
			clips[i].spillPath = "/workspace/" + file.Path
		}
	}
	if err != nil {
		err = fmt.Errorf("keep output in the workspace: %w", err)
	}
	return updated.Notes, err
}
