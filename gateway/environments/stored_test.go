//go:build linux

package environments_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/gateway/environments"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/image/imagetest"
)

// local is the sandboxes of this machine.
type local struct{ *sandbox.Host }

func (l local) Local() (*sandbox.Host, func(), error) { return l.Host, func() {}, nil }

// site is a cache directory that several users share, with images to put into it.
type site struct {
	host     *sandbox.Host
	cache    string
	settings atomic.Pointer[config.Config]
}

// newSite offers one image for each name, as the environment of that name.
func newSite(t *testing.T, names ...string) *site {
	t.Helper()
	state := testutil.ShortDir(t)
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: state, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &site{host: host, cache: filepath.Join(state, "cache")}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Environments = map[string]config.Environment{}
	for _, name := range names {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.Environments[name] = config.Environment{Image: imagetest.Push(t, imagetest.Layer(t, "/usr/bin/python3", file))}
	}
	s.settings.Store(&cfg)
	return s
}

// open returns environments on the shared cache, as one process has them.
func (s *site) open(t *testing.T, marks time.Duration) *environments.Environments {
	t.Helper()
	e := environments.New(environments.Options{Settings: &s.settings, CacheDir: s.cache, Logger: testutil.Logger(t), Sandboxes: local{s.host}, MarkInterval: marks})
	t.Cleanup(e.Close)
	return e
}

func ensure(t *testing.T, e *environments.Environments, name string) {
	t.Helper()
	if _, err := e.Ensure(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// age makes the last use of all images earlier, and that of the last removal.
func (s *site) age(t *testing.T, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	all, err := filepath.Glob(filepath.Join(s.cache, "images", "*", "image.json"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, file := range append(all, filepath.Join(s.cache, "environments", "pruned")) {
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

// stored returns the environments whose image is stored, and of which some process uses it.
func (s *site) stored(t *testing.T) (names, used []string) {
	t.Helper()
	all, err := environments.List(t.Context(), s.cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		name := s.nameOf(one)
		names = append(names, name)
		if one.InUse {
			used = append(used, name)
		}
	}
	slices.Sort(names)
	slices.Sort(used)
	return names, used
}

func (s *site) nameOf(one environments.Stored) string {
	for name, settings := range s.settings.Load().Environments {
		if settings.Image == one.Name && one.Kind == environments.KindImage && one.Bytes > 1<<20 {
			return name
		}
	}
	return "unknown: " + one.Kind + " " + one.Name
}

func (s *site) want(t *testing.T, when string, wantNames, wantUsed []string) {
	t.Helper()
	if names, used := s.stored(t); !slices.Equal(names, wantNames) || !slices.Equal(used, wantUsed) {
		t.Errorf("%s: stored are %v, in use %v; want %v and %v", when, names, used, wantNames, wantUsed)
	}
}

const month = 31 * 24 * time.Hour

// TestTwoUsers: of two users of one cache neither removes what the other uses, and what nobody uses goes.
func TestTwoUsers(t *testing.T) {
	s := newSite(t, "one", "other", "old")
	past := s.open(t, 0)
	ensure(t, past, "old")
	first := s.open(t, 0)
	ensure(t, first, "one")
	past.Close()
	s.want(t, "both made", []string{"old", "one"}, []string{"one"})

	s.age(t, month)
	second := s.open(t, 0)
	ensure(t, second, "other")
	testutil.Eventually(t, "the old image is removed", 20*time.Second, func() bool {
		names, _ := s.stored(t)
		return !slices.Contains(names, "old")
	})
	second.Close()
	s.want(t, "the second has ended", []string{"one", "other"}, []string{"one"})

	s.age(t, month)
	prune := func(opts environments.PruneOptions) ([]environments.Stored, error) {
		return environments.Prune(t.Context(), s.cache, opts)
	}
	if removed, err := prune(environments.PruneOptions{Unused: environments.MinUnused - 1, DryRun: true}); !errors.Is(err, environments.ErrInUse) || len(removed) > 0 {
		t.Errorf("while the first runs: %v, %v", removed, err)
	}
	removed, err := prune(environments.PruneOptions{Unused: environments.MinUnused, DryRun: true})
	if err != nil || len(removed) != 1 || s.nameOf(removed[0]) != "other" {
		t.Errorf("would remove %+v, %v", removed, err)
	}
	s.want(t, "nothing was removed", []string{"one", "other"}, []string{"one"})
	if removed, err = prune(environments.PruneOptions{Unused: environments.MinUnused}); err != nil || len(removed) != 1 || s.nameOf(removed[0]) != "other" {
		t.Errorf("removed %+v, %v", removed, err)
	}
	s.want(t, "one is in use", []string{"one"}, []string{"one"})
	first.Close()
	if _, err = prune(environments.PruneOptions{GatewayRuns: true}); !errors.Is(err, environments.ErrInUse) {
		t.Errorf("while a gateway is known to run: %v", err)
	}
	if removed, err = prune(environments.PruneOptions{}); err != nil || len(removed) != 1 || s.nameOf(removed[0]) != "one" {
		t.Errorf("removed %+v, %v", removed, err)
	}
	s.want(t, "nobody uses any", nil, nil)
}

// TestKilledUser: what a process used that was killed is in use no more.
func TestKilledUser(t *testing.T) {
	s := newSite(t, "one")
	e := s.open(t, 0)
	ensure(t, e, "one")
	all, err := filepath.Glob(filepath.Join(s.cache, "environments", "*.lease"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	data, err := os.ReadFile(all[0])
	if err != nil || len(data) == 0 {
		t.Fatal(err)
	}
	e.Close()
	if err := os.WriteFile(all[0], data, 0o600); err != nil { // as a killed process leaves it: there, and not locked
		t.Fatal(err)
	}
	s.want(t, "it was killed", []string{"one"}, nil)
	if _, err := os.Stat(all[0]); err == nil {
		t.Error("its lease is still there")
	}
}

// TestMarks: an image in use is marked as used while the process lives, so that others that go by age alone keep it.
func TestMarks(t *testing.T) {
	s := newSite(t, "one")
	e := s.open(t, time.Second/2)
	ensure(t, e, "one")
	used := func() time.Time {
		all, err := environments.List(t.Context(), s.cache)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].Used
	}
	testutil.Eventually(t, "images were removed by age", 20*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(s.cache, "environments", "pruned"))
		return err == nil
	})
	s.age(t, month)
	testutil.Eventually(t, "the image is marked as used", 20*time.Second, func() bool { return time.Since(used()) < time.Hour })
	e.Close()
	s.age(t, month)
	time.Sleep(2 * time.Second)
	if time.Since(used()) < time.Hour {
		t.Error("it is marked after the process has ended")
	}
}
