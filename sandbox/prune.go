//go:build linux

package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"sallyport/internal/workspace"
)

const (
	// maxOutputAge is how long saved output is kept.
	maxOutputAge = 7 * 24 * time.Hour
	// outputShare is the divisor for the share of a workspace that saved output may fill: 1/outputShare.
	outputShare = 4
)

// outputName matches files that saveOutput made. Other files in the folder belong to programs.
var outputName = regexp.MustCompile(`^\.out/[a-z0-9-]{1,40}\.(stdout|stderr)\.txt$`)

// pruneOutput removes saved output of earlier programs if there is new output to save: files that are older than
// maxOutputAge, and the oldest ones that would exceed output's share of the workspace.
func pruneOutput(w Workspace, quota int64, now time.Time, clips ...*outputBuffer) error {
	room, fresh := quota/outputShare, false
	for _, c := range clips {
		if c.spill != nil && c.spill.size > 0 {
			room, fresh = room-c.spill.size, true
		}
	}
	if w == nil || !fresh {
		return nil
	}
	var old []workspace.File
	for f, err := range w.Files() {
		if err == nil && !f.Folder && outputName.MatchString(f.Path) {
			old = append(old, f)
		}
	}
	slices.SortFunc(old, func(a, b workspace.File) int { return b.Modified.Compare(a.Modified) })
	var gone []workspace.File
	for _, f := range old {
		if room -= f.Size; room < 0 || now.Sub(f.Modified) > maxOutputAge {
			gone = append(gone, workspace.File{Path: f.Path, Gone: true, Version: f.Version})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if _, err := w.Update(workspace.Changes(gone...)); err != nil {
		return fmt.Errorf("remove old output: %w", err)
	}
	return nil
}
