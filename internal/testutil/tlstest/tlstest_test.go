//go:build unix

package tlstest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/filelock"
)

// TestRemoveAbandoned: what a killed test left goes; what a test uses, or has only just made, stays.
func TestRemoveAbandoned(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	now := time.Now()
	for name, age := range map[string]time.Duration{prefix + "left": 2 * time.Hour, prefix + "used": 2 * time.Hour, prefix + "new": 0, "other": 2 * time.Hour} {
		dir := filepath.Join(temp, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "authorities.pem"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := filelock.Dir(filepath.Join(temp, prefix+"used"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	removeAbandoned(now.Add(-time.Hour))
	for name, stays := range map[string]bool{prefix + "left": false, prefix + "used": true, prefix + "new": true, "other": true} {
		if _, err := os.Stat(filepath.Join(temp, name)); (err == nil) != stays {
			t.Errorf("%s: %v; want that it stays is %v", name, err, stays)
		}
	}
}
