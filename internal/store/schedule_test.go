package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/store"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ fields, zone, after, want string }{
		{"0 0 12 * * *", "", "2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"},
		{"30 7 * * mon-fri", "", "2026-11-20T08:00:00Z", "2026-11-23T07:30:00Z"}, // after a Friday
		{"*/15 * * * *", "", "2026-01-01T00:00:01Z", "2026-01-01T00:15:00Z"},
		{"* * * * * *", "", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"},
		{"0 9 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T07:00:00Z"},
		{"0 9 * * *", "Europe/Berlin", "2026-12-01T00:00:00Z", "2026-12-01T08:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"}, // there is no such time on the 29th
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, // it is that time once more
		{"0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 1,15 * fri", "", "2026-11-02T00:00:00Z", "2026-11-06T00:00:00Z"}, // either of the two days
		{"@daily", "Asia/Tokyo", "2026-01-01T00:00:00Z", "2026-01-01T15:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, row.after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Next(row.fields, row.zone, after)
		if err != nil || got.Format(time.RFC3339) != row.want {
			t.Errorf("%s in %q after %s: %v, want %s: %v", row.fields, row.zone, row.after, got, row.want, err)
		}
	}
}

// TestNextRefuses: whatever cannot be a schedule is refused, in words, and at once.
func TestNextRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ fields, zone, words string }{
		{"", "", "five fields"},
		{"* * * *", "", "has 4"},
		{"* * * * * * *", "", "has 7"},
		{"60 * * * *", "", `the minute of a schedule cannot be "60"`},
		{"* 24 * * *", "", "the hour of a schedule"},
		{"* * 0 * *", "", "the day of the month of a schedule"},
		{"* * * JAM *", "", "the month of a schedule"},
		{"* * * * 7", "", "the day of the week of a schedule"},
		{", * * * * *", "", "the second of a schedule"},
		{"1,,2 * * * *", "", "the minute of a schedule"},
		{"1-2-3 * * * *", "", "the minute of a schedule"},
		{"*/0 * * * *", "", "the minute of a schedule"},
		{"TZ=UTC * * * * *", "", "the second of a schedule"},
		{"TZ=", "", "five fields"},
		{"@every 1s", "", "no schedule is called"},
		{"@reboot", "", "no schedule is called"},
		{"@", "", "no schedule is called"},
		{"0 0 30 2 *", "", "never fires"},
		{"* * * * *", "Europe/Berlín", "no time zone"},
		{"* * * * *", "../etc/passwd", "no time zone"},
	} {
		_, err := store.Next(row.fields, row.zone, time.Now())
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), row.words) {
			t.Errorf("%q: %v", row.fields, err)
		}
	}
}

// FuzzNext: an answer comes quickly, and is after what it was asked for.
func FuzzNext(f *testing.F) {
	for _, seed := range []string{"* * * * *", "0 */5 1-3 ? jan *", "@daily", "TZ=0", "1/99999999999999999999 * * * *", "59 59 23 31 12 0", ",,,,,"} {
		f.Add(seed, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, fields, zone string) {
		began := time.Date(2026, 3, 29, 0, 59, 59, 1, time.UTC)
		next, err := store.Next(fields, zone, began)
		if err == nil && !next.After(began) || err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q in %q: %v, %v", fields, zone, next, err)
		}
	})
}

// TestMissed: of what was due again and again while nobody listened one comes, and then each in its time.
func TestMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.Memory()
		schedules, err := s.Schedules("x")
		if err != nil {
			t.Fatal(err)
		}
		set := func() {
			err := schedules.Cron(t.Context(), store.Key{"cron"}, "0 * * * *", "Asia/Kolkata", nil) // half past, in UTC
			if err := errors.Join(err, schedules.Every(t.Context(), store.Key{"every"}, 7*time.Hour, nil)); err != nil {
				t.Fatal(err)
			}
		}
		set()
		began := time.Now() // midnight
		time.Sleep(47 * time.Hour)
		set() // the same: nothing that was due is forgotten
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		var got []string
		err = schedules.Listen(ctx, func(f store.Firing) error {
			got = append(got, fmt.Sprintf("%s of %v at %v", f.Key[0], f.Time.Sub(began), time.Since(began)))
			return nil
		})
		want := "cron of 30m0s at 47h0m0s, every of 7h0m0s at 47h0m0s, cron of 47h30m0s at 47h30m0s, cron of 48h30m0s at 48h30m0s, every of 49h0m0s at 49h0m0s, cron of 49h30m0s at 49h30m0s"
		if !errors.Is(err, context.DeadlineExceeded) || strings.Join(got, ", ") != want {
			t.Errorf("got %s: %v", strings.Join(got, ", "), err)
		}
	})
}

// TestFar: what is due in more than a year is, and not before.
func TestFar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		schedules, err := store.Memory().Schedules("x")
		if err != nil {
			t.Fatal(err)
		}
		when, enough := time.Now().Add(1000*24*time.Hour), errors.New("enough")
		if err := schedules.At(t.Context(), store.Key{"k"}, when, nil); err != nil {
			t.Fatal(err)
		}
		if err := schedules.Listen(t.Context(), func(store.Firing) error { return enough }); !errors.Is(err, enough) || !time.Now().Equal(when) {
			t.Errorf("%v at %v", err, time.Now())
		}
	})
}
