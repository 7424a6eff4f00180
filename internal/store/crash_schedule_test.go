package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/internal/store"
)

// tickerDir is the variable that makes the test binary one that sets schedules in its directory, and sees to them.
const tickerDir = "STORE_TICKER"

// tick sets schedules that are due soon until it is killed, and says of each that it is acknowledged, and that it was due.
func tick(dir string) error {
	ctx := context.Background()
	s, err := store.Open(dir, nil)
	if err != nil {
		return err
	}
	schedules, err := s.Schedules("crash")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		failed <- schedules.Listen(ctx, func(f store.Firing) error {
			_, err := fmt.Printf("due %s\n", f.Value)
			return err
		})
	}()
	for i := 0; ; i++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if err := schedules.At(ctx, store.Key{name}, time.Now().Add(time.Duration(rand.IntN(300))*time.Millisecond), []byte(name)); err != nil {
			return err
		}
		fmt.Printf("set %s\n", name)
		select {
		case err := <-failed:
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestKilledSchedules: a process that sets schedules is killed at any moment, again and again; each that it was told was set is due once,
// or twice where it was killed while it saw to it.
func TestKilledSchedules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const kills = 5
	set, due := []string{}, map[string]int{}
	for range kills {
		for _, line := range killedWriter(t, tickerDir, dir, rand.IntN(80), time.Duration(rand.IntN(3000))*time.Microsecond) {
			switch verb, name, _ := strings.Cut(line, " "); verb {
			case "set":
				set = append(set, name)
			case "due":
				due[name]++
			}
		}
	}
	schedules, err := open(t, dir).Schedules("crash")
	if err != nil {
		t.Fatal(err)
	}
	if err := schedules.At(t.Context(), store.Key{"last"}, time.Now().Add(400*time.Millisecond), []byte("last")); err != nil {
		t.Fatal(err)
	}
	over := errors.New("over")
	err = schedules.Listen(t.Context(), func(f store.Firing) error {
		if due[string(f.Value)]++; string(f.Value) == "last" {
			return over
		}
		return nil
	})
	if !errors.Is(err, over) {
		t.Fatal(err)
	}
	twice := 0
	for _, name := range set {
		if due[name] == 0 {
			t.Errorf("%s was set, and never due", name)
		}
		twice += due[name] - 1
	}
	if len(set) == 0 || twice > kills {
		t.Errorf("of %d schedules %d were due once more", len(set), twice)
	}
}
