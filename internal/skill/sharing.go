package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
	"sallyport/internal/workspace/shared"
)

// sharing makes the folders of a [Store] copies of those in a store that several gateways use. A nil *sharing says that the directory has
// the skills.
type sharing struct {
	all     *shared.Workspaces
	dir     string
	log     *slog.Logger
	breaker *store.Breaker

	// files is locked while the files of folders change: those of a skill change one by one.
	files sync.RWMutex

	mu     sync.Mutex
	copies map[string]*workspace.Copy // by folder
	fresh  map[string]time.Time       // when the last refresh of a folder began
}

const (
	// freshTime is how long a refresh is good for further reads. What is not found is looked for in the store again.
	freshTime = 50 * time.Millisecond
	// maxFolders is the number of folders that are remembered.
	maxFolders = 500
	// saveAttempts is the number of attempts to change a skill while others change it.
	saveAttempts = 20
)

// Open returns the skills in a directory, or those in a store that several gateways use, of which the directory has copies.
func Open(dir string, records *store.Store, log *slog.Logger) (*Store, error) {
	all, err := shared.OpenSkills(records)
	if err != nil || all == nil {
		return New(dir), err
	}
	return &Store{dir: dir, shared: &sharing{all: all, dir: dir, log: log, breaker: records.Breaker(), copies: map[string]*workspace.Copy{}, fresh: map[string]time.Time{}}}, nil
}

// copyOf returns the copy in a folder.
func (h *sharing) copyOf(folder string) *workspace.Copy {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.copies[folder] == nil {
		if len(h.copies) >= maxFolders {
			clear(h.copies)
			clear(h.fresh)
		}
		h.copies[folder] = workspace.NewCopy(h.all.Origin(shared.ID{Folder: folder, Name: shared.SkillsName}), h.log)
	}
	return h.copies[folder]
}

// open opens a folder for changes that are all made, or none.
func (h *sharing) open(folder string) (*workspace.Dir, error) {
	return workspace.Open(filepath.Join(h.dir, folder), workspace.Options{
		Copy: h.copyOf(folder), Sync: true, Careful: true, All: true, Hidden: func(path string) bool { return strings.HasPrefix(path, tempPrefix) },
	})
}

// lock locks the files for reading.
func (h *sharing) lock() (unlock func()) {
	if h == nil {
		return func() {}
	}
	h.files.RLock()
	return h.files.RUnlock
}

// refresh brings a folder up to date, unless that was done a moment ago and force is not set, and reports whether it asked the store. While the
// store does not answer, the folder stays as it is.
func (h *sharing) refresh(folder string, force bool) bool {
	if h == nil || !force && h.isFresh(folder) {
		return false
	}
	began := time.Now()
	if err := h.refreshChanged(folder); err != nil {
		h.log.Warn("skills are read as they were", "folder", folder, "error", err)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fresh[folder] = began
	return true
}

// refreshChanged asks the store once, and fetches what has changed. Readers do not wait for a store that did not answer a moment ago.
func (h *sharing) refreshChanged(folder string) error {
	changed := false
	err := h.breaker.Do(context.Background(), func(ctx context.Context) (err error) {
		changed, err = h.isChanged(ctx, folder)
		return err
	})
	if err != nil || !changed {
		return err
	}
	return h.refreshOnce(context.Background(), folder) // the store bounds the time
}

// isChanged reports whether a folder must be refreshed. One that neither the store nor the directory has is not created.
func (h *sharing) isChanged(ctx context.Context, folder string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(h.dir, folder)); errors.Is(err, fs.ErrNotExist) {
		head, err := h.all.Origin(shared.ID{Folder: folder, Name: shared.SkillsName}).Head(ctx)
		return head.ID != "", err
	}
	h.files.RLock()
	defer h.files.RUnlock()
	d, err := h.open(folder)
	if err != nil {
		return false, err
	}
	current, err := d.IsCurrent(ctx)
	return !current, errors.Join(err, d.Close())
}

func (h *sharing) isFresh(folder string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known := h.fresh[folder]
	return known && time.Since(at) < freshTime
}

// refreshOnce brings a folder up to date.
func (h *sharing) refreshOnce(ctx context.Context, folder string) error {
	h.files.Lock()
	defer h.files.Unlock()
	d, err := h.open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Refresh(ctx), d.Close())
}

