package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"sallyport/internal/sanitize"
)

// maxNotes is how many files are named.
const maxNotes = 5

// Notes collects what of a workspace was not kept, for a model to read.
type Notes struct {
	// What happened to the files; "" is "not kept".
	What  string
	lines []string
	more  int
}

// Add says that a file was not kept, and why. The path may be anything.
func (n *Notes) Add(path, why string) {
	if len(n.lines) == maxNotes {
		n.more++
		return
	}
	n.lines = append(n.lines, fmt.Sprintf("%s: %q (%s)", cmp.Or(n.What, "not kept"), sanitize.Line(path, 80), sanitize.Line(why, 120)))
}

// Lines returns the notes, a few of them and how many more there are.
func (n *Notes) Lines() []string {
	if n.more == 0 {
		return n.lines
	}
	return append(slices.Clip(n.lines), fmt.Sprintf("%s: %d more", cmp.Or(n.What, "not kept"), n.more))
}

// why says why a file was not kept, without a path of the host.
func why(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full"
	case errors.Is(err, fs.ErrPermission):
		return "the host may not write there"
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		return linkErr.Err.Error()
	}
	return err.Error()
}
