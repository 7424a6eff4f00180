package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/testutil/natscluster"
)

// remoteMoved moves records from a directory to servers, and from there to another directory.
func remoteMoved(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	ctx := t.Context()
	r := settings(t, c)
	r.Creds = c.OtherCreds // an account without records
	local, servers, back := open(t, t.TempDir()), connect(t, r), open(t, t.TempDir())
	fill(t, local)
	var seen int
	if n, err := local.CopyTo(ctx, servers, func(records int) { seen = records }); err != nil || n != 7 || seen != 7 {
		t.Fatalf("%d records, %d seen, %v", n, seen, err)
	}
	if n, err := local.CopyTo(ctx, servers, nil); !errors.Is(err, store.ErrNotEmpty) || n != 0 {
		t.Errorf("again: %d records, %v", n, err)
	}
	want := contents(t, local)
	if got := contents(t, servers); !slices.Equal(got, want) {
		t.Errorf("servers have %q, want %q", got, want)
	}
	if _, err := servers.CopyTo(ctx, back, nil); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, back); !slices.Equal(got, want) {
		t.Errorf("back are %q, want %q", got, want)
	}
	if _, err := local.CopyTo(ctx, store.Memory(), nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("to memory: %v", err)
	}
}

// TestMovedInPart: records that cannot be copied leave nothing in the other store.
func TestMovedInPart(t *testing.T) {
	t.Parallel()
	local, to := open(t, t.TempDir()), open(t, t.TempDir())
	fill(t, local)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, err := local.CopyTo(ctx, to, func(records int) {
		if records == 4 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 4 {
		t.Errorf("%d records, %v", n, err)
	}
	if err := to.Vacant(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := local.CopyTo(t.Context(), to, nil); err != nil || n != 7 {
		t.Errorf("then %d records, %v", n, err)
	}
}

// openPlaces opens a bucket, a log and schedules.
func openPlaces(t *testing.T, s *store.Store) (*store.Bucket, *store.Log, *store.Schedules) {
	t.Helper()
	bucket, err := s.Bucket("moved", store.Limits{Records: 100, Keep: true})
	log, err2 := s.Log("moved", store.Limits{Records: 100, Age: time.Hour})
	due, err3 := s.Schedules("moved")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return bucket, log, due
}

// fill writes seven records.
func fill(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	bucket, log, due := openPlaces(t, s)
	for _, key := range []store.Key{{"a", "b.*> c"}, {"gone"}, {"a", "d"}} {
		if _, err := bucket.Put(ctx, key, []byte(fmt.Sprint(key))); err != nil {
			t.Fatal(err)
		}
	}
	_, err := log.Append(ctx, store.Key{"r-1"}, []byte("one"))
	_, err2 := log.Append(ctx, store.Key{"r-2"}, nil)
	_, err3 := log.Append(ctx, store.Key{"r-1"}, []byte("two"))
	if err := errors.Join(err, err2, err3, bucket.Delete(ctx, store.Key{"gone"}, 0), due.At(ctx, store.Key{"k"}, time.Now().Add(time.Hour), []byte("v"))); err != nil {
		t.Fatal(err)
	}
}

// contents returns all records.
func contents(t *testing.T, s *store.Store) (all []string) {
	t.Helper()
	bucket, log, due := openPlaces(t, s)
	for _, list := range []func(func(store.Entry, error) bool){bucket.List(t.Context(), nil), log.Read(t.Context(), nil, 0)} {
		for e, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%q %q", e.Key, e.Value))
		}
	}
	if _, err := bucket.Create(t.Context(), store.Key{"a", "d"}, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("create what is there: %v", err)
	}
	for e, err := range due.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%q %s %q", e.Key, e.Next, e.Value))
	}
	return all
}
