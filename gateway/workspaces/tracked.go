package workspaces

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"sallyport/gateway/execution"
	"sallyport/internal/workspace"
)

// maxFileChanges is the largest number of changes that is reported per program.
const maxFileChanges = 1000

// Tracked is a workspace that records the changes of a program.
type Tracked struct {
	Space

	mu      sync.Mutex
	changes []execution.FileChange
}

// Update implements [sandbox.Workspace].
func (c *Tracked) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
	var seen []execution.FileChange
	updated, err := c.Space.Update(func(yield func(workspace.File, error) bool) {
		for f, err := range changes {
			if err == nil && !f.Folder && len(seen) < maxFileChanges {
				seen = append(seen, execution.FileChange{Path: f.Path, Size: f.Size, Gone: f.Gone})
			}
			if !yield(f, err) {
				return
			}
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range seen {
		_, written := updated.Versions[f.Path]
		own := strings.HasPrefix(f.Path, workspace.Output+"/") // the gateway removes old output
		if written || f.Gone && !own {
			c.note(f)
		}
	}
	return updated, err
}

// note adds a change. mu must be held.
func (c *Tracked) note(f execution.FileChange) {
	c.changes = slices.DeleteFunc(c.changes, func(old execution.FileChange) bool { return old.Path == f.Path })
	if len(c.changes) < maxFileChanges {
		c.changes = append(c.changes, f)
	}
}

// Changes returns the changes, sorted by path.
func (c *Tracked) Changes() []execution.FileChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Clone(c.changes)
	slices.SortFunc(list, func(a, b execution.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return list
}
