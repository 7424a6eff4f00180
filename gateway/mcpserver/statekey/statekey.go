// Package statekey keeps the key of a gateway for what clients send back: [Of] returns it.
package statekey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// size is how long the key is, in bytes.
const size = 32

// Of returns the key that signs the requestState of programs that wait for their client. It is stored in the data
// directory, so that a requestState stays valid after a restart; for "" the key is new in each process.
func Of(dataDir string) ([]byte, error) {
	key := make([]byte, size)
	_, _ = rand.Read(key) // never fails
	if dataDir == "" {
		return key, nil
	}
	kept := filepath.Join(dataDir, "state.key")
	fresh := fmt.Sprintf("%s.%d", kept, os.Getpid())
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		defer func() { _ = os.Remove(fresh) }()
		if err := os.MkdirAll(dataDir, 0o700); err != nil {
			return nil, fmt.Errorf("store key: %w", err)
		}
		if err := os.WriteFile(fresh, key, 0o600); err != nil {
			return nil, fmt.Errorf("store key: %w", err)
		}
		if err := os.Link(fresh, kept); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been first
			return nil, fmt.Errorf("store key: %w", err)
		}
	}
	key, err := os.ReadFile(kept)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(key) != size {
		return nil, fmt.Errorf("read key: %s is damaged; remove it (pending requests become invalid)", kept)
	}
	return key, nil
}
