package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/filelock"
)

// maxAttempts bounds the attempts to commit while others commit too.
const maxAttempts = 100

// IsCurrent reports whether a copy is known to be up to date. It asks the origin once. A directory that is no copy is up to date.
func (d *Dir) IsCurrent(ctx context.Context) (bool, error) {
	c := d.opts.Copy
	if c == nil {
		return true, nil
	}
	head, err := c.origin.Head(ctx)
	if err != nil {
		return false, fmt.Errorf("refresh workspace: %w", err)
	}
	return c.isCurrent(d.root, head), nil
}

// IsComplete reports whether a copy is known to have all files as of some commit.
func (d *Dir) IsComplete() bool { return d.opts.Copy == nil || d.opts.Copy.isLoaded(d.root) }

// Refresh brings a copy up to date with its origin. If it is so already, it asks the origin once.
func (d *Dir) Refresh(ctx context.Context) error {
	if current, err := d.IsCurrent(ctx); err != nil || current {
		return err
	}
	unlock, err := filelock.Dir(d.dir, lockPatience)
	if err != nil {
		return fmt.Errorf("refresh workspace: %w", err)
	}
	defer unlock()
	if err := d.refresh(ctx); err != nil {
		return fmt.Errorf("refresh workspace: %w", err)
	}
	return nil
}

// refresh is Refresh with the directory locked. Files that were changed in the directory by hand, or before it was a copy, are committed.
func (d *Dir) refresh(ctx context.Context) error {
	c := d.opts.Copy
	for range maxAttempts {
		if err := c.load(d.root); err != nil {
			return err
		}
		delta, err := c.origin.Since(ctx, c.point)
		if err != nil {
			return err
		}
		if c.compared && !delta.Whole && len(delta.Entries) == 0 {
			c.move(delta.Head)
			return nil
		}
		r, err := d.compare(delta)
		if err != nil {
			return err
		}
		if err := r.apply(ctx); err != nil {
			return err
		}
		if err := r.commitOwn(ctx); !errors.Is(err, ErrOutdated) {
			return err
		}
	}
	return ErrOutdated
}

// move sets the newest commit, if it changes no file.
func (c *Copy) move(to Point) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.point = to
}

// refreshing is a refresh of a directory.
type refreshing struct {
	dir  *Dir
	copy *Copy
	head Point
	// first means that the directory was no copy so far.
	first bool
	local map[string]File
	odd   map[string]bool
	hash  map[string]string // of contents in the directory that were read

	index  []indexed // the lines to write first
	remove []string
	fetch  []Entry // files and folders that the directory lacks
	own    []File  // files and folders that the origin lacks
	aside  []string
}

