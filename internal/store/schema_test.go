package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestMigrate: the steps from the version that is there to the newest are made once each, in order; one that fails
// is made again the next time, and meanwhile nothing can be read.
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
	two := []migration{write(1), write(2)}
	four := append(two, write(3), func(context.Context, *Store) error { return fails })
	open := func(steps []migration) (*Store, error) {
		s, err := openWith(dir, (&Options{}).withDefaults(), steps)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = s.Close() })
		err = s.Ready(ctx)
		if b, _ := s.Bucket("b", Limits{}); err == nil {
			if e, err := b.Get(ctx, Key{"version"}); err != nil || int(e.Value[0]) != len(steps) {
				t.Errorf("version %v, %v, want %d", e.Value, err, len(steps))
			}
		}
		return s, errors.Join(err, s.Close())
	}
	if _, err := open(two); err != nil {
		t.Fatal(err)
	}
	if _, err := open(two); err != nil || len(made) != 2 {
		t.Errorf("%v, steps %v", err, made)
	}
	if _, err := open(four); !errors.Is(err, fails) {
		t.Errorf("error %v", err)
	}
	if version, err := schemaOf(dir); version != 3 || err != nil {
		t.Errorf("version %d, %v", version, err)
	}
	if _, err := open(append(four[:3:3], write(4))); err != nil {
		t.Error(err)
	}
	if want := []int{1, 2, 3, 4}; len(made) != 4 || made[3] != 4 || made[2] != 3 {
		t.Errorf("steps %v, want %v", made, want)
	}
	if _, err := open(two); !errors.Is(err, ErrNewer) {
		t.Errorf("error %v, want %v", err, ErrNewer)
	}
	if err := os.WriteFile(filepath.Join(dir, schemaFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(two); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want %v", err, ErrCorrupt)
	}
}
