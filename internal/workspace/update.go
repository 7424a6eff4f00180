package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"slices"
	"strings"

	"sallyport/internal/filelock"
)

// Update applies a program's changes. Contents are written next to the workspace first and moved into it at the end,
// each atomically: a reader sees the old file or the new one. An error of changes ends them; the changes before it
// are applied, and the error is returned.
func (d *Dir) Update(changes iter.Seq2[File, error]) (Updated, error) {
	s := &stage{dir: d, at: map[string]int{}, made: map[string]string{}}
	s.target = directory{s}
	defer s.remove()
	err := s.collect(changes)
	if len(s.changes) > 0 {
		if commitErr := s.commit(); commitErr != nil {
			err = errors.Join(err, fmt.Errorf("update workspace: %w", commitErr))
		}
	}
	return Updated{Notes: append(s.notes.Lines(), s.refused.lines()...), Versions: s.made}, err
}

// stage is an update in progress.
type stage struct {
	dir      *Dir
	name     string   // of the folder of new contents
	temp     *os.Root // that folder; nil until the first content
	unlock   func()
	changes  []change
	at       map[string]int // the last change of a path
	size     int64          // of all contents
	notes    Notes
	refused  refusals
	made     map[string]string
	target   target
	partial  bool            // a change cannot be made
	existing map[string]File // the workspace's files; folders have no version
	odd      map[string]bool // entries that are neither file nor folder
	bytes    int64
}

// change is one File and the name of its new content, "" for none.
type change struct {
	File
	temp string
	hash string // of the content; only with Options.Copy
}

func (s *stage) collect(changes iter.Seq2[File, error]) error {
	for f, err := range changes {
		if err != nil {
			return err
		}
		if err := Check(f.Path); err != nil {
			s.notes.Add(f.Path, err.Error())
			continue
		}
		if s.dir.opts.Hidden(f.Path) {
			s.refused.add(f.Path, errHidden)
			continue
		}
		if s.dir.opts.Fixed(f.Path) {
			s.refused.add(f.Path, errFixed)
			continue
		}
		c := change{File: f}
		if !f.Gone && !f.Folder {
			if err := s.write(&c); err != nil {
				return err
			}
			if c.temp == "" {
				continue
			}
		}
		s.add(c)
	}
	return nil
}

// add adds a change; the last one of a path counts.
func (s *stage) add(c change) {
	c.Content = nil
	if i, twice := s.at[c.Path]; twice {
		s.drop(&s.changes[i])
		s.changes[i] = c
		return
	}
	s.at[c.Path] = len(s.changes)
	s.changes = append(s.changes, c)
}

func (s *stage) drop(c *change) {
	if c.temp != "" {
		_ = s.temp.Remove(c.temp)
		s.size -= c.Size
		c.temp = ""
	}
}

// commit moves the new contents into the workspace, under its lock.
func (s *stage) commit() error {
	if err := s.syncTemps(); err != nil {
		return err
	}
	if s.dir.opts.Copy != nil {
		return s.publish()
	}
	unlock, err := filelock.Dir(s.dir.dir, lockPatience)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.scan(); err != nil {
		return err
	}
	s.apply()
	return s.syncNames()
}

