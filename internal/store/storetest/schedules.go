package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"sallyport/internal/store"
)

// listen returns the keys that become due, until stop.
func listen(t *testing.T, s *store.Schedules) (due chan store.Firing, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	due, ended := make(chan store.Firing, 100), make(chan error, 1)
	go func() { ended <- s.Listen(ctx, func(f store.Firing) error { due <- f; return nil }) }()
	return due, func() {
		cancel()
		want(t, <-ended, context.Canceled)
	}
}

// firings are the keys that become due.
type firings struct {
	t        *testing.T
	due      <-chan store.Firing
	repeated bool // 5 was due
}

func (f *firings) receive() store.Firing {
	f.t.Helper()
	got := <-f.due
	if got.Time.After(time.Now()) || time.Since(got.Time) > time.Minute && string(got.Value) > "2" {
		f.t.Errorf("%+v is due", got)
	}
	return got
}

// next returns the next key besides 5, which is due at any time on a slow machine, and again.
func (f *firings) next() store.Firing {
	f.t.Helper()
	for {
		got := f.receive()
		if string(got.Value) != "5" {
			return got
		}
		f.repeated = true
	}
}

// wantAll wants 1 to 5.
func (f *firings) wantAll() {
	f.t.Helper()
	for _, value := range []string{"1", "2"} {
		if got := f.next(); string(got.Value) != value {
			f.t.Errorf("%+v is due, want %s", got, value)
		}
	}
	if values := string(f.next().Value) + string(f.next().Value); values != "34" && values != "43" { // a slow machine sets 3 after 4 was due
		f.t.Errorf("%s are due, want 3 and 4", values)
	}
	if f.repeated {
		return
	}
	if got := f.receive(); string(got.Value) != "5" {
		f.t.Errorf("%+v is due, want 5", got)
	}
}

// schedules: due keys are delivered, once and in order, including those that became due without a listener.
func schedules(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	at := must[*store.Schedules](t)(s.Schedules("times"))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	check(at.At(ctx, store.Key{"second"}, now.Add(-time.Minute), []byte("2")))
	check(at.At(ctx, store.Key{"first"}, now.Add(-time.Hour), []byte("1")))
	check(at.At(ctx, store.Key{"removed"}, now.Add(-time.Hour), nil))
	check(at.Remove(ctx, store.Key{"removed"}))
	check(at.Remove(ctx, store.Key{"removed"}))
	check(at.At(ctx, store.Key{"put off"}, now.Add(-time.Hour), []byte("too early")))
	check(at.At(ctx, store.Key{"put off"}, now.Add(700*time.Millisecond), []byte("4")))
	check(at.At(ctx, store.Key{"far"}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), nil))
	check(at.Every(ctx, store.Key{"every"}, time.Second, []byte("5")))
	enough := errors.New("enough")
	want(t, at.Listen(ctx, func(store.Firing) error { return enough }), enough) // seen, and not seen to
	due, stop := listen(t, at)
	check(at.At(ctx, store.Key{"odd", "a.b *>"}, now, []byte("3")))
	f := &firings{t: t, due: due}
	f.wantAll()
	check(at.At(ctx, store.Key{"far"}, now, []byte("6")))
	if got := f.next(); string(got.Value) != "6" || !slices.Equal(got.Key, store.Key{"far"}) {
		t.Errorf("%+v is due", got)
	}
	stop()
	check(at.At(ctx, store.Key{"last"}, now, nil))
	gone, leave := context.WithCancel(ctx)
	want(t, at.Listen(gone, func(f store.Firing) error { // seen to, all the same
		if slices.Equal(f.Key, store.Key{"last"}) {
			leave()
		}
		return nil
	}), context.Canceled)
	left := 0
	for f, err := range at.List(ctx) {
		if left++; err != nil || f.Interval != time.Second || !f.Next.After(now) {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if left != 1 {
		t.Errorf("%d are left", left)
	}
	want(t, at.Every(ctx, store.Key{"k"}, time.Millisecond, nil), store.ErrInvalid)
	want(t, at.Cron(ctx, store.Key{"k"}, "every day", "", nil), store.ErrInvalid)
	_, err := s.Schedules("A")
	want(t, err, store.ErrInvalid)
}