// change changes a folder in the store and in the directory. list returns the changes of its files as they are now.
func (h *sharing) change(folder string, list func(root *os.Root, d *workspace.Dir) ([]workspace.File, error)) (err error) {
	h.files.Lock()
	defer h.files.Unlock()
	d, err := h.open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	root, err := os.OpenRoot(filepath.Join(h.dir, folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for range saveAttempts {
		if err = d.Refresh(context.Background()); err != nil { // the store bounds the time
			return err
		}
		var files []workspace.File
		if files, err = list(root, d); err != nil || len(files) == 0 {
			return err
		}
		var updated workspace.Updated
		if updated, err = d.Update(workspace.Changes(files...)); !errors.Is(err, workspace.ErrPartial) {
			return err
		}
		err = fmt.Errorf("%w: %s", err, strings.Join(updated.Notes, "; "))
	}
	return err
}

// below returns the files and folders at and below a path.
func below(d *workspace.Dir, top string) (found []workspace.File, err error) {
	all, err := d.List()
	for _, f := range all {
		if f.Path == top || strings.HasPrefix(f.Path, top+"/") {
			found = append(found, f)
		}
	}
	return found, err
}

// gone returns the removal of files.
func gone(files []workspace.File) (all []workspace.File) {
	for _, f := range files {
		all = append(all, workspace.File{Path: f.Path, Folder: f.Folder, Gone: true, Version: f.Version})
	}
	return all
}

func newFile(at string, data []byte, version string) workspace.File {
	return workspace.File{Path: at, Size: int64(len(data)), Version: version, Content: io.NopCloser(bytes.NewReader(data))}
}

// save saves a skill as the next version.
func (h *sharing) save(s *Store, folder string, one Skill) (Skill, error) {
	err := h.change(folder, func(root *os.Root, d *workspace.Dir) ([]workspace.File, error) {
		if err := s.number(root, folder, &one); err != nil {
			return nil, err
		}
		held, err := below(d, one.Name)
		if err != nil {
			return nil, err
		}
		moved, err := movedFiles(root, one.Name, held)
		if err != nil {
			return nil, err
		}
		written := writtenFiles(one, held)
		left := slices.DeleteFunc(held, func(f workspace.File) bool {
			return f.Path == one.Name || slices.ContainsFunc(written, func(w workspace.File) bool {
				return w.Path == f.Path || strings.HasPrefix(w.Path, f.Path+"/")
			})
		})
		old, err := prunedFiles(root, d, one.Name, len(moved) > 0)
		return slices.Concat(moved, gone(left), old, written), err
	})
	return one, err
}

// movedFiles returns the files of the current version as those of an earlier one.
func movedFiles(root *os.Root, name string, held []workspace.File) (all []workspace.File, err error) {
	to := path.Join(versions, name, strconv.Itoa(freeNumber(root, name)))
	for _, f := range held {
		if f.Folder {
			continue
		}
		data, err := root.ReadFile(f.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, newFile(path.Join(to, strings.TrimPrefix(f.Path, name+"/")), data, ""))
	}
	return all, nil
}

// writtenFiles returns the files of a skill, which replace those of the current version.
func writtenFiles(one Skill, held []workspace.File) []workspace.File {
	before := map[string]string{}
	for _, f := range held {
		before[f.Path] = f.Version
	}
	at := path.Join(one.Name, frontFile)
	all := []workspace.File{newFile(at, one.Format(), before[at])}
	for _, file := range one.paths() {
		at := path.Join(one.Name, file)
		all = append(all, newFile(at, one.Files[file], before[at]))
	}
	return all
}

// prunedFiles returns the removal of versions beyond the limit. more says that there will be one more.
func prunedFiles(root *os.Root, d *workspace.Dir, name string, more bool) (all []workspace.File, err error) {
	kept, most := keptVersions(root, name), MaxVersions
	if more {
		most--
	}
	for _, old := range kept[:max(0, len(kept)-most)] {
		files, err := below(d, path.Join(versions, name, strconv.Itoa(old)))
		if err != nil {
			return nil, err
		}
		all = append(all, gone(files)...)
	}
	return all, nil
}

// remove removes a skill with all its versions.
func (h *sharing) remove(folder, name string) error {
	found := false
	err := h.change(folder, func(_ *os.Root, d *workspace.Dir) ([]workspace.File, error) {
		current, err := below(d, name)
		if err != nil {
			return nil, err
		}
		old, err := below(d, path.Join(versions, name))
		found = len(current)+len(old) > 0
		return gone(append(current, old...)), err
	})
	if err == nil && !found {
		return ErrNotFound
	}
	return err
}

// write writes a file at the top of a folder. text returns its new content for the current one.
func (h *sharing) write(folder, name string, text func() string) error {
	return h.change(folder, func(_ *os.Root, d *workspace.Dir) ([]workspace.File, error) {
		held, err := below(d, name)
		if err != nil {
			return nil, err
		}
		version := ""
		if len(held) > 0 {
			version = held[0].Version
		}
		return []workspace.File{newFile(name, []byte(text()), version)}, nil
	})
}

// Maintain brings the folders of the directory that the store lacks to the store, and the directory up to date, and then keeps the store
// tidy, until ctx ends. It does nothing for skills that are not shared by gateways.
func (s *Store) Maintain(ctx context.Context) {
	h := s.shared
	if h == nil {
		return
	}
	h.all.Maintain(ctx, h.log, func(ctx context.Context) error { return errors.Join(s.TakeOver(ctx), s.Fetch(ctx)) })
}

// TakeOver brings the folders of the directory that the store lacks to the store. It does nothing for skills that are not shared by gateways.
func (s *Store) TakeOver(ctx context.Context) error {
	h := s.shared
	if h == nil {
		return nil
	}
	folders, _ := os.ReadDir(s.dir) // a missing directory has none
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		if err := h.refreshOnce(ctx, folder.Name()); err != nil {
			return fmt.Errorf("skills of %s: %w", folder.Name(), err)
		}
	}
	return nil
}

// Fetch brings the directory up to date with all skills of the store.
func (s *Store) Fetch(ctx context.Context) error {
	h := s.shared
	if h == nil {
		return nil
	}
	all, err := h.all.All(ctx)
	if err != nil {
		return err
	}
	for _, id := range all {
		if err := h.refreshOnce(ctx, id.Folder); err != nil {
			return fmt.Errorf("skills of %s: %w", id.Folder, err)
		}
	}
	return nil
}

// ForgetCopies makes the folders of a directory ones that no store has seen: TakeOver brings what the store lacks to it.
func ForgetCopies(dir string) error {
	folders, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range folders {
		err = errors.Join(err, workspace.ForgetCopy(filepath.Join(dir, folder.Name())))
	}
	return err
}
