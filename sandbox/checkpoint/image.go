// Package checkpoint keeps states of sandboxes on disk: images that runsc restores. Its main type is [Store], which has
// those of third-party programs, each with the files that the program had looked at.
package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// partialPrefix is that of unfinished images, keepPartial the time they are kept.
	partialPrefix = ".half-"
	keepPartial   = time.Hour
	manifestName  = "manifest.json"
)

// manifest maps the files of an image to their SHA-256, to detect damage by a full or failing disk.
type manifest map[string]string

var errDamaged = errors.New("the image is damaged")

// Partial returns the path of an unfinished image in a directory, with an ID of the caller.
func Partial(dir, id string) string { return filepath.Join(dir, partialPrefix+id) }

// Commit moves a finished image to its final path. If another process was faster, its image stays.
func Commit(half, path string) error {
	sums, err := checksums(half)
	if err != nil {
		return err
	}
	data, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(half, manifestName), data, 0o600); err != nil {
		return err
	}
	if Verify(path) == nil {
		return nil
	}
	if err := os.RemoveAll(path); err != nil { // it is damaged
		return err
	}
	if err := os.Rename(half, path); err != nil && Verify(path) != nil {
		return fmt.Errorf("keep image: %w", err)
	}
	return nil
}

func checksums(dir string) (manifest, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	m := manifest{}
	for _, entry := range entries {
		if entry.Name() == manifestName {
			continue
		}
		if m[entry.Name()], err = hashFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Verify checks the files of an image against its manifest, and updates its time of last use.
func Verify(path string) error {
	data, err := os.ReadFile(filepath.Join(path, manifestName))
	if err != nil {
		return err
	}
	var want manifest
	if err := json.Unmarshal(data, &want); err != nil || len(want) == 0 {
		return errDamaged
	}
	have, err := checksums(path)
	if err != nil {
		return err
	}
	for name, sum := range want {
		if have[name] != sum {
			return errDamaged
		}
	}
	now := time.Now()
	return os.Chtimes(filepath.Join(path, manifestName), now, now)
}

// Sweep removes from a directory the images that were unused for the time keep, and old unfinished ones.
func Sweep(dir string, keep time.Duration) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		age, limit := filepath.Join(dir, entry.Name(), manifestName), keep
		if strings.HasPrefix(entry.Name(), partialPrefix) {
			age, limit = filepath.Join(dir, entry.Name()), keepPartial
		}
		info, statErr := os.Lstat(age)
		if statErr == nil && time.Since(info.ModTime()) < limit || statErr != nil && !errors.Is(statErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// CPUFeatures returns the features of the processor: a restored program may use instructions that it selected by them.
func CPUFeatures() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "flags") || strings.HasPrefix(line, "Features") {
			return line
		}
	}
	return ""
}
