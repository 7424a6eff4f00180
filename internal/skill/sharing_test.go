package skill_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/internal/skill"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

func openShared(t *testing.T, c *natscluster.Cluster, dir string) *skill.Store {
	t.Helper()
	s, err := skill.Open(dir, storetest.Connect(t, c.Server("")), testutil.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func coded(name, code string) skill.Skill {
	return skill.Skill{Front: skill.Front{Name: name, Description: "It is " + name + ".", Language: skill.Python}, Files: map[string][]byte{"skill.py": []byte(code)}}
}

// wantCode wants the code of a version of a skill; version 0 is the current one.
func wantCode(t *testing.T, s *skill.Store, name string, version int, code string) {
	t.Helper()
	if one, err := s.Load("ada", name, version); err != nil || one.Code() != code || version > 0 && one.Version != version {
		t.Errorf("%s %d: version %d, %q, want %q: %v", name, version, one.Version, one.Code(), code, err)
	}
}

// TestSharedByGateways: skills are saved at one gateway and used at another, with all of their versions; concurrent saves are versions of
// their own; what a directory had before is taken over; removals, proposals and approvals are seen by all.
func TestSharedByGateways(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	old := t.TempDir()
	for i := range 3 {
		if _, err := skill.New(old).Save("ada", coded("old", fmt.Sprint("old ", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	one, two := openShared(t, c, filepath.Join(t.TempDir(), "skills")), openShared(t, c, old)
	if err := two.TakeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, one, "old", 0, "old 3")
	wantCode(t, one, "old", 1, "old 1")
	stamp := two.Stamp("ada")
	if saved, err := one.Save("ada", coded("old", "old 4")); err != nil || saved.Version != 4 {
		t.Errorf("%+v, %v", saved, err)
	}
	time.Sleep(100 * time.Millisecond)
	wantCode(t, two, "old", 0, "old 4")
	if two.Stamp("ada") == stamp {
		t.Error("the stamp is the same")
	}
	if got := two.Versions("ada", "old"); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("versions %v", got)
	}

	var work sync.WaitGroup
	var mu sync.Mutex
	saved := map[int]string{}
	for i := range 4 {
		work.Go(func() {
			for n := range 5 {
				code := fmt.Sprintf("%d-%d", i, n)
				done, err := []*skill.Store{one, two}[i%2].Save("ada", coded("many", code))
				mu.Lock()
				if err != nil || saved[done.Version] != "" {
					t.Errorf("version %d, after %q: %v", done.Version, saved[done.Version], err)
				}
				saved[done.Version] = code
				mu.Unlock()
			}
		})
	}
	work.Wait()
	three := openShared(t, c, filepath.Join(t.TempDir(), "skills"))
	for _, s := range []*skill.Store{one, two, three} {
		for version := 1; version <= 20; version++ {
			wantCode(t, s, "many", version, saved[version])
		}
	}
	for range 5 {
		if _, err := three.Save("ada", coded("many", "more")); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	if got := one.Versions("ada", "many"); len(got) != skill.MaxVersions+1 || got[0] != 5 {
		t.Errorf("versions %v", got)
	}

	if err := one.Remove("ada", "old"); err != nil {
		t.Error(err)
	}
	time.Sleep(100 * time.Millisecond)
	if got := two.Names("ada"); !slices.Equal(got, []string{"many"}) {
		t.Errorf("names %q", got)
	}
	if err := two.Remove("ada", "old"); !errors.Is(err, skill.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
	if _, err := one.Propose("ada", coded("report", "r")); err != nil {
		t.Fatal(err)
	}
	waits, err := two.LoadPending("report")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Approve("report", waits.Digest()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if found, err := one.LoadShared("report", 0); err != nil || found.Author != "ada" {
		t.Errorf("%+v, %v", found, err)
	}
	if waiting := one.Pending(); len(waiting) > 0 {
		t.Errorf("pending %q", waiting)
	}
	if err := one.RemoveShared("report"); err != nil {
		t.Error(err)
	}
	time.Sleep(100 * time.Millisecond)
	if _, err := two.LoadShared("report", 0); !errors.Is(err, skill.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}

	c.Kill(t, 0)
	if _, err := one.Save("ada", coded("lost", "x")); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("saved without the store: %v", err)
	}
	wantCode(t, one, "many", 0, "more")
	if got := one.Names("ada"); !slices.Equal(got, []string{"many"}) {
		t.Errorf("names %q", got)
	}
}
