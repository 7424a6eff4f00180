package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/filelock"
)

// Prune removes images in dir that Pull has not returned for the duration unused, except
// those in keep, and partial work of killed processes. keep must name the images
// that sandboxes use.
func Prune(ctx context.Context, dir string, unused time.Duration, keep []Root, log *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune images: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	for _, entry := range entries {
		name, isLock := strings.CutSuffix(entry.Name(), ".lock")
		s := imageDir(filepath.Join(dir, name))
		if !isLock || slices.ContainsFunc(keep, func(root Root) bool { return root.Dir == s.rootfs() }) {
			continue
		}
		removed, removeErr := s.prune(unused)
		err = errors.Join(err, removeErr, ctx.Err())
		if removed {
			log.Info("removed image", "dir", string(s))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("prune images: %w", err)
	}
	return nil
}

// Remove removes an image. No sandbox may use it.
func Remove(root Root) error {
	s := imageDir(filepath.Dir(root.Dir))
	if root.Dir == "" || s.rootfs() != root.Dir {
		return fmt.Errorf("remove image: %.200q is not an image", root.Dir)
	}
	unlock, err := filelock.Dir(s.lockDir(), 10*time.Second)
	if err != nil {
		return fmt.Errorf("remove image: %w", err)
	}
	defer unlock()
	if err := s.remove(); err != nil {
		return fmt.Errorf("remove image: %w", err)
	}
	return nil
}

// prune removes the image if it is unused for long, and partial work, unless it is locked.
func (s imageDir) prune(unused time.Duration) (removed bool, err error) {
	unlock, err := filelock.Dir(s.lockDir(), 0)
	if errors.Is(err, filelock.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := s.sweep(); err != nil {
		return false, err
	}
	used, err := os.Stat(filepath.Join(string(s), metadataFile))
	if err == nil && time.Since(used.ModTime()) < unused {
		return false, nil
	}
	return err == nil, s.remove()
}

// remove moves the image away atomically, and then removes its files. It is called with the lock held.
func (s imageDir) remove() error {
	err := os.Rename(string(s), filepath.Join(s.lockDir(), "gone"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sweep()
}
