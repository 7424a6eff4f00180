//go:build unix

package filelock_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/filelock"
)

func TestDir(t *testing.T) {
	dir := t.TempDir()
	var inside atomic.Int32
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 50 {
				unlock, err := filelock.Dir(dir, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				inside.Add(-1)
				unlock()
			}
		})
	}
	work.Wait()
	if _, err := filelock.Dir(filepath.Join(dir, "missing"), time.Minute); err == nil {
		t.Error("a folder that is not there was locked")
	}
}
