//go:build linux

package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"runtime"

	"sallyport/sandbox/checkpoint"
)

// snapshotKey returns a digest of everything that a snapshot of a kind depends on.
func (h *Host) snapshotKey(k kind) (string, error) {
	root, err := h.rootOf(k.environment)
	if err != nil {
		return "", err
	}
	environment, _ := h.environments.get(k.environment)
	sum := sha256.New()
	fmt.Fprintln(sum, snapshotFormat, runtime.GOARCH, h.runsc.Rootless, checkpoint.CPUFeatures(), environment.Digest)
	for _, path := range []string{h.runsc.Path, root.programs[k.interpreter].path} {
		if err := addFile(sum, path); err != nil {
			return "", fmt.Errorf("digest what a snapshot is made of: %w", err)
		}
	}
	if err := addTree(sum, h.opts.Guest); err != nil {
		return "", fmt.Errorf("digest what a snapshot is made of: %w", err)
	}
	spec, err := h.specOf(k, root, hostPaths{})
	if err != nil {
		return "", err
	}
	// The next host has its folders at other paths.
	_, _ = sum.Write(bytes.ReplaceAll(spec, []byte(h.dir), nil))
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// addFile adds a file's path, size and modification time, without reading it.
func addFile(sum hash.Hash, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
	return nil
}

func addTree(sum hash.Hash, tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, path)
		fmt.Fprintln(sum, path, len(data))
		_, _ = sum.Write(data)
		return err
	})
}