// apply makes the changes that the rules allow, and notes the others.
func (s *stage) apply() {
	slices.SortStableFunc(s.changes, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	for _, c := range slices.Backward(s.changes) { // content before its folder
		if c.Gone {
			s.clear(c)
		}
	}
	for _, c := range s.changes {
		if c.Gone {
			continue
		}
		if err := s.place(c); err != nil {
			s.partial = true
			s.notes.Add(c.Path, why(err))
		}
	}
}

// target is where changes are made: the directory, or a draft of them.
type target interface {
	// remove removes a file, or a folder without content.
	remove(path string) error
	mkdir(path string) error
	// move moves a new content to its path, and returns the version of the file.
	move(c change) (version string, err error)
}

// directory is the target of the changes that are made.
type directory struct{ *stage }

func (t directory) remove(path string) error { return t.dir.root.Remove(path) }

func (t directory) mkdir(path string) error {
	if err := t.dir.root.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (t directory) move(c change) (string, error) {
	root := t.dir.root
	if _, there := t.existing[c.Path]; there {
		t.keepMode(c)
	}
	if err := root.Rename(t.name+"/"+c.temp, c.Path); err != nil {
		return "", err
	}
	info, err := root.Lstat(c.Path)
	if err != nil {
		return "", err
	}
	return version(info), nil
}

// scan lists the workspace: other updates, and people, may have changed it.
func (s *stage) scan() error {
	s.existing, s.odd = map[string]File{}, map[string]bool{}
	return s.dir.walk(func(f File, err error) error {
		if f.Path == "" {
			return err
		}
		s.existing[f.Path], s.odd[f.Path] = f, err != nil
		s.bytes += f.Size
		return nil
	})
}

// clear removes a file that a program removed, unless it has changed since.
func (s *stage) clear(c change) {
	held, there := s.existing[c.Path]
	if !there || s.odd[c.Path] || !held.is(c.Version) {
		s.partial = true
		return
	}
	if err := s.target.remove(c.Path); err != nil { // a folder that is not empty stays
		s.partial = true
		return
	}
	s.forget(c.Path)
}

func (s *stage) forget(path string) {
	s.bytes -= s.existing[path].Size
	delete(s.existing, path)
}

// place moves one file or folder into the workspace.
func (s *stage) place(c change) error {
	if err := s.mkdirAll(parent(c.Path)); err != nil {
		return err
	}
	held, there := s.existing[c.Path]
	switch {
	case s.odd[c.Path]:
		return errOddThere
	case c.Folder && there && held.Folder:
		return nil
	case c.Folder:
		return s.mkdir(c.Path)
	case there && held.Folder:
		if err := s.target.remove(c.Path); err != nil {
			return errFolderThere
		}
		s.forget(c.Path)
	}
	return s.move(c)
}

// Conflicts with a file.
var (
	errChanged     = errors.New("it was changed meanwhile; read it again")
	errOddThere    = errors.New("what is there is neither a file nor a folder")
	errFolderThere = errors.New("there is a folder that is not empty")
)

// mkdirAll creates the parent folders of path.
func (s *stage) mkdirAll(path string) error {
	if path == "" || s.existing[path].Folder && !s.odd[path] {
		return nil
	}
	if err := s.mkdirAll(parent(path)); err != nil {
		return err
	}
	if s.odd[path] {
		return errOddThere
	}
	return s.mkdir(path)
}

// mkdir creates a folder, replacing a file.
func (s *stage) mkdir(path string) error {
	if _, there := s.existing[path]; there {
		if err := s.target.remove(path); err != nil {
			return err
		}
		s.forget(path)
	}
	if len(s.existing) >= s.dir.opts.Inodes {
		return errFull
	}
	if err := s.target.mkdir(path); err != nil {
		return err
	}
	s.existing[path] = File{Path: path, Folder: true}
	return nil
}

// keepMode gives a content the permissions of the file that it replaces, except for the executable bits.
func (s *stage) keepMode(c change) {
	info, err := s.dir.root.Lstat(c.Path)
	if err != nil {
		return
	}
	mode := info.Mode().Perm() &^ 0o111
	if c.Executable {
		mode |= mode >> 2 & 0o111 // for everyone with read permission
	}
	_ = s.temp.Chmod(c.temp, mode|0o600) // on failure, the mode of a new file
}

// move replaces the current file by a new content.
func (s *stage) move(c change) error {
	held, there := s.existing[c.Path]
	if s.bytes-held.Size > s.dir.opts.Bytes-c.Size || !there && len(s.existing) >= s.dir.opts.Inodes {
		return errFull
	}
	if s.dir.opts.Careful && !held.is(c.Version) {
		return errChanged
	}
	made, err := s.target.move(c)
	if err != nil {
		return err
	}
	s.bytes += c.Size - held.Size
	s.made[c.Path] = made
	s.existing[c.Path] = File{Path: c.Path, Size: c.Size, Version: s.made[c.Path]}
	return nil
}
