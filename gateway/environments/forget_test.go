package environments

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
)

// TestForget: other processes see that layers of a build that a worker has forgotten are no longer used, except those of another build.
func TestForget(t *testing.T) {
	t.Parallel()
	e := New(Options{CacheDir: t.TempDir(), Logger: testutil.Logger(t)})
	defer e.Close()
	if !e.lease.start() {
		t.Fatal("the lease has begun")
	}
	built := func(digests ...string) *building {
		m := &building{done: make(chan struct{}), env: sandbox.Environment{Layers: map[string]string{"/usr/lib/venv": "/srv/venv/lib"}}}
		for _, digest := range digests {
			digest = strings.Repeat(digest, 32)
			m.env.Layers["/opt/"+digest] = filepath.Join(e.opts.CacheDir, packageFolder, "layers", digest, "python")
			e.lease.add(layerKey(digest), func() error { return nil })
		}
		close(m.done)
		return m
	}
	one, two, running := recipe{"data", "one", ""}, recipe{"data", "two", ""}, recipe{"data", "three", ""}
	e.builds[one], e.builds[two], e.builds[running] = built("a", "b"), built("b", "c"), &building{done: make(chan struct{})}
	want := func(digests ...string) {
		t.Helper()
		used, err := readLeases(e.opts.CacheDir)
		var got []string
		for path := range maps.Keys(used.paths) {
			got = append(got, filepath.Base(path)[:1])
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, digests) {
			t.Errorf("%q are in use, not %q: %v", got, digests, err)
		}
	}
	want("a", "b", "c")
	forget(e, []recipe{one}, true)
	want("b", "c")
	forget(e, []recipe{two}, false)
	want("b", "c")
	if e.builds[one] != nil || e.builds[two] != nil || e.builds[running] == nil {
		t.Errorf("%+v", e.builds)
	}
	e.lease.drop(layerKey(strings.Repeat("b", 32)))
	e.lease.add(layerKey(strings.Repeat("d", 32)), func() error { return nil })
	want("c", "d")
}
