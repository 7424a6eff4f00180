package deps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/diskusage"
	"sallyport/internal/filelock"
	"sallyport/sandbox"
)

// layerFolder is the folder of the layers in an installer's folder.
const layerFolder = "layers"

// StoredLayer is a layer in the folder of an installer.
type StoredLayer struct {
	Digest      string
	Interpreter sandbox.Interpreter
	// Requirements are those that the layer was made for.
	Requirements []string
	// Bytes is the disk space that it takes.
	Bytes int64
	// Used is when it was last found, installed or marked as used.
	Used time.Time
}

// PruneOptions say which layers are removed.
type PruneOptions struct {
	// Before is the end of the time for which use does not count: layers that were used then or later are kept.
	Before time.Time
	// Keep reports whether a layer is kept although it was not used since; nil keeps none.
	Keep func(digest string) bool
	// DryRun removes nothing.
	DryRun bool
	// Logger receives removals; nil discards.
	Logger *slog.Logger
}

// ListLayers returns the layers in the folder of an installer.
func ListLayers(ctx context.Context, dir string) (all []StoredLayer, err error) {
	digests, err := layersIn(dir)
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	for _, digest := range digests {
		one, err := storedLayer(ctx, dir, digest)
		if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		all = append(all, one)
	}
	return all, nil
}

// MarkUsed makes now the time of a layer's last use. A process that uses a layer for long calls it often enough for
// others that remove layers by their age to keep it.
func MarkUsed(layer Layer) error {
	now := time.Now()
	if err := os.Chtimes(metadataPath(filepath.Dir(layer.Dir)), now, now); err != nil {
		return fmt.Errorf("mark packages as used: %w", err)
	}
	return nil
}

// PruneLayers removes layers in the folder of an installer that were not used since opts.Before, and returns them, also
// with an error. It may run at the same time as installers, in this process or another: a layer that one of them
// returns after the time opts.Before is not removed. Locks stay, so that an equal request gives the same layer again.
func PruneLayers(ctx context.Context, dir string, opts PruneOptions) (removed []StoredLayer, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	digests, err := layersIn(dir)
	for _, digest := range digests {
		if ctx.Err() != nil {
			err = errors.Join(err, ctx.Err())
			break
		}
		if !lastUse(layerPath(dir, digest)).Before(opts.Before) || opts.Keep != nil && opts.Keep(digest) {
			continue
		}
		one, removeErr := pruneLayer(ctx, dir, digest, opts)
		if err = errors.Join(err, removeErr); one.Digest != "" {
			removed = append(removed, one)
		}
	}
	if err != nil {
		return removed, fmt.Errorf("prune packages: %w", err)
	}
	return removed, nil
}

// layersIn returns the names of the layers in the folder of an installer.
func layersIn(dir string) (digests []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, layerFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		digests = append(digests, entry.Name())
	}
	return digests, err
}

func layerPath(dir, digest string) string { return filepath.Join(dir, layerFolder, digest) }

func metadataPath(layer string) string { return filepath.Join(layer, "layer.json") }

// storedLayer describes a layer. What cannot be read of a damaged one is left out.
func storedLayer(ctx context.Context, dir, digest string) (one StoredLayer, err error) {
	path := layerPath(dir, digest)
	one = StoredLayer{Digest: digest, Used: lastUse(path)}
	var metadata layerMetadata
	if data, err := os.ReadFile(metadataPath(path)); err == nil && json.Unmarshal(data, &metadata) == nil {
		one.Interpreter, one.Requirements = metadata.Lock.Interpreter, metadata.Lock.Requirements
	}
	one.Bytes, err = diskusage.Tree(ctx, path)
	return one, err
}

// pruneLayer removes a layer, unless it was used meanwhile, and returns it, or the zero value.
func pruneLayer(ctx context.Context, dir, digest string, opts PruneOptions) (StoredLayer, error) {
	one, err := storedLayer(ctx, dir, digest)
	if err != nil {
		return StoredLayer{}, err
	}
	if opts.DryRun {
		return one, nil
	}
	moved, err := moveAway(dir, digest, opts.Before)
	if moved == "" || err != nil {
		return StoredLayer{}, err
	}
	opts.Logger.Info("removed packages", "layer", digest, "packages", one.Requirements, "bytes", one.Bytes, "unused", time.Since(one.Used))
	removeTree(moved)
	return one, nil
}

// moveAway moves a layer to a new name, which it returns, unless it was used at the time before or later. Whoever finds
// a layer holds the same lock, so that none disappears between the look at its time and its move.
func moveAway(dir, digest string, before time.Time) (moved string, err error) {
	unlock, err := lockLayers(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := layerPath(dir, digest)
	if !lastUse(path).Before(before) {
		return "", nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return "", err
	}
	into, err := os.MkdirTemp(filepath.Join(dir, "tmp"), "gone-")
	if err != nil {
		return "", err
	}
	return into, os.Rename(path, filepath.Join(into, digest))
}

// lockLayers locks the layers in the folder of an installer against removal.
func lockLayers(dir string) (unlock func(), err error) {
	return filelock.Dir(filepath.Join(dir, layerFolder), 10*time.Second)
}
