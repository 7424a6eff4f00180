package environments

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestAskAgain: a worker is asked again for packages after a while, as its operator may have changed its settings, and soon after an error.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	added := &sandbox.Added{Environment: "data"}
	for name, test := range map[string]struct {
		made building
		age  time.Duration
		want bool
	}{
		"added":              {building{added: added}, 9 * time.Minute, false},
		"added long ago":     {building{added: added}, 11 * time.Minute, true},
		"on this machine":    {building{}, 11 * time.Minute, false},
		"a failure":          {building{added: added, err: errNoWorker, retry: workerRetry}, 3 * time.Second, true},
		"a failure just now": {building{added: added, err: errNoWorker, retry: workerRetry}, 0, false},
	} {
		test.made.done = make(chan struct{})
		close(test.made.done)
		test.made.finished = time.Now().Add(-test.age)
		if got := test.made.retryDue(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
