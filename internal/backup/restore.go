package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Errors of Restore, for errors.Is.
var (
	// ErrNotBackup: the input is not a backup, or it is truncated or damaged.
	ErrNotBackup = errors.New("not a backup of sallyport, or damaged")
	// ErrUnsafe: it contains links, devices or paths that lead out of the folder.
	ErrUnsafe = errors.New("the backup is not safe to restore")
	// ErrTooLarge: it exceeds the Limits.
	ErrTooLarge = errors.New("the backup is too large")
	// ErrNotEmpty: the target directory is not empty.
	ErrNotEmpty = errors.New("the directory is not empty")
)

// Limits bound what is restored; nil means all defaults.
type Limits struct {
	// Bytes bounds the size of all files together; 0 is 64 GiB.
	Bytes int64
	// Entries bounds the number of files and folders; 0 is 1,000,000.
	Entries int
}

func (l *Limits) withDefaults() Limits {
	limits := Limits{}
	if l != nil {
		limits = *l
	}
	if limits.Bytes == 0 {
		limits.Bytes = 64 << 30
	}
	if limits.Entries == 0 {
		limits.Entries = 1_000_000
	}
	return limits
}

const (
	maxDepth = 64   // of folders in folders
	maxPath  = 4096 // in bytes
)

// Restore restores a backup to a directory, all of it or nothing. The directory must be empty or absent. Only the
// owner can read its files and folders, and nothing outside of it is written.
func Restore(ctx context.Context, r io.Reader, dir string, limits *Limits) (Summary, error) {
	if err := checkVacant(dir); err != nil {
		return Summary{}, err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return Summary{}, fmt.Errorf("restore: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".restoring-*")
	if err != nil {
		return Summary{}, fmt.Errorf("restore: %w", err)
	}
	summary, err := unpack(ctx, r, temporary, limits.withDefaults())
	if err == nil {
		err = replace(temporary, dir)
	}
	if err != nil {
		return Summary{}, fmt.Errorf("restore: %w", errors.Join(err, os.RemoveAll(temporary)))
	}
	return summary, nil
}

// checkVacant returns an error if dir is not empty or absent.
func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("restore: %w in %s", ErrNotEmpty, dir)
	}
	return nil
}

// replace moves temporary to dir, which is empty or absent.
func replace(temporary, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(temporary, dir)
}

// reader is a backup that is being unpacked.
type reader struct {
	tar     *tar.Reader
	root    *os.Root
	limits  Limits
	entries int
	summary Summary
}

func unpack(ctx context.Context, from io.Reader, dir string, limits Limits) (Summary, error) {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Summary{}, err
	}
	defer func() { _ = root.Close() }()
	r := &reader{tar: tar.NewReader(zipped), root: root, limits: limits}
	if err := r.checkMarker(); err != nil {
		return Summary{}, err
	}
	for ctx.Err() == nil {
		header, err := r.tar.Next()
		if errors.Is(err, io.EOF) {
			return r.summary, r.drain(zipped)
		}
		if err != nil {
			return Summary{}, fmt.Errorf("%w: %w", ErrNotBackup, err)
		}
		if err := r.entry(header); err != nil {
			return Summary{}, err
		}
	}
	return Summary{}, ctx.Err()
}

// drain reads the rest, which is padding, so that the checksum is verified.
func (r *reader) drain(zipped io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(zipped, 1<<20))
	if err == nil && n == 1<<20 {
		err = errors.New("too much follows its end")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	return nil
}

// checkMarker reads the first entry and checks that it identifies a backup.
func (r *reader) checkMarker() error {
	header, err := r.tar.Next()
	if err != nil || header.Name != markerName || header.Size > 100 {
		return ErrNotBackup
	}
	text, err := io.ReadAll(r.tar)
	if err != nil || string(text) != markerText {
		return fmt.Errorf("%w: this program reads %q, not %.40q", ErrNotBackup, strings.TrimSpace(markerText), text)
	}
	return nil
}

func (r *reader) entry(header *tar.Header) error {
	name, err := safePath(header)
	if err != nil {
		return err
	}
	if r.entries++; r.entries > r.limits.Entries {
		return fmt.Errorf("%w: more than %d files and folders", ErrTooLarge, r.limits.Entries)
	}
	if header.Typeflag == tar.TypeDir {
		return r.root.MkdirAll(name, 0o700)
	}
	if header.Size < 0 || header.Size > r.limits.Bytes-r.summary.Bytes {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.limits.Bytes)
	}
	return r.file(name, header)
}

// safePath returns the path of an entry with the separators of the system. The error is an ErrUnsafe.
func safePath(header *tar.Header) (string, error) {
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return "", fmt.Errorf("%w: %.80q is neither a file nor a folder", ErrUnsafe, header.Name)
	}
	name := header.Name
	if header.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) || len(name) > maxPath || strings.Count(name, "/") >= maxDepth ||
		name != path.Clean(name) || name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%w: the path %.80q", ErrUnsafe, header.Name)
	}
	return filepath.FromSlash(name), nil
}

func (r *reader) file(name string, header *tar.Header) error {
	if err := r.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	file, err := r.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(header.Mode)&0o700|0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %.80q is in it twice", ErrUnsafe, header.Name)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(file, r.tar)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
			return fmt.Errorf("%w: %w", ErrNotBackup, err)
		}
		return err
	}
	r.summary.Files++
	r.summary.Bytes += n
	if t := header.ModTime; t.Year() >= 1980 && t.Year() < 2200 {
		return r.root.Chtimes(name, time.Time{}, t)
	}
	return nil
}
