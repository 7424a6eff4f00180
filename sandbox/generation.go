//go:build linux

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// generations provides what Publish wrote as immutable trees: gVisor caches files that
// a program has accessed, so a tree must not change while it is in use.
type generations struct {
	mu      sync.Mutex // held while Publish writes, and while a tree is made
	count   int
	current *generation // nil if the last publish has not been used yet
}

// generation is one tree. It is removed when it is superseded and unused.
type generation struct {
	dir     string
	users   int
	retired bool
}

// acquireServers returns the newest tree. The caller releases it with releaseServers.
func (h *Host) acquireServers() (*generation, error) {
	g := &h.generations
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == nil {
		g.count++
		dir := filepath.Join(h.dir, fmt.Sprintf("servers-%d", g.count))
		if err := linkTree(h.servers(), dir); err != nil {
			return nil, fmt.Errorf("show wrappers to a sandbox: %w", err)
		}
		g.current = &generation{dir: dir}
	}
	g.current.users++
	return g.current, nil
}

func (h *Host) releaseServers(used *generation) error {
	h.generations.mu.Lock()
	used.users--
	unused := used.retired && used.users == 0
	h.generations.mu.Unlock()
	if unused {
		return os.RemoveAll(used.dir)
	}
	return nil
}

// retire retires the current tree, so that the next acquireServers makes a new one. It is called with mu held.
func (g *generations) retire() error {
	last := g.current
	g.current = nil
	if last == nil {
		return nil
	}
	last.retired = true
	if last.users > 0 {
		return nil
	}
	return os.RemoveAll(last.dir)
}

// isCurrent reports whether the tree contains the last publish.
func (h *Host) isCurrent(used *generation) bool {
	h.generations.mu.Lock()
	defer h.generations.mu.Unlock()
	return h.generations.current == used
}

// linkTree makes a folder with hard links to the files of another. This is safe because files are replaced, never modified.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return os.Link(path, filepath.Join(to, rel))
		}
		if err := os.Mkdir(filepath.Join(to, rel), 0o755); err != nil {
			return err
		}
		return os.Chmod(filepath.Join(to, rel), 0o755) // whatever our umask is
	})
}
