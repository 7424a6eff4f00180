package environments

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/checkpoint"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/image"
)

const (
	// DefaultUnused is how long unused images and packages are kept.
	DefaultUnused = 30 * 24 * time.Hour
	// MinUnused is the shortest time of disuse after which they are removed while a gateway runs. It is twice the time
	// between two marks of use.
	MinUnused = 48 * time.Hour
	// markInterval is the time between two marks of use.
	markInterval = 24 * time.Hour
	// pruneInterval is the shortest time between two removals in the background.
	pruneInterval = 24 * time.Hour
)

// ErrInUse means that a gateway runs, which may use what would be removed.
var ErrInUse = errors.New("a gateway runs")

// The kinds of what is stored.
const (
	KindImage      = "image"
	KindPython     = "python"
	KindTypeScript = "typescript"
	KindCheckpoint = "checkpoint"
)

// CheckpointDir returns the folder of the checkpoints of isolated upstreams in a cache directory, "" without one.
func CheckpointDir(cacheDir string) string {
	if cacheDir == "" {
		return ""
	}
	return filepath.Join(cacheDir, "checkpoints")
}

// Stored is an image, a layer of packages or a checkpoint in the cache directory.
type Stored struct {
	// Kind is one of the kinds above, "" for packages whose metadata is damaged.
	Kind string `json:"kind"`
	// Name is an image's reference, the requirements of packages, separated by commas, or the upstream of a checkpoint; "" if it is not known.
	Name string `json:"name"`
	// ID is unique among those of its kind.
	ID string `json:"id"`
	// Bytes is the disk space that it takes.
	Bytes int64 `json:"bytes"`
	// Used is when it was last used, as far as is known: processes that use it note the time once a day.
	Used time.Time `json:"used"`
	// InUse reports whether a process uses it now.
	InUse bool `json:"in_use"`
}

// PruneOptions say what is removed.
type PruneOptions struct {
	// Unused is how long something must have been unused.
	Unused time.Duration
	// GatewayRuns reports that a gateway of this user is known to run.
	GatewayRuns bool
	// DryRun removes nothing.
	DryRun bool
	// Logger receives removals; nil discards.
	Logger *slog.Logger
}

// List returns the images, packages and checkpoints in a cache directory.
func List(ctx context.Context, cacheDir string) (all []Stored, err error) {
	used, err := readLeases(cacheDir)
	if err != nil {
		return nil, err
	}
	images, err := image.List(ctx, filepath.Join(cacheDir, imageFolder))
	if err != nil {
		return nil, err
	}
	layers, err := deps.ListLayers(ctx, filepath.Join(cacheDir, packageFolder))
	if err != nil {
		return nil, err
	}
	for _, one := range images {
		all = append(all, storedImage(one, used))
	}
	for _, one := range layers {
		all = append(all, storedLayer(one, used))
	}
	checkpoints, err := checkpoint.Existing(CheckpointDir(cacheDir)).List(ctx)
	return append(all, storedCheckpoints(checkpoints)...), err
}

func storedCheckpoints(all []checkpoint.Stored) (stored []Stored) {
	for _, one := range all {
		name, _, _ := strings.Cut(one.Owner, " ")
		stored = append(stored, Stored{Kind: KindCheckpoint, Name: name, ID: one.Digest, Bytes: one.Bytes, Used: one.Used})
	}
	return stored
}

