package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// TestResting: a store that does not answer costs its patience once, and is tried again after its rest; an error or
// a caller that has gone is no reason to rest.
func TestResting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r resting
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		refused := errors.New("refused")
		works := func(context.Context) error { return refused }
		for i, step := range []struct {
			gone  bool
			do    func(context.Context) error
			want  error
			takes time.Duration
		}{
			{false, works, refused, 0},
			{true, hangs, context.Canceled, 0},
			{false, hangs, context.DeadlineExceeded, recordPatience},
			{false, works, errResting, 0},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if step.gone {
				cancel()
			}
			start := time.Now()
			if err := r.try(ctx, step.do); !errors.Is(err, step.want) || time.Since(start) != step.takes {
				t.Errorf("%d: %v after %v, want %v after %v", i, err, time.Since(start), step.want, step.takes)
			}
		}
		time.Sleep(recordRest)
		if err := r.try(t.Context(), works); !errors.Is(err, refused) {
			t.Errorf("after the rest: %v", err)
		}
	})
}

// BenchmarkRecord is what a record adds to an execution: a program of 2 KB with 10 calls, written through to the disk.
func BenchmarkRecord(b *testing.B) {
	records, err := store.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	j, err := openRecorder(Options{Records: records}, nil)
	if err != nil {
		b.Fatal(err)
	}
	calls := &callList{}
	for b.Loop() {
		*calls = callList{}
		for range 10 {
			calls.begin(&madeCall{tool: tool.ID{Upstream: "a", Name: "b"}, definition: "digest", arguments: strings.Repeat("a", 64)})
		}
		r := Record{ID: NewExecution(), Code: strings.Repeat("print(1)\n", 230)}
		r.Calls, r.Made = calls.list()
		if err := j.write(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
