package skill

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/workspace"
)

// Store is a directory of skills: a folder per owner, in it a folder per skill.
// It is safe for concurrent use, and several processes may use one directory.
type Store struct {
	dir    string
	shared *sharing // nil: the directory has the skills
}

// New returns the store in a directory, which is created on the first write.
func New(dir string) *Store { return &Store{dir: dir} }

const (
	versions   = ".versions"
	tempPrefix = ".tmp-"
	// lockTimeout is the timeout for another writer's lock.
	lockTimeout = 20 * time.Second
	maxDepth    = 8
)

// openFolder opens an owner's folder; fs.ErrNotExist if nothing was ever written.
func (s *Store) openFolder(folder string, make bool) (*os.Root, error) {
	dir := filepath.Join(s.dir, folder)
	if make {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make folder of skills: %w", err)
		}
	}
	return os.OpenRoot(dir)
}

// Load returns a skill of an owner, the current version for 0. Errors are ErrNotFound, or describe its files.
func (s *Store) Load(owner, name string, version int) (Skill, error) {
	return s.load(workspace.Folder(owner), name, version)
}

func (s *Store) load(folder, name string, version int) (Skill, error) {
	if plain, err := Name(name); err != nil || plain != name {
		return Skill{}, ErrNotFound
	}
	asked := s.shared.refresh(folder, false)
	found, err := s.loadHere(folder, name, version)
	if errors.Is(err, ErrNotFound) && !asked && s.shared.refresh(folder, true) {
		return s.loadHere(folder, name, version)
	}
	return found, err
}

// loadHere loads a skill from the directory.
func (s *Store) loadHere(folder, name string, version int) (Skill, error) {
	defer s.shared.lock()()
	root, err := s.openFolder(folder, false)
	if err != nil {
		return Skill{}, ErrNotFound
	}
	defer func() { _ = root.Close() }()
	current, err := loadFrom(root, name, name)
	if version == 0 && !errors.Is(err, ErrNotFound) || err == nil && current.Version == version {
		return current, err
	}
	kept := keptVersions(root, name)
	if version == 0 && len(kept) > 0 { // a writer is between two steps, or was killed there
		version = kept[len(kept)-1]
	}
	if !slices.Contains(kept, version) {
		return Skill{}, ErrNotFound
	}
	return loadFrom(root, path.Join(versions, name, strconv.Itoa(version)), name)
}

// loadFrom reads a folder. The open folder stays valid if a writer moves it concurrently.
func loadFrom(root *os.Root, at, name string) (Skill, error) {
	if info, err := root.Lstat(at); err != nil || !info.IsDir() {
		return Skill{}, ErrNotFound
	}
	folder, err := root.OpenRoot(at)
	if err != nil {
		return Skill{}, ErrNotFound
	}
	defer func() { _ = folder.Close() }()
	files, err := readFiles(folder)
	if err != nil {
		return Skill{}, err
	}
	front, body, err := Parse(files[frontFile])
	if err != nil {
		return Skill{}, err
	}
	delete(files, frontFile)
	found := Skill{Front: front, Body: body, Files: files}
	found.Name, found.Version = name, max(found.Version, 1)
	if _, ts := files[suffixTS]; found.Language == "" {
		found.Language = Python
		if _, py := files[suffixPy]; ts && !py {
			found.Language = TypeScript
		}
	}
	return found, nil
}

// readFiles reads the regular files of a folder; links and devices are ignored.
func readFiles(folder *os.Root) (map[string][]byte, error) {
	files, size := map[string][]byte{}, 0
	err := fs.WalkDir(folder.FS(), ".", func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.Count(at, "/") >= maxDepth || strings.HasPrefix(entry.Name(), ".") && at != "." || entry.Name() == "__pycache__"):
			return fs.SkipDir
		case !isFile(at, entry):
			return nil
		}
		f, err := folder.Open(at)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
		_ = f.Close()
		files[at] = data
		if size += len(data); size > MaxBytes || len(files) > MaxFiles {
			return ErrTooLarge
		}
		return err
	})
	return files, err
}

func isFile(at string, entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && workspace.Check(at) == nil
}

// Names returns the names of an owner's skills, sorted.
func (s *Store) Names(owner string) []string { return s.names(workspace.Folder(owner)) }

func (s *Store) names(folder string) []string {
	s.shared.refresh(folder, false)
	defer s.shared.lock()()
	return s.namesHere(folder)
}

// namesHere lists the skills in the directory.
func (s *Store) namesHere(folder string) []string {
	root, err := s.openFolder(folder, false)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	var all []string
	for _, at := range []string{".", versions} { // in versions alone while a writer is between two steps
		entries, err := fs.ReadDir(root.FS(), at)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if name, err := Name(entry.Name()); err == nil && name == entry.Name() && entry.IsDir() && (at == "." || len(keptVersions(root, name)) > 0) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), MaxSkills)]
}

// Stamp changes when an owner's skills may have changed: it covers names, sizes and times only.
func (s *Store) Stamp(owner string) string { return s.stamp(workspace.Folder(owner)) }

