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

// maxNotes bounds the files that are named.
const maxNotes = 5

// Notes collects the files of a workspace that were not stored, for a model.
type Notes struct {
	// What happened to the files; "" means "not kept".
	What  string
	lines []string
	more  int
}

// Add records a file that was not stored, and why. The path is untrusted.
func (n *Notes) Add(path, why string) {
	if len(n.lines) == maxNotes {
		n.more++
		return
	}
	n.lines = append(n.lines, fmt.Sprintf("%s: %q (%s)", cmp.Or(n.What, "not kept"), sanitize.Line(path, 80), sanitize.Line(why, 120)))
}

// Lines returns the first notes and the number of the others.
func (n *Notes) Lines() []string {
	if n.more == 0 {
		return n.lines
	}
	return append(slices.Clip(n.lines), fmt.Sprintf("%s: %d more", cmp.Or(n.What, "not kept"), n.more))
}

// why returns why a file was not stored, without a host path.
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
