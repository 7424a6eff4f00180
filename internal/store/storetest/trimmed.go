package storetest

import (
	"slices"
	"strings"
	"testing"

	"sallyport/internal/store"
)

// trimmed: the first records of a key are removed, those of other keys stay, and the keys below a prefix are listed.
func trimmed(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	l := must[*store.Log](t)(s.Log("trimmed", store.Limits{}))
	one, other := store.Key{"ada", "x y"}, store.Key{"bob", "x"}
	var revisions []uint64
	for _, value := range []string{"a", "b", "c"} {
		revisions = append(revisions, must[uint64](t)(l.Append(ctx, one, []byte(value))))
		must[uint64](t)(l.Append(ctx, other, []byte(value)))
	}
	if err := l.Trim(ctx, one, revisions[1]); err != nil {
		t.Error(err)
	}
	if got := strings.Join(read(t, l, one, 0), "") + " " + strings.Join(read(t, l, other, 0), ""); got != "c abc" {
		t.Errorf("left %q", got)
	}
	if err := l.Trim(ctx, one, 0); err != nil {
		t.Error(err)
	}
	must[uint64](t)(l.AppendAfter(ctx, one, revisions[2], []byte("d")))
	must[uint64](t)(l.Append(ctx, store.Key{"ada", "more", "deep"}, nil))
	must[uint64](t)(l.Append(ctx, store.Key{"adam", "x"}, nil))
	keys := must[[]store.Key](t)(l.KeysUnder(ctx, store.Key{"ada"}))
	slices.SortFunc(keys, slices.Compare)
	if !slices.EqualFunc(keys, []store.Key{{"ada", "more", "deep"}, one}, slices.Equal) {
		t.Errorf("keys %q", keys)
	}
}