func (s *Store) stamp(folder string) string {
	s.shared.refresh(folder, false)
	defer s.shared.lock()()
	root, err := s.openFolder(folder, false)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	var b strings.Builder
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries[:min(len(entries), 2*MaxSkills)] {
		for _, file := range []string{".", frontFile, suffixPy, suffixTS} {
			if info, err := root.Lstat(path.Join(entry.Name(), file)); err == nil {
				fmt.Fprintf(&b, "%s %d %d\n", entry.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}

// keptVersions returns the stored earlier versions of a skill, ascending.
func keptVersions(root *os.Root, name string) (list []int) {
	entries, err := fs.ReadDir(root.FS(), path.Join(versions, name))
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && n > 0 && strconv.Itoa(n) == entry.Name() {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// Versions returns the versions that Load finds, ascending.
func (s *Store) Versions(owner, name string) []int {
	current, err := s.Load(owner, name, 0)
	if err != nil {
		return nil
	}
	defer s.shared.lock()()
	root, err := s.openFolder(workspace.Folder(owner), false)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	all := append(keptVersions(root, name), current.Version)
	slices.Sort(all)
	return slices.Compact(all)
}

// Save writes a skill as its owner's next version, and returns it with its number. The write is atomic for readers,
// also if the process is killed; when Save has returned, it survives a loss of power.
func (s *Store) Save(owner string, one Skill) (Skill, error) {
	return s.save(workspace.Folder(owner), one)
}

func (s *Store) save(folder string, one Skill) (_ Skill, err error) {
	one.raw = nil
	one.Version = max(one.Version, 1)
	if err := one.Check(); err != nil {
		return Skill{}, err
	}
	if s.shared != nil {
		return s.shared.save(s, folder, one)
	}
	root, err := s.openFolder(folder, true)
	if err != nil {
		return Skill{}, err
	}
	defer func() { _ = root.Close() }()
	unlock, err := filelock.Dir(filepath.Join(s.dir, folder), lockTimeout)
	if err != nil {
		return Skill{}, fmt.Errorf("lock skills: %w", err)
	}
	defer unlock()
	sweep(root)
	if err := s.number(root, folder, &one); err != nil {
		return Skill{}, err
	}
	temp := tempPrefix + rand.Text()
	defer func() { _ = root.RemoveAll(temp) }()
	if err := write(root, temp, one); err != nil {
		return Skill{}, fmt.Errorf("write skill: %w", err)
	}
	if err := swap(root, temp, one.Name); err != nil {
		return Skill{}, fmt.Errorf("write skill: %w", err)
	}
	prune(root, one.Name)
	return one, nil
}

// number sets a skill's version to the one after the newest.
func (s *Store) number(root *os.Root, folder string, one *Skill) error {
	one.Version = 1
	if kept := keptVersions(root, one.Name); len(kept) > 0 {
		one.Version = kept[len(kept)-1] + 1
	}
	before, err := loadFrom(root, one.Name, one.Name)
	switch {
	case err == nil:
		one.Version = max(one.Version, before.Version+1)
	case !errors.Is(err, ErrNotFound):
		one.Version++ // a folder that cannot be read is kept all the same
	case len(s.namesHere(folder)) >= MaxSkills:
		return ErrFull
	}
	return nil
}

func write(root *os.Root, temp string, one Skill) error {
	if err := root.Mkdir(temp, 0o700); err != nil {
		return err
	}
	put := func(at string, data []byte) error {
		at = path.Join(temp, at)
		if err := root.MkdirAll(path.Dir(at), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Sync(), f.Close())
	}
	err := put(frontFile, one.Format())
	for _, at := range one.paths() {
		err = cmp.Or(err, put(at, one.Files[at]))
	}
	return cmp.Or(err, syncDir(root, temp))
}

// swap makes a new folder the current version and the current one an earlier version. Between the two steps only the
// earlier one exists, and Load returns that.
func swap(root *os.Root, temp, name string) error {
	if _, err := root.Lstat(name); err == nil {
		if err := root.MkdirAll(path.Join(versions, name), 0o700); err != nil {
			return err
		}
		if err := root.Rename(name, path.Join(versions, name, strconv.Itoa(freeNumber(root, name)))); err != nil {
			return err
		}
		if err := syncDir(root, path.Join(versions, name)); err != nil {
			return err
		}
	}
	if err := root.Rename(temp, name); err != nil {
		return err
	}
	return syncDir(root, ".")
}

// freeNumber returns a free version number for the current folder: its own, if it has one.
func freeNumber(root *os.Root, name string) int {
	kept, number := keptVersions(root, name), 1
	if before, err := loadFrom(root, name, name); err == nil {
		number = before.Version
	}
	if len(kept) > 0 && slices.Contains(kept, number) {
		number = kept[len(kept)-1] + 1
	}
	return number
}

// prune removes versions beyond the limit.
func prune(root *os.Root, name string) {
	kept := keptVersions(root, name)
	for _, old := range kept[:max(0, len(kept)-MaxVersions)] {
		_ = root.RemoveAll(path.Join(versions, name, strconv.Itoa(old)))
	}
}

// sweep removes the leftovers of killed writers; it is called with the folder locked.
func sweep(root *os.Root) {
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), tempPrefix) {
			_ = root.RemoveAll(entry.Name())
		}
	}
}

func syncDir(root *os.Root, at string) error {
	f, err := root.Open(at)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// Remove removes a skill of an owner with all its versions.
func (s *Store) Remove(owner, name string) error { return s.remove(workspace.Folder(owner), name) }

func (s *Store) remove(folder, name string) error {
	if s.shared != nil {
		return s.shared.remove(folder, name)
	}
	if _, err := s.load(folder, name, 0); errors.Is(err, ErrNotFound) {
		return err
	}
	root, err := s.openFolder(folder, false)
	if err != nil {
		return ErrNotFound
	}
	defer func() { _ = root.Close() }()
	unlock, err := filelock.Dir(filepath.Join(s.dir, folder), lockTimeout)
	if err != nil {
		return fmt.Errorf("lock skills: %w", err)
	}
	defer unlock()
	// The versions first: a kill between the two leaves a complete skill.
	return cmp.Or(root.RemoveAll(path.Join(versions, name)), root.RemoveAll(name), syncDir(root, "."))
}
