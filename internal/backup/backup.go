// Package backup writes a directory to one file, a gzip-compressed tar of regular files and folders, and restores it. Its
// functions are [Write] and [Restore]. The input of Restore is not trusted.
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
	"slices"
	"time"
)

// Source is a folder that goes into a backup.
type Source struct {
	// Dir is the folder. It is skipped if it does not exist.
	Dir string
	// As is its path in the backup, "" for the top.
	As string
	// Without are names at its top level that are excluded.
	Without []string
}

// Summary is what was written or read.
type Summary struct {
	Files int
	Bytes int64
	// Skipped are paths that are neither regular files nor folders, at most 20 of them.
	Skipped []string
}

// maxSkipped bounds Summary.Skipped.
const maxSkipped = 20

// markerName is the name of the first entry, which identifies a backup; version is its content.
const (
	markerName = ".sallyport-backup"
	markerText = "sallyport backup 1\n"
)

// Write writes a backup. It is consistent for each file that others replace by renaming. A file that becomes shorter
// while it is read is an error.
func Write(ctx context.Context, w io.Writer, sources []Source) (Summary, error) {
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return Summary{}, err
	}
	out := &writer{tar: tar.NewWriter(zipped)}
	err = out.writeMarker()
	for _, s := range sources {
		if err == nil {
			err = out.folder(ctx, s)
		}
	}
	if err := errors.Join(err, out.tar.Close(), zipped.Close()); err != nil {
		return Summary{}, fmt.Errorf("write backup: %w", err)
	}
	return out.summary, nil
}

type writer struct {
	tar     *tar.Writer
	summary Summary
}

func (w *writer) writeMarker() error {
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: markerName, Size: int64(len(markerText)), Mode: 0o600, ModTime: time.Now()}); err != nil {
		return err
	}
	_, err := io.WriteString(w.tar, markerText)
	return err
}

func (w *writer) folder(ctx context.Context, s Source) error {
	root, err := os.OpenRoot(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != ".":
			return nil // it was removed in the meantime
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case s.As == "" && name == ".":
			return nil
		case leftOut(s, name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return w.entry(root, name, path.Join(s.As, name), d)
	})
}

func leftOut(s Source, name string) bool {
	return slices.Contains(s.Without, name) || s.As == "" && name == markerName
}

func (w *writer) entry(root *os.Root, name, as string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: as + "/", Mode: 0o700})
	case d.Type().IsRegular():
		return w.file(root, name, as)
	}
	if len(w.summary.Skipped) < maxSkipped {
		w.summary.Skipped = append(w.summary.Skipped, as)
	}
	return nil
}

func (w *writer) file(root *os.Root, name, as string) error {
	file, err := openPlain(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no longer a regular file", as)
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: as, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.CopyN(w.tar, file, info.Size()); err != nil {
		return fmt.Errorf("%q became shorter while it was read: try again: %w", as, err)
	}
	w.summary.Files++
	w.summary.Bytes += info.Size()
	return nil
}
