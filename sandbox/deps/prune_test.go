package deps_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// age makes the time of last use of a layer earlier.
func age(t *testing.T, layer deps.Layer, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Join(filepath.Dir(layer.Dir), "layer.json"), then, then); err != nil {
		t.Fatal(err)
	}
}

func TestPruneLayers(t *testing.T) {
	installer, host, dir := newInstaller(t, deps.Options{})
	index := newIndex(t)
	index.offer("first", "1.0", nil, member{"first.py", ""})
	index.offer("second", "1.0", nil, member{"second.py", ""})
	request := deps.Request{Interpreter: sandbox.Python, Packages: []string{"first"}, Index: index.url()}
	other := deps.Request{Interpreter: sandbox.Python, Packages: []string{"second"}, Index: index.url()}
	install := func(request deps.Request) deps.Layer {
		t.Helper()
		layer, err := installer.Install(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return layer
	}
	first, second := install(request), install(other)
	prune := func(opts deps.PruneOptions) (digests []string) {
		t.Helper()
		removed, err := deps.PruneLayers(t.Context(), dir, opts)
		if err != nil {
			t.Error(err)
		}
		for _, one := range removed {
			digests = append(digests, one.Digest)
		}
		return digests
	}
	age(t, first, 2*time.Hour)
	all, err := deps.ListLayers(t.Context(), dir)
	at := slices.IndexFunc(all, func(one deps.StoredLayer) bool { return one.Digest == first.Digest })
	if err != nil || len(all) != 2 || at < 0 {
		t.Fatal(all, err)
	}
	if one := all[at]; one.Interpreter != sandbox.Python || !slices.Equal(one.Requirements, []string{"first"}) || one.Bytes < 4096 || time.Since(one.Used) < time.Hour {
		t.Errorf("%+v", one)
	}
	old := deps.PruneOptions{Before: time.Now().Add(-time.Hour), Logger: testutil.Logger(t), DryRun: true}
	if got := prune(old); !slices.Equal(got, []string{first.Digest}) {
		t.Errorf("would remove %v", got)
	}
	old.DryRun, old.Keep = false, func(digest string) bool { return digest == first.Digest }
	if got := prune(old); len(got) > 0 {
		t.Errorf("removed what is kept: %v", got)
	}
	if err := deps.MarkUsed(first); err != nil {
		t.Error(err)
	}
	old.Keep = nil
	if got := prune(old); len(got) > 0 {
		t.Errorf("removed what was marked as used: %v", got)
	}
	age(t, first, 2*time.Hour)
	if got := prune(old); !slices.Equal(got, []string{first.Digest}) {
		t.Errorf("removed %v", got)
	}
	if err := deps.MarkUsed(first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("marked packages that are gone: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if again := install(request); again.Digest != first.Digest {
		t.Errorf("the same request gives %s, it was %s", again.Digest, first.Digest)
	}
	pruneBesideFind(t, installer, dir, other, second)
	keepInUse(t, host, dir, second)
}

// pruneBesideFind: a layer that was found after the removal began is there, whatever removes it at the same time.
func pruneBesideFind(t *testing.T, installer *deps.Installer, dir string, request deps.Request, layer deps.Layer) {
	t.Helper()
	for range 5 {
		age(t, layer, time.Hour)
		before := time.Now()
		var work sync.WaitGroup
		work.Go(func() {
			if _, err := deps.PruneLayers(t.Context(), dir, deps.PruneOptions{Before: before}); err != nil {
				t.Error(err)
			}
		})
		if _, ok := installer.Find(request); ok {
			work.Wait()
			if _, err := os.Stat(layer.Dir); err != nil {
				t.Fatal(err)
			}
		}
		work.Wait()
		if _, err := installer.Install(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
}

// keepInUse: a new installer removes old layers, but none that a process uses.
func keepInUse(t *testing.T, host *sandbox.Host, dir string, layer deps.Layer) {
	t.Helper()
	for _, inUse := range []bool{true, false} {
		age(t, layer, 60*24*time.Hour)
		if _, err := deps.New(host, dir, &deps.Options{InUse: func(digest string) bool { return inUse && digest == layer.Digest }}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(layer.Dir); (err == nil) != inUse {
			t.Errorf("in use: %v, %v", inUse, err)
		}
	}
}
