package workspace

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"sallyport/internal/filelock"
)

// fewFiles is how many files are synced one by one; for more, the whole file system is synced.
const fewFiles = 8

// write stores a content next to the workspace. A content that cannot be stored is noted and left unread; the error
// is that of the changes themselves.
func (s *stage) write(c *change) error {
	if c.Size < 0 || c.Size > s.dir.opts.Bytes-s.size {
		s.notes.Add(c.Path, errFull.Error())
		return nil
	}
	name := strconv.Itoa(len(s.changes))
	if _, twice := s.at[c.Path]; twice {
		name += "-" + rand.Text()
	}
	written, err := s.copy(name, c)
	if err == nil {
		c.temp = name
		s.size += c.Size
		return nil
	}
	if s.temp != nil {
		_ = s.temp.Remove(name)
	}
	if written { // a host error
		s.notes.Add(c.Path, why(err))
		return nil
	}
	return err
}

// copy writes a content to a file. ours means that the error is the host's.
func (s *stage) copy(name string, c *change) (ours bool, err error) {
	if err := s.open(); err != nil {
		return true, err
	}
	mode := os.FileMode(0o644)
	if c.Executable {
		mode = 0o755
	}
	f, err := s.temp.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return true, err
	}
	source, to, sum := &source{Reader: c.Content}, io.Writer(f), sha256.New()
	if s.dir.opts.Copy != nil {
		to = io.MultiWriter(f, sum)
	}
	n, err := io.CopyN(to, source, c.Size)
	c.hash = hex.EncodeToString(sum.Sum(nil))
	closeErr := f.Close()
	if n < c.Size {
		return source.err == nil, fmt.Errorf("read %d of %d bytes: %w", n, c.Size, err)
	}
	return true, closeErr
}

// source records read errors, to tell them from write errors.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.err = err
	return n, err
}

// open creates the folder of this update. It is not removed by sweep while it is locked.
func (s *stage) open() error {
	if s.temp != nil {
		return nil
	}
	unlock, err := filelock.Dir(s.dir.dir, lockPatience) // against sweep, until the folder has a lock of its own
	if err != nil {
		return err
	}
	defer unlock()
	name := tempPrefix + rand.Text()
	if err := s.dir.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	if s.unlock, err = filelock.Dir(filepath.Join(s.dir.dir, name), 0); err != nil {
		return errors.Join(err, s.dir.root.Remove(name))
	}
	s.name = name
	s.temp, err = s.dir.root.OpenRoot(name)
	return err
}

// remove removes contents that were not moved into the workspace.
func (s *stage) remove() {
	if s.temp != nil {
		_ = s.temp.Close()
	}
	if s.unlock != nil {
		_ = s.dir.root.RemoveAll(s.name)
		s.unlock()
	}
}

// syncTemps syncs the contents of a few files, before they are renamed.
func (s *stage) syncTemps() error {
	if !s.dir.opts.Sync || len(s.changes) > fewFiles {
		return nil
	}
	for _, c := range s.changes {
		if c.temp == "" {
			continue
		}
		f, err := s.temp.Open(c.temp)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// syncNames syncs the folders, and with them the contents of many files.
func (s *stage) syncNames() error {
	if !s.dir.opts.Sync {
		return nil
	}
	folders := map[string]bool{}
	for _, c := range s.changes {
		folders[parent(c.Path)] = true
	}
	if len(s.changes) > fewFiles {
		return s.dir.sync(".", syncAll)
	}
	for folder := range folders {
		for ; folder != "" && !s.existing[folder].Folder; folder = parent(folder) { // it has gone
		}
		if err := s.dir.sync(filepath.Join(".", folder), (*os.File).Sync); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) sync(folder string, by func(*os.File) error) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(by(f), f.Close())
}
