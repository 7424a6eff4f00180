package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// pullNew pulls an image with one file and any content that differs by name.
func pullNew(t *testing.T, s *store, opts Options, name string) Root {
	t.Helper()
	root, err := Pull(t.Context(), s.push(t, imageOf(t, "amd64", layerOf(t, entry{name: name, body: "x"}))), opts)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// age makes the time of last use of an image earlier.
func age(t *testing.T, root Root, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Join(filepath.Dir(root.Dir), metadataFile), then, then); err != nil {
		t.Fatal(err)
	}
}

func prune(t *testing.T, dir string, opts PruneOptions) []Stored {
	t.Helper()
	removed, err := Prune(t.Context(), dir, opts)
	if err != nil {
		t.Error(err)
	}
	return removed
}

func TestPrune(t *testing.T) {
	s, opts := newStore(t), options(t)
	var roots []Root
	for i := range 4 {
		roots = append(roots, pullNew(t, s, opts, fmt.Sprint(i)))
	}
	old := PruneOptions{Before: time.Now().Add(-time.Hour), Logger: opts.Logger}
	if removed := prune(t, opts.Dir, old); len(removed) > 0 {
		t.Errorf("removed new images: %+v", removed)
	}
	for _, root := range roots[:3] {
		age(t, root, 2*time.Hour)
	}
	if err := MarkUsed(roots[2]); err != nil {
		t.Error(err)
	}
	old.Keep, old.DryRun = func(root Root) bool { return root.Dir == roots[0].Dir }, true
	if removed := prune(t, opts.Dir, old); len(removed) != 1 || removed[0].Dir != roots[1].Dir {
		t.Errorf("would remove %+v", removed)
	}
	checkNoPartial(t, opts.Dir, 4)
	old.DryRun = false
	removed := prune(t, opts.Dir, old)
	if len(removed) != 1 || removed[0].Dir != roots[1].Dir || removed[0].Bytes < 4096 || time.Since(removed[0].Used) < time.Hour {
		t.Errorf("removed %+v", removed)
	}
	checkNoPartial(t, opts.Dir, 3)
	if _, err := os.Stat(roots[1].Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an image that nobody uses is kept")
	}
	if err := MarkUsed(roots[1]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("marked an image that is gone: %v", err)
	}
	if removed, err := Prune(t.Context(), filepath.Join(opts.Dir, "none"), PruneOptions{}); len(removed) > 0 || err != nil {
		t.Error(removed, err)
	}
}

func TestList(t *testing.T) {
	s, opts := newStore(t), options(t)
	if all, err := List(t.Context(), opts.Dir); len(all) > 0 || err != nil {
		t.Error(all, err)
	}
	root := pullNew(t, s, opts, "a")
	age(t, root, 2*time.Hour)
	all, err := List(t.Context(), opts.Dir)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	one := all[0]
	if want := s.host + "/team/image@" + root.Digest; one.Reference != want || one.Reference != root.Reference {
		t.Errorf("its reference is %s, want %s", one.Reference, want)
	}
	if one.Dir != root.Dir || one.Digest != root.Digest || one.Bytes < 4096 || time.Since(one.Used).Round(time.Hour) != 2*time.Hour {
		t.Errorf("%+v", one)
	}
}

// TestDamaged: an image without its metadata is listed, and removed like others.
func TestDamaged(t *testing.T) {
	s, opts := newStore(t), options(t)
	root := pullNew(t, s, opts, "a")
	if err := os.Remove(filepath.Join(filepath.Dir(root.Dir), metadataFile)); err != nil {
		t.Fatal(err)
	}
	if all, err := List(t.Context(), opts.Dir); err != nil || len(all) != 1 || all[0].Dir != root.Dir {
		t.Error(all, err)
	}
	if removed := prune(t, opts.Dir, PruneOptions{Before: time.Now().Add(time.Minute)}); len(removed) != 1 {
		t.Errorf("removed %+v", removed)
	}
	checkNoPartial(t, opts.Dir, 0)
}

// TestPruneBesidePull: an image that was pulled after the removal began is there, whatever removes it at the same time.
func TestPruneBesidePull(t *testing.T) {
	s, opts := newStore(t), options(t)
	reference := s.push(t, imageOf(t, "amd64", layerOf(t, entry{name: "a", body: "a"})))
	root, err := Pull(t.Context(), reference, opts)
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for range 40 {
		age(t, root, time.Hour)
		before := time.Now()
		var work sync.WaitGroup
		work.Go(func() { gone += len(prune(t, opts.Dir, PruneOptions{Before: before})) })
		work.Go(func() {
			if _, err := Pull(t.Context(), reference, opts); err != nil {
				t.Error(err)
			}
		})
		work.Wait()
		if _, err := os.Stat(filepath.Join(root.Dir, "a")); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("removed and pulled again: %d of 40", gone)
	checkNoPartial(t, opts.Dir, 1)
}