// compare decides what to do in the directory, and in the origin.
func (d *Dir) compare(delta Delta) (*refreshing, error) {
	c := d.opts.Copy
	r := &refreshing{dir: d, copy: c, head: delta.Head, local: map[string]File{}, odd: map[string]bool{}, hash: map[string]string{}}
	if delta.Head.ID == "" && c.point.ID != "" { // the origin has lost all
		if err := c.reset(d.root); err != nil {
			return nil, err
		}
	}
	known := c.known // only this goroutine changes it, as the directory is locked
	r.first = c.point.ID == ""
	if err := d.walk(func(f File, err error) error {
		if f.Path == "" {
			return err
		}
		f.Version = f.local
		r.local[f.Path], r.odd[f.Path] = f, err != nil
		return nil
	}); err != nil {
		return nil, err
	}
	target := targetOf(known, delta)
	paths := maps.Clone(r.local)
	for path := range target {
		paths[path] = File{}
	}
	for path := range known {
		paths[path] = File{}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if err := r.decide(path, known, target); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// targetOf returns the files after a delta.
func targetOf(known map[string]indexed, delta Delta) map[string]Entry {
	target := map[string]Entry{}
	if !delta.Whole {
		for path, k := range known {
			if !k.Gone {
				target[path] = k.Entry
			}
		}
	}
	for _, e := range delta.Entries {
		if e.Gone {
			delete(target, e.Path)
			continue
		}
		target[e.Path] = e
	}
	return target
}

// decide decides about one path.
func (r *refreshing) decide(path string, known map[string]indexed, target map[string]Entry) error {
	before, indexedBefore := known[path]
	now, wanted := target[path]
	held, there := r.local[path]
	switch {
	case r.odd[path]: // a link and the like stays
	case !wanted && indexedBefore:
		r.unwanted(before, there)
	case !wanted:
		r.own = append(r.own, held)
	case !there:
		r.want(now)
	default:
		return r.decideHeld(held, now, before)
	}
	return nil
}

// unwanted decides about a path that the origin has no longer.
func (r *refreshing) unwanted(before indexed, there bool) {
	if !there {
		r.index = append(r.index, indexed{Entry: Entry{Path: before.Path}, Forget: true})
		return
	}
	r.remove = append(r.remove, before.Path)
	before.Gone, before.Local = true, ""
	r.index = append(r.index, before)
}

// decideHeld decides about a path that the directory and the origin have. before is the zero value for one that is not in the index.
func (r *refreshing) decideHeld(held File, now Entry, before indexed) error {
	same, err := r.isSame(held, now, before)
	switch {
	case err != nil:
		return err
	case same:
		if before.By != now.By || before.Local != held.local {
			r.index = append(r.index, indexed{Entry: now, Local: held.local})
		}
	case before.By == now.By && before.Local != "": // changed by hand
		r.own = append(r.own, held)
	default:
		if r.first && !held.Folder {
			r.aside = append(r.aside, held.Path)
		}
		r.want(now)
	}
	return nil
}

func (r *refreshing) want(e Entry) {
	r.fetch = append(r.fetch, e)
	r.index = append(r.index, indexed{Entry: e})
}

// isSame reports whether the directory has the content of an entry.
func (r *refreshing) isSame(held File, now Entry, before indexed) (bool, error) {
	if held.Folder || now.Folder {
		return held.Folder == now.Folder, nil
	}
	if held.Executable != now.Executable || held.Size != now.Size {
		return false, nil
	}
	if before.Local == held.local && before.Hash == now.Hash {
		return true, nil
	}
	sum, err := r.hashOf(held.Path)
	return sum == now.Hash, err
}

// hashOf reads a file of the directory; "" if it has just been removed.
func (r *refreshing) hashOf(path string) (string, error) {
	f, err := r.dir.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	defer func() { _ = f.Content.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f.Content); err != nil {
		return "", fmt.Errorf("read %q: %w", path, withoutPath(err))
	}
	r.hash[path] = hex.EncodeToString(sum.Sum(nil))
	return r.hash[path], nil
}

// apply changes the directory. The index says first what the directory will have, and at the end which files have their content: after a kill
// between the two, those that have not are compared again.
func (r *refreshing) apply(ctx context.Context) error {
	r.copy.setCompared(false)
	if len(r.index)+len(r.remove) > 0 {
		if err := r.copy.note(r.dir.root, r.head, r.index); err != nil {
			return err
		}
	} else {
		r.copy.move(r.head)
	}
	if err := r.putAside(); err != nil {
		return err
	}
	var done []indexed
	for _, path := range slices.Backward(r.remove) {
		if err := r.dir.root.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) { // a folder with a link in it stays
			done = append(done, indexed{Entry: Entry{Path: path}, Forget: true})
		}
	}
	fetched, err := r.fetchAll(ctx)
	if done = append(done, fetched...); len(done) > 0 {
		err = errors.Join(err, r.copy.note(r.dir.root, r.head, done))
	}
	if err != nil {
		return err
	}
	r.copy.setCompared(true)
	return nil
}

// putAside moves files that the origin has with another content out of the workspace: they were there before it was a copy.
func (r *refreshing) putAside() error {
	if len(r.aside) == 0 {
		return nil
	}
	folder := r.dir.dir + ".replaced-" + strings.ToLower(rand.Text()[:8])
	for _, path := range r.aside {
		to := filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(r.dir.dir, filepath.FromSlash(path)), to); err != nil {
			return err
		}
	}
	r.copy.log.Warn("files of a directory differ from those in the store: they are moved away", "folder", folder, "files", len(r.aside))
	return nil
}

// fetchers is the number of contents that are fetched at the same time.
const fetchers = 4

