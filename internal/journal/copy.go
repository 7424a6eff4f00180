package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Copy is a second place for one journal, which other gateways read. It has the content of the file, or the beginning of it.
type Copy interface {
	// Load returns the content. What is appended next must follow it.
	Load() (Loaded, error)
	// Append adds data, at the latest with the next Flush.
	Append(data []byte)
	// Flush returns when all that was appended is stored. It does not begin an empty copy unless begin is set. The error is
	// [ErrTaken] if another gateway has appended something.
	Flush(begin bool) error
	// Close drops what was not flushed. It is idempotent.
	Close()
	// Remove closes the copy and removes its content.
	Remove() error
}

// Loaded is the content of a copy.
type Loaded struct {
	// Data is the content, nil if there is no copy, and Written the time of its last part.
	Data    []byte
	Written time.Time
	// Running: the gateway that ran the execution may be alive.
	Running bool
}

// noCopy is the copy of a journal that has none.
type noCopy struct{}

func (noCopy) Load() (Loaded, error) { return Loaded{}, nil }
func (noCopy) Append([]byte)         {}
func (noCopy) Flush(bool) error      { return nil }
func (noCopy) Close()                {}
func (noCopy) Remove() error         { return nil }

// loadAttempts is how often a copy is loaded that changes at the same time.
const loadAttempts = 3

// OpenCopied reads and locks a journal that has a copy; nil is none. The file gets what the copy has, unless the copy only lacks its end:
// then the copy gets that. Without a file, one is written. Errors are those of [Open], and those of the copy.
func OpenCopied(path string, c Copy) (*File, error) {
	if c == nil {
		return Open(path)
	}
	for range loadAttempts {
		loaded, err := c.Load()
		if err != nil {
			return nil, fmt.Errorf("open copy of journal: %w", err)
		}
		if loaded.Data == nil {
			return Open(path)
		}
		f, err := openCopied(path, c, loaded)
		if !errors.Is(err, ErrTaken) {
			return f, err
		}
	}
	return nil, ErrRunning
}

func openCopied(path string, c Copy, loaded Loaded) (*File, error) {
	contents, err := Parse(loaded.Data)
	if err == nil && contents.Whole < int64(len(loaded.Data)) {
		err = ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("open copy of journal: %w", err)
	}
	if _, err := os.Lstat(path); err != nil && contents.Over == nil && loaded.Running {
		return nil, ErrRunning
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make folder of journals: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	f := &File{file: file, path: path, copy: c}
	if err := f.reconcile(contents, loaded); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), f.Close())
	}
	return f, nil
}

// reconcile locks the file, and makes it and the copy equal.
func (f *File) reconcile(copied *Contents, loaded Loaded) error {
	data, err := f.lock()
	if err != nil {
		return err
	}
	if own, err := Parse(data); err == nil && bytes.HasPrefix(data, loaded.Data) {
		f.Contents = own
		if more := data[len(loaded.Data):own.Whole]; len(more) > 0 {
			f.copy.Append(more)
			return f.copy.Flush(true)
		}
		return nil
	}
	f.Contents = copied
	return f.replace(loaded)
}

// replace writes the content of the copy to the file.
func (f *File) replace(loaded Loaded) error {
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	if _, err := f.file.Write(loaded.Data); err != nil {
		return err
	}
	return os.Chtimes(f.path, time.Time{}, loaded.Written)
}
