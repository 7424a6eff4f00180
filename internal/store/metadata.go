package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The engine's metadata of a stream is in two files in its folder.
const (
	metaFile    = "meta.inf"
	metaSumFile = "meta.sum"
)

// hasMetadata reports whether the engine will accept a stream's metadata.
func hasMetadata(folder string) bool {
	about, err := os.ReadFile(filepath.Join(folder, metaFile))
	if err != nil {
		return false
	}
	sum, err := os.ReadFile(filepath.Join(folder, metaSumFile))
	return err == nil && string(sum) == sumOf(filepath.Base(folder), about)
}

// isUnfinished reports whether the engine was killed while it created a stream, after the first of the two files, and this store has no
// metadata of the stream either.
func isUnfinished(dir, folder string) bool {
	if _, err := os.Lstat(filepath.Join(folder, metaSumFile)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if saved, err := os.ReadFile(filepath.Join(dir, madeFolder, filepath.Base(folder))); len(saved) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	about, err := os.ReadFile(filepath.Join(folder, metaFile))
	return err == nil && json.Valid(about) // the engine replaces the file as a whole
}

// completeMetadata writes the second file of an unfinished stream. The engine ignores such a stream when it starts, and never completes it:
// records that are written to it are lost at the next start.
func completeMetadata(dir, folder string) error {
	if !isUnfinished(dir, folder) {
		return nil
	}
	about, err := os.ReadFile(filepath.Join(folder, metaFile))
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, metaSumFile), []byte(sumOf(filepath.Base(folder), about)))
}

// restoreMetadata reports whether a mark has a stream's metadata, and writes it back if restore is set.
func restoreMetadata(mark, folder string, restore bool) (bool, error) {
	about, err := os.ReadFile(mark)
	if err != nil || len(about) == 0 || !restore {
		return len(about) > 0, err
	}
	sum := sumOf(filepath.Base(folder), about)
	return true, errors.Join(writeFile(filepath.Join(folder, metaFile), about), writeFile(filepath.Join(folder, metaSumFile), []byte(sum)))
}

// saveMetadata saves a stream's metadata in its mark.
func saveMetadata(dir, name string) error {
	folders, err := filepath.Glob(filepath.Join(dir, engineFolder, "jetstream", "*", "streams", name))
	if err != nil || len(folders) != 1 || !hasMetadata(folders[0]) {
		return err
	}
	about, err := os.ReadFile(filepath.Join(folders[0], metaFile))
	if err != nil {
		return err
	}
	mark := filepath.Join(dir, madeFolder, name)
	if before, err := os.ReadFile(mark); err == nil && bytes.Equal(before, about) {
		return nil
	}
	return writeFile(mark, about)
}