// fetchAll creates the folders and files that the directory lacks.
func (r *refreshing) fetchAll(ctx context.Context) (done []indexed, err error) {
	if len(r.fetch) == 0 {
		return nil, nil
	}
	temp := tempPrefix + rand.Text()
	if err := r.dir.root.Mkdir(temp, 0o700); err != nil { // sweep needs the lock of the directory, which we have
		return nil, err
	}
	defer func() { _ = r.dir.root.RemoveAll(temp) }()
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, fetchers)
	for i, e := range r.fetch {
		if e.Folder {
			mu.Lock()
			err = errors.Join(err, r.dir.makeFolder(e.Path))
			mu.Unlock()
			continue
		}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			one, failed := r.fetchOne(ctx, fmt.Sprintf("%s/%d", temp, i), e)
			mu.Lock()
			defer mu.Unlock()
			if err = errors.Join(err, failed); failed == nil {
				done = append(done, one)
			}
		})
		mu.Lock()
		stop := err != nil
		mu.Unlock()
		if stop {
			break
		}
	}
	work.Wait()
	if r.dir.opts.Sync {
		err = errors.Join(err, r.dir.sync(".", syncAll))
	}
	return done, err
}

// makeFolder creates a folder, in place of a file.
func (d *Dir) makeFolder(path string) error {
	err := d.root.MkdirAll(path, 0o755)
	if err == nil || d.root.Remove(path) != nil {
		return withoutPath(err)
	}
	return withoutPath(d.root.MkdirAll(path, 0o755))
}

// fetchOne fetches the content of a file to a temporary file, and moves it to its path.
func (r *refreshing) fetchOne(ctx context.Context, temp string, e Entry) (indexed, error) {
	root, mode := r.dir.root, os.FileMode(0o644)
	if e.Executable {
		mode = 0o755
	}
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return indexed{}, err
	}
	err = r.copy.origin.Fetch(ctx, e, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return indexed{}, fmt.Errorf("fetch %q: %w", e.Path, err)
	}
	_ = root.Chtimes(temp, e.modified(), e.modified()) // the time is for people
	if err := r.put(temp, e.Path); err != nil {
		return indexed{}, fmt.Errorf("place %q: %w", e.Path, withoutPath(err))
	}
	info, err := root.Lstat(e.Path)
	if err != nil {
		return indexed{}, withoutPath(err)
	}
	return indexed{Entry: e, Local: version(info)}, nil
}

// put moves a file to its path, in place of a file or an empty folder.
func (r *refreshing) put(temp, path string) error {
	root := r.dir.root
	if folder := parent(path); folder != "" {
		if err := r.dir.makeFolder(folder); err != nil {
			return err
		}
	}
	err := root.Rename(temp, path)
	if err == nil || root.Remove(path) != nil {
		return err
	}
	return root.Rename(temp, path)
}

// commitOwn commits the files that the origin lacks.
func (r *refreshing) commitOwn(ctx context.Context) error {
	if len(r.own) == 0 {
		return nil
	}
	var entries []Entry
	var lines []indexed
	room, count := r.dir.opts.Bytes, r.dir.opts.Inodes
	for _, f := range r.own {
		if f.Size > room || count == 0 {
			r.copy.log.Error("a file of a workspace is not in the store: the workspace is full", "file", f.Path)
			continue
		}
		room, count = room-f.Size, count-1
		e, err := r.saveOwn(ctx, f)
		if errors.Is(err, ErrStoreFull) {
			r.copy.log.Error("a file of a workspace is not in the store", "file", f.Path, "error", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("save %q: %w", f.Path, err)
		}
		entries, lines = append(entries, e), append(lines, indexed{Entry: e, Local: f.local})
	}
	if len(entries) == 0 {
		return nil
	}
	at, err := r.copy.origin.Commit(ctx, r.head, Commit{Entries: entries})
	if err != nil {
		return err
	}
	for i := range lines {
		lines[i].By = at.ID
	}
	if r.first {
		r.copy.log.Info("files of a directory are now in the store", "directory", r.dir.dir, "files", len(entries))
	}
	return r.copy.note(r.dir.root, at, lines)
}

// saveOwn saves the content of a file of the directory.
func (r *refreshing) saveOwn(ctx context.Context, f File) (Entry, error) {
	e := Entry{Path: f.Path, Folder: f.Folder, Executable: f.Executable, Size: f.Size, Modified: f.Modified.UnixNano()}
	if f.Folder {
		e.Modified = 0
		return e, nil
	}
	e.Hash = r.hash[f.Path]
	if e.Hash == "" {
		sum, err := r.hashOf(f.Path)
		if err != nil {
			return e, err
		}
		e.Hash = sum
	}
	opened, err := r.dir.open(f.Path)
	if err != nil {
		return e, err
	}
	defer func() { _ = opened.Content.Close() }()
	e.Ref, err = r.copy.origin.Save(ctx, e.Hash, f.Size, opened.Content)
	return e, err
}
