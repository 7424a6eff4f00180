package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
	"sallyport/internal/workspace/shared"
)

// copies are the copies, in a data directory, of workspaces that several gateways use. A nil *copies says that the directories are the
// workspaces. It is safe for concurrent use.
type copies struct {
	shared  *shared.Workspaces
	dir     string // has a folder for each principal
	log     *slog.Logger
	breaker *store.Breaker

	mu    sync.Mutex
	known map[string]*workspace.Copy // by directory

	stop context.CancelFunc // nil: nothing runs in the background
	work sync.WaitGroup
}

// maxCopies is the number of copies that are remembered. Others are read again from their directories.
const maxCopies = 500

// openCopies returns the copies of the workspaces in a store, nil for a store that gateways do not share.
func openCopies(opts Options) (*copies, error) {
	all, err := shared.Open(opts.Records)
	if err != nil || all == nil {
		return nil, err
	}
	return &copies{shared: all, dir: filepath.Join(opts.DataDir, workspacesFolder), log: opts.Logger, breaker: opts.Records.Breaker(), known: map[string]*workspace.Copy{}}, nil
}

// of returns the copy in a directory, nil for none.
func (c *copies) of(dir string) *workspace.Copy {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.known[dir]
	if found == nil {
		if len(c.known) >= maxCopies {
			clear(c.known)
		}
		found = workspace.NewCopy(c.shared.Origin(shared.ID{Folder: filepath.Base(filepath.Dir(dir)), Name: filepath.Base(dir)}), c.log)
		c.known[dir] = found
	}
	return found
}

// refresh brings an open copy up to date. With stale, a store that does not answer is no error if the copy was up to date earlier.
func (c *copies) refresh(ctx context.Context, ws *workspace.Dir, stale bool) error {
	if c == nil {
		return nil
	}
	if !stale {
		return ws.Refresh(ctx)
	}
	var current bool
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		current, err = ws.IsCurrent(ctx)
		return err
	})
	switch {
	case errors.Is(err, store.ErrUnreachable) && ctx.Err() == nil && ws.IsComplete():
		c.log.Warn("the store does not answer: a workspace is read as it was", "error", err)
		return nil
	case err != nil || current:
		return err
	}
	return ws.Refresh(ctx)
}

// ask calls f, which asks the store once. Callers do not wait for a store that did not answer a moment ago.
func (c *copies) ask(ctx context.Context, f func(ctx context.Context) error) error {
	err := c.breaker.Do(ctx, f)
	if errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	return err
}

// has reports whether a workspace is known to exist without asking the store.
func (c *copies) has(dir string) bool { return c != nil && workspace.IsCopy(dir) }

// names returns the names of the workspaces in a principal's directory, or of its folder in the store, sorted. Directories that are not in
// the store yet count.
func (c *copies) names(ctx context.Context, all string) (names []string, err error) {
	local := workspaceNames(all)
	if c == nil {
		return local, nil
	}
	err = c.ask(ctx, func(ctx context.Context) (err error) {
		names, err = c.shared.Names(ctx, filepath.Base(all))
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range local {
		if dir := filepath.Join(all, name); !workspace.IsCopy(dir) && !isEmpty(dir) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || len(entries) == 0
}

// Start begins to take over workspaces of the data directory that the store lacks, and to remove contents that no workspace uses.
func (s *Workspaces) Start() {
	if s.copies == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.copies.stop = stop
	s.copies.work.Go(func() { s.copies.shared.Maintain(ctx, s.copies.log, s.copies.takeOver) })
}

// Close ends the work in the background, and waits for it.
func (s *Workspaces) Close() {
	if s.copies == nil || s.copies.stop == nil {
		return
	}
	s.copies.stop()
	s.copies.work.Wait()
}

// takeOver brings the workspaces to the store that were made without it. The error is that of a store that does not answer.
func (c *copies) takeOver(ctx context.Context) error {
	known, err := c.shared.All(ctx)
	if err != nil {
		return err
	}
	folders, _ := os.ReadDir(c.dir) // a missing directory has none
	for _, folder := range folders {
		all := filepath.Join(c.dir, folder.Name())
		for _, name := range workspaceNames(all) {
			dir := filepath.Join(all, name)
			if workspace.IsCopy(dir) && slices.Contains(known, shared.ID{Folder: folder.Name(), Name: name}) || isEmpty(dir) {
				continue
			}
			if err := c.bring(ctx, dir); errors.Is(err, store.ErrUnreachable) || ctx.Err() != nil {
				return err
			} else if err != nil {
				c.log.Error("a workspace is not brought to the store", "directory", dir, "error", err)
			}
		}
	}
	return nil
}

// bring brings a directory and the store to the same state.
func (c *copies) bring(ctx context.Context, dir string) error {
	ws, err := workspace.Open(dir, workspace.Options{Sync: true, Copy: c.of(dir)})
	if err != nil {
		return err
	}
	return errors.Join(ws.Refresh(ctx), ws.Close())
}

// Fetch brings the data directory up to date with all workspaces of a store that gateways share.
func Fetch(ctx context.Context, records *store.Store, dataDir string, log *slog.Logger) error {
	c, err := openCopies(Options{DataDir: dataDir, Records: records, Logger: log})
	if err != nil || c == nil {
		return err
	}
	all, err := c.shared.All(ctx)
	if err != nil {
		return err
	}
	for _, id := range all {
		if err := c.bring(ctx, filepath.Join(c.dir, id.Folder, id.Name)); err != nil {
			return fmt.Errorf("workspace %s of %s: %w", id.Name, id.Folder, err)
		}
	}
	return nil
}

// ForgetCopies makes the workspaces of a data directory ones that no store has seen: a gateway brings what the store lacks to it.
func ForgetCopies(dataDir string) error {
	folders, err := os.ReadDir(filepath.Join(dataDir, workspacesFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range folders {
		all := filepath.Join(dataDir, workspacesFolder, folder.Name())
		for _, name := range workspaceNames(all) {
			err = errors.Join(err, workspace.ForgetCopy(filepath.Join(all, name)))
		}
	}
	return err
}
