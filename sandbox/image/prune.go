package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/diskusage"
	"sallyport/internal/filelock"
)

// Stored is an image in the directory of all images.
type Stored struct {
	Root
	// Bytes is the disk space that it takes.
	Bytes int64
	// Used is when it was last pulled or marked as used.
	Used time.Time
}

// PruneOptions say which images are removed.
type PruneOptions struct {
	// Before is the end of the time for which use does not count: images that were used then or later are kept.
	Before time.Time
	// Keep reports whether an image is kept although it was not used since; nil keeps none.
	Keep func(Root) bool
	// DryRun removes nothing.
	DryRun bool
	// Logger receives removals; nil discards.
	Logger *slog.Logger
}

// List returns the images in a directory.
func List(ctx context.Context, dir string) (all []Stored, err error) {
	images, err := imagesIn(dir)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	for _, s := range images {
		one, err := s.metadata()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being pulled, or was removed
		}
		if err == nil {
			one.Bytes, err = diskusage.Tree(ctx, string(s))
		}
		if err != nil {
			return nil, fmt.Errorf("list images: %w", err)
		}
		all = append(all, one)
	}
	return all, nil
}

// MarkUsed makes now the time of an image's last use. A process that uses an image for long calls it often enough for
// others that remove images by their age to keep it.
func MarkUsed(root Root) error {
	if err := imageDir(filepath.Dir(root.Dir)).markUsed(); err != nil {
		return fmt.Errorf("mark image as used: %w", err)
	}
	return nil
}

// Prune removes images that were not used since opts.Before, and partial work of killed processes, and returns the
// removed images, also with an error. It may run at the same time as Pull, in this process or another: an image that
// Pull returns after the time opts.Before is not removed. It skips images that are being pulled. Images that
// processes use for longer must be marked as used, or be kept by opts.Keep.
func Prune(ctx context.Context, dir string, opts PruneOptions) (removed []Stored, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	images, err := imagesIn(dir)
	for _, s := range images {
		one, removeErr := s.prune(ctx, opts)
		if err = errors.Join(err, removeErr); one.Dir != "" {
			removed = append(removed, one)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return removed, fmt.Errorf("prune images: %w", err)
	}
	return removed, nil
}

// imagesIn returns the images in dir, and those of which only the lock exists.
func imagesIn(dir string) (images []imageDir, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if name, isLock := strings.CutSuffix(entry.Name(), ".lock"); isLock {
			images = append(images, imageDir(filepath.Join(dir, name)))
		}
	}
	return images, err
}

// metadata returns the image without its size. What cannot be read of a damaged image is left out. The error wraps
// fs.ErrNotExist if there is no image.
func (s imageDir) metadata() (Stored, error) {
	one := Stored{Root: Root{Dir: s.rootfs()}}
	info, err := os.Stat(filepath.Join(string(s), metadataFile))
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(string(s))
	}
	if err != nil {
		return Stored{}, err
	}
	one.Used = info.ModTime()
	if data, err := os.ReadFile(filepath.Join(string(s), metadataFile)); err == nil {
		_ = json.Unmarshal(data, &one.Root)
	}
	return one, nil
}

// prune removes the image if opts say so, and partial work, unless it is locked. It returns the removed image, or the zero value.
func (s imageDir) prune(ctx context.Context, opts PruneOptions) (Stored, error) {
	unlock, err := filelock.Dir(s.lockDir(), 0)
	if errors.Is(err, filelock.ErrBusy) {
		return Stored{}, nil
	}
	if err != nil {
		return Stored{}, err
	}
	defer unlock()
	if !opts.DryRun {
		if err := s.sweep(); err != nil {
			return Stored{}, err
		}
	}
	one, err := s.metadata()
	if errors.Is(err, fs.ErrNotExist) {
		return Stored{}, nil
	}
	if err != nil || !one.Used.Before(opts.Before) || opts.Keep != nil && opts.Keep(one.Root) {
		return Stored{}, err
	}
	if one.Bytes, err = diskusage.Tree(ctx, string(s)); err != nil {
		return Stored{}, err
	}
	if opts.DryRun {
		return one, nil
	}
	if err := s.remove(); err != nil {
		return Stored{}, err
	}
	opts.Logger.Info("removed image", "image", one.Reference, "digest", one.Digest, "bytes", one.Bytes, "unused", time.Since(one.Used))
	return one, nil
}

// remove moves the image away atomically, and then removes its files. It is called with the lock held.
func (s imageDir) remove() error {
	err := os.Rename(string(s), filepath.Join(s.lockDir(), "gone"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sweep()
}
