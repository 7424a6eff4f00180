package mcpserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// stateKeySize is how long the key is, in bytes.
const stateKeySize = 32

// StateKey returns the key that signs what clients are handed for programs that wait for their answer. It is kept in the
// data directory, so that one from before a restart is known; for "" it ends with the process.
func StateKey(dataDir string) ([]byte, error) {
	key := make([]byte, stateKeySize)
	_, _ = rand.Read(key) // which does not fail
	if dataDir == "" {
		return key, nil
	}
	kept := filepath.Join(dataDir, "state.key")
	fresh := fmt.Sprintf("%s.%d", kept, os.Getpid())
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		defer func() { _ = os.Remove(fresh) }()
		if err := os.MkdirAll(dataDir, 0o700); err != nil {
			return nil, fmt.Errorf("keep key: %w", err)
		}
		if err := os.WriteFile(fresh, key, 0o600); err != nil {
			return nil, fmt.Errorf("keep key: %w", err)
		}
		if err := os.Link(fresh, kept); err != nil && !errors.Is(err, fs.ErrExist) { // of two processes one is first
			return nil, fmt.Errorf("keep key: %w", err)
		}
	}
	key, err := os.ReadFile(kept)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(key) != stateKeySize {
		return nil, fmt.Errorf("read key: %s is damaged; remove it, and requests that wait are invalid", kept)
	}
	return key, nil
}
