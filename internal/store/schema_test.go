package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMigrate: the steps from the version that is there to the newest are made once each, in order; one that fails
// is made again the next time, and meanwhile nothing can be read. A new directory is of the first version before its steps.
func TestMigrate(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	var made []int
	fails := errors.New("not yet")
	write := func(n int) migration {
		return func(ctx context.Context, s *Store) error {
			made = append(made, n)
			b, err := s.Bucket("b", Limits{})
			if err != nil {
				return err
			}
			_, err = b.Put(ctx, Key{"version"}, []byte{byte(n)})
			return err
		}
	}
	three := []migration{write(2), write(3)}
	five := append(three, write(4), func(context.Context, *Store) error { return fails })
	open := func(steps []migration) (*Store, error) {
		s, err := openWith(dir, (&Options{}).withDefaults(), steps)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = s.Close() })
		err = s.Ready(ctx)
		if b, _ := s.Bucket("b", Limits{}); err == nil {
			if e, err := b.Get(ctx, Key{"version"}); err != nil || int(e.Value[0]) != newest(steps) {
				t.Errorf("version %v, %v, want %d", e.Value, err, newest(steps))
			}
		}
		return s, errors.Join(err, s.Close())
	}
	if _, err := open(three); err != nil {
		t.Fatal(err)
	}
	if _, err := open(three); err != nil || len(made) != 2 {
		t.Errorf("%v, steps %v", err, made)
	}
	if _, err := open(five); !errors.Is(err, fails) {
		t.Errorf("error %v", err)
	}
	if version, err := schemaOf(dir); version != 4 || err != nil {
		t.Errorf("version %d, %v", version, err)
	}
	if _, err := open(append(five[:3:3], write(5))); err != nil {
		t.Error(err)
	}
	if want := []int{2, 3, 4, 5}; !slices.Equal(made, want) {
		t.Errorf("steps %v, want %v", made, want)
	}
	if _, err := open(three); !errors.Is(err, ErrNewer) {
		t.Errorf("error %v, want %v", err, ErrNewer)
	}
	if err := os.WriteFile(filepath.Join(dir, schemaFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(three); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want %v", err, ErrCorrupt)
	}
}