// Prune removes the images, packages and checkpoints in a cache directory that were unused for long, and returns them, also with an
// error. What a process uses is kept: that process has a lease for it, and has noted its use in the last day. The error
// wraps ErrInUse if opts.Unused is less than MinUnused although a gateway runs.
func Prune(ctx context.Context, cacheDir string, opts PruneOptions) (removed []Stored, err error) {
	before := time.Now().Add(-opts.Unused) // before the leases are read: what a process uses whose lease comes later is newer
	used, err := readLeases(cacheDir)
	if err != nil {
		return nil, err
	}
	if opts.Unused < MinUnused && (used.processes > 0 || opts.GatewayRuns) {
		return nil, fmt.Errorf("remove what was unused for less than %v: %w", MinUnused, ErrInUse)
	}
	removed, err = pruneImages(ctx, cacheDir, before, used, opts)
	layers, layersErr := deps.PruneLayers(ctx, filepath.Join(cacheDir, packageFolder), deps.PruneOptions{Before: before, DryRun: opts.DryRun, Logger: opts.Logger,
		Keep: func(digest string) bool { return used.paths[layerKey(digest)] }})
	for _, one := range layers {
		removed = append(removed, storedLayer(one, used))
	}
	checkpoints, checkpointErr := checkpoint.Existing(CheckpointDir(cacheDir)).Prune(ctx, before, opts.DryRun)
	return append(removed, storedCheckpoints(checkpoints)...), errors.Join(err, layersErr, checkpointErr)
}

func pruneImages(ctx context.Context, cacheDir string, before time.Time, used leases, opts PruneOptions) (removed []Stored, err error) {
	images, err := image.Prune(ctx, filepath.Join(cacheDir, imageFolder), image.PruneOptions{Before: before, DryRun: opts.DryRun, Logger: opts.Logger,
		Keep: func(root image.Root) bool { return used.paths[imageKey(root)] }})
	for _, one := range images {
		removed = append(removed, storedImage(one, used))
	}
	return removed, err
}

func storedImage(one image.Stored, used leases) Stored {
	return Stored{Kind: KindImage, Name: one.Reference, ID: path.Base(imageKey(one.Root)), Bytes: one.Bytes, Used: one.Used, InUse: used.paths[imageKey(one.Root)]}
}

func storedLayer(one deps.StoredLayer, used leases) Stored {
	s := Stored{Name: strings.Join(one.Requirements, ", "), ID: one.Digest, Bytes: one.Bytes, Used: one.Used, InUse: used.paths[layerKey(one.Digest)]}
	switch one.Interpreter {
	case sandbox.Python:
		s.Kind = KindPython
	case sandbox.Node:
		s.Kind = KindTypeScript
	}
	return s
}

// imageKey returns the path of an image below the cache directory, as it is in leases.
func imageKey(root image.Root) string {
	return path.Join(imageFolder, filepath.Base(filepath.Dir(root.Dir)))
}

// layerKey returns the path of a layer below the cache directory, as it is in leases.
func layerKey(digest string) string { return path.Join(packageFolder, "layers", digest) }

// layerInUse reports whether a process uses a layer. If that cannot be found out, it is true.
func (e *Environments) layerInUse(digest string) bool {
	used, err := readLeases(e.opts.CacheDir)
	if err != nil {
		e.opts.Logger.Warn("packages are not removed", "error", err)
	}
	return err != nil || used.paths[layerKey(digest)]
}

// pruneUnused removes images that were not used for [DefaultUnused], at most once a day for all processes with the
// same cache directory. Errors are logged.
func (e *Environments) pruneUnused(ctx context.Context) {
	due, err := pruneDue(e)
	if err == nil && due {
		err = e.pruneOldImages(ctx)
	}
	if err != nil && ctx.Err() == nil {
		e.opts.Logger.Warn("unused images could not be removed", "error", err)
	}
}

func (e *Environments) pruneOldImages(ctx context.Context) error {
	before := time.Now().Add(-DefaultUnused)
	used, err := readLeases(e.opts.CacheDir)
	if err != nil {
		return err
	}
	_, err = pruneImages(ctx, e.opts.CacheDir, before, used, PruneOptions{Logger: e.opts.Logger})
	return err
}

// pruneDue reports whether the last removal is a day ago, and if so notes that this one begins.
func pruneDue(e *Environments) (bool, error) {
	stamp := filepath.Join(e.opts.CacheDir, leaseFolder, "pruned")
	info, err := os.Stat(stamp)
	if err == nil && time.Since(info.ModTime()) < pruneInterval {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, os.WriteFile(stamp, nil, 0o600)
}
