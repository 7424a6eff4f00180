package workspace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Copy is what a process knows about the copy of an [Origin] in one directory. The directory has an index of the files
// that it had after the last commit that was applied. It is safe for concurrent use; changes need the lock of the directory.
type Copy struct {
	origin Origin
	log    *slog.Logger

	mu       sync.RWMutex
	point    Point
	known    map[string]indexed
	stat     string // the version of the index file when it was read or written
	lines    int    // of the index file
	loaded   bool
	torn     bool // the index file ends with an incomplete group
	compared bool // the directory was compared with the index since the process began
}

// NewCopy returns a copy of an origin.
func NewCopy(origin Origin, log *slog.Logger) *Copy {
	return &Copy{origin: origin, log: log, known: map[string]indexed{}}
}

// indexed is a file as of the last commit. One that is Gone may still be in the directory.
type indexed struct {
	Entry

	// Local is the version of the file in the directory that is known to have the content; "" means that it may have another one.
	Local string `json:"local,omitempty"`
	// Forget removes the line of a file that is gone.
	Forget bool `json:"forget,omitempty"`
	// Point is set in the line that ends a group of lines, and only there.
	Point *Point `json:"point,omitempty"`
}

// IsCopy reports whether a directory has been the copy of an [Origin].
func IsCopy(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, indexFile))
	return err == nil
}

// ForgetCopy makes a directory one that has never been a copy.
func ForgetCopy(dir string) error {
	if err := os.Remove(filepath.Join(dir, indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// indexFile is the index: groups of lines of JSON. A group without its last line does not count.
const indexFile = tempPrefix + "index"

// version returns the version of a file on all machines, or its version in the directory if it was changed there.
func (c *Copy) version(path, local string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if k, ok := c.known[path]; ok && k.Local == local && !k.Gone {
		return k.By
	}
	return local
}

// isCurrent reports whether the directory has the state of a commit, as far as this process knows.
func (c *Copy) isCurrent(root *os.Root, head Point) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.loaded && c.compared && c.point.ID == head.ID && c.stat == indexStat(root)
}

// isLoaded reports whether the index in memory is that in the directory.
func (c *Copy) isLoaded(root *os.Root) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.loaded && c.compared && c.stat == indexStat(root)
}

// indexStat returns the version of the index file, "" if there is none.
func indexStat(root *os.Root) string {
	info, err := root.Lstat(indexFile)
	if err != nil {
		return ""
	}
	return version(info)
}

// load reads the index if another process has changed it, or this one has not read it.
func (c *Copy) load(root *os.Root) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stat := indexStat(root)
	if c.loaded && c.stat == stat {
		return nil
	}
	c.point, c.known, c.lines, c.compared = Point{}, map[string]indexed{}, 0, false
	c.torn = false
	f, err := root.OpenFile(indexFile, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		c.loaded, c.stat = true, ""
		return nil
	}
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := c.read(f); err != nil {
		return err
	}
	c.loaded, c.stat = true, stat
	return nil
}

// read reads the lines of an index, up to the first one that is damaged.
func (c *Copy) read(f *os.File) error {
	in := bufio.NewReaderSize(f, 64<<10)
	var group []indexed
	for {
		line, err := in.ReadBytes('\n')
		var one indexed
		if err != nil || json.Unmarshal(line, &one) != nil { // the end; files without a valid line are compared with the origin
			c.torn = len(line)+len(group) > 0
			return nil //nolint:nilerr // as above
		}
		c.lines++
		if one.Point == nil {
			group = append(group, one)
			continue
		}
		c.point = *one.Point
		c.enter(group)
		group = nil
	}
}

// enter adds lines to the index in memory.
func (c *Copy) enter(group []indexed) {
	for _, one := range group {
		if one.Forget {
			delete(c.known, one.Path)
			continue
		}
		c.known[one.Path] = one
	}
}

// note writes a group to the index, as of a commit.
func (c *Copy) note(root *os.Root, at Point, group []indexed) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.loaded = c.loaded && err == nil }() // else it is read again
	c.point = at
	c.enter(group)
	if c.lines += len(group) + 1; c.stat == "" || c.torn || c.lines > 2*len(c.known)+1000 {
		return c.rewrite(root)
	}
	f, err := root.OpenFile(indexFile, os.O_WRONLY|os.O_APPEND|noFollow, 0)
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	if err := errors.Join(writeLines(f, group, at), f.Close()); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	c.stat = indexStat(root)
	return nil
}

// rewrite replaces the index file. mu must be held.
func (c *Copy) rewrite(root *os.Root) error {
	const temp = indexFile + "-new"
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	all := slices.SortedFunc(maps.Values(c.known), func(a, b indexed) int { return strings.Compare(a.Path, b.Path) })
	if err := errors.Join(writeLines(f, all, c.point), f.Close()); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	if err := root.Rename(temp, indexFile); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	c.lines, c.stat, c.torn = len(all)+1, indexStat(root), false
	return nil
}

func writeLines(f *os.File, group []indexed, at Point) error {
	out := bufio.NewWriterSize(f, 64<<10)
	lines := json.NewEncoder(out)
	for _, one := range group {
		if err := lines.Encode(one); err != nil {
			return err
		}
	}
	return errors.Join(lines.Encode(indexed{Point: &at}), out.Flush())
}

// setCompared says whether the directory has what the index says.
func (c *Copy) setCompared(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compared = is
}

// reset forgets all files.
func (c *Copy) reset(root *os.Root) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.point, c.stat, c.lines, c.compared = Point{}, "", 0, false
	clear(c.known)
	if err := root.Remove(indexFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove index: %w", err)
	}
	return nil
}

// files returns the files as of the last commit, sorted by path.
func (c *Copy) files() []Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]Entry, 0, len(c.known))
	for _, k := range c.known {
		if !k.Gone {
			all = append(all, k.Entry)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all
}
