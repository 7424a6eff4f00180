package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sync"

	"sallyport/internal/workspace"
)

// spool stores the files of a remote workspace while a program runs. All contents are in one
// unlinked file, so that their paths never become host paths, and nothing remains of them.
type spool struct {
	dir string // where the file is made

	mu      sync.Mutex // guards the rest
	file    *os.File
	size    int64
	order   []string
	entries map[string]spooledFile
}

// spooledFile is one file and the offset of its content.
type spooledFile struct {
	workspace.File
	at int64
}

func newSpool(dir string) *spool { return &spool{dir: dir, entries: map[string]spooledFile{}} }

// add stores one file. Its version is the digest of its content, with an "x" if it is executable.
func (s *spool) add(f workspace.File) (spooledFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := spooledFile{File: f, at: s.size}
	if !f.Folder && !f.Gone {
		if err := s.open(); err != nil {
			return entry, err
		}
		sum := sha256.New()
		n, err := io.CopyN(io.MultiWriter(io.NewOffsetWriter(s.file, s.size), sum), f.Content, f.Size)
		if err != nil {
			return entry, fmt.Errorf("read %d of %d bytes: %w", n, f.Size, err)
		}
		s.size += f.Size
		entry.Version = hex.EncodeToString(sum.Sum(nil))
		if f.Executable {
			entry.Version += "x"
		}
	}
	entry.Content = nil
	if _, known := s.entries[f.Path]; !known {
		s.order = append(s.order, f.Path)
	}
	s.entries[f.Path] = entry
	return entry, nil
}

// open is called with mu held.
func (s *spool) open() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp(s.dir, ".sallyport-spool-")
	if err != nil {
		return fmt.Errorf("make file for a workspace: %w", err)
	}
	s.file = f
	_ = os.Remove(f.Name()) // fails on systems that cannot remove an open file
	return nil
}

func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// Update implements [Workspace] for incoming files.
func (s *spool) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
	for f, err := range changes {
		if err == nil {
			_, err = s.add(f)
		}
		if err != nil {
			return workspace.Updated{}, err
		}
	}
	return workspace.Updated{}, nil
}

// Files implements [Workspace].
func (s *spool) Files() iter.Seq2[workspace.File, error] {
	s.mu.Lock()
	files := make([]workspace.File, 0, len(s.order))
	for _, path := range s.order {
		if f := s.entries[path].File; !f.Gone {
			files = append(files, f)
		}
	}
	s.mu.Unlock()
	return workspace.Changes(files...)
}

// Open implements [Workspace].
func (s *spool) Open(path string) (workspace.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.entries[path]
	if !ok || held.Gone || held.Folder {
		return workspace.File{}, fs.ErrNotExist
	}
	return held.open(s.file), nil
}

func (f spooledFile) open(file *os.File) workspace.File {
	f.Content = io.NopCloser(io.NewSectionReader(file, f.at, f.Size))
	return f.File
}
