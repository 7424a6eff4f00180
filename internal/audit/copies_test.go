package audit_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// chainIn writes a log with calls of tools, and copies it to a store until the copy has all.
func chainIn(t *testing.T, in *store.Store, tools ...string) (chain string) {
	t.Helper()
	l, err := audit.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tools {
		if err := l.Append(audit.Event{Kind: audit.Call, Tool: name}); err != nil {
			t.Fatal(err)
		}
	}
	if chain, err = audit.Chain(l.Dir()); err != nil {
		t.Fatal(err)
	}
	m, err := audit.NewMirror(in, chain, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Mirror(ctx, m) }()
	testutil.Eventually(t, "the copy has all, and a head", time.Minute, func() bool {
		i := slices.IndexFunc(copies(t, in), func(c audit.Copied) bool { return c.Chain == chain && c.Head.Seq == l.Head().Seq })
		return i >= 0
	})
	cancel()
	if err := errors.Join(<-done, l.Close()); err != nil {
		t.Fatal(err)
	}
	return chain
}

func copies(t *testing.T, in *store.Store) []audit.Copied {
	t.Helper()
	all, err := audit.Copies(t.Context(), in, 0)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCopies has the logs of several gateways in one store. Each is verified by itself: one that was changed there does not affect others.
func TestCopies(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	servers := natscluster.Start(t, 1)
	in := storetest.Connect(t, servers.Server(""))
	whole := chainIn(t, in, "bank.look", "bank.pay", "bank.look")
	for _, test := range []struct {
		name string
		edit func(lines [][]byte) [][]byte
		want string // "" for none
	}{
		{"nothing", func(l [][]byte) [][]byte { return l }, ""},
		{"edited", func(l [][]byte) [][]byte { l[2] = bytes.Replace(l[2], []byte("pay"), []byte("get"), 1); return l }, "record 3: it was edited"},
		{"no record", func(l [][]byte) [][]byte { l[2] = []byte("{}"); return l }, "record 3: this line is not a record"},
		{"rewritten", func(l [][]byte) [][]byte { l[2] = audit.Rewrite(l[2], "pay", "get"); return l }, "record 3: it was replaced"},
		{"last rewritten", func(l [][]byte) [][]byte { l[3] = audit.Rewrite(l[3], "look", "pay"); return l }, "it does not match the signed head"},
		{"removed", func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }, "record 3: it is missing"},
		{"end cut", func(l [][]byte) [][]byte { return l[:2] }, "records 3 to 4 are missing: the signed head"},
		{"all removed", func([][]byte) [][]byte { return nil }, "records 1 to 4 are missing: the signed head"},
	} {
		t.Run(test.name, func(t *testing.T) {
			chain := chainIn(t, in, "bank.look", "bank.pay", "bank.look")
			audit.Tamper(t.Context(), t, in, chain, test.edit)
			verifyCopies(t, in, map[string]string{whole: "", chain: test.want})
			kept, err := audit.Copies(t.Context(), in, time.Nanosecond)
			if listed := slices.ContainsFunc(kept, func(c audit.Copied) bool { return c.Chain == chain }); err != nil || listed == (test.name == "all removed") {
				t.Errorf("after the time for which records are kept, it is listed: %t, %v", listed, err)
			}
		})
	}
	chain := chainIn(t, in, "bank.pay")
	audit.ForgeHead(t.Context(), t, in, chain, whole)
	verifyCopies(t, in, map[string]string{whole: "", chain: "was not signed with the key of this chain"})
	mergedCopies(t, in, whole, chain)
	audit.ForgeHead(t.Context(), t, in, chain, "")
	verifyCopies(t, in, map[string]string{whole: "", chain: "no signed head is in the store"})
}

// verifyCopies wants what the verification of some chains finds.
func verifyCopies(t *testing.T, in *store.Store, want map[string]string) {
	t.Helper()
	seen := 0
	for _, c := range copies(t, in) {
		text, known := want[c.Chain]
		if !known {
			continue
		}
		seen++
		report, err := audit.VerifyCopy(t.Context(), in, c)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, p := range report.Problems {
			found += p.String() + "\n"
		}
		if text == "" && (found != "" || report.Count != 4 || report.Kept != 1) || !strings.Contains(found, text) {
			t.Errorf("chain %s: %+v, want %q", c, report, text)
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d chains are listed", seen, len(want))
	}
}

// mergedCopies reads chains by time: the second one was written later.
func mergedCopies(t *testing.T, in *store.Store, names ...string) {
	t.Helper()
	chosen := slices.DeleteFunc(copies(t, in), func(c audit.Copied) bool { return !slices.Contains(names, c.Chain) })
	read := []string{}
	var last time.Time
	for r, err := range audit.ReadCopies(t.Context(), in, chosen) {
		if err != nil || r.Time.Before(last) {
			t.Errorf("record %d of %s at %s: %v", r.Seq, r.Of, r.Time, err)
		}
		last = r.Time
		if read = append(read, r.Of.Chain); !r.Of.Is(r.Of.Chain[:6]) || r.Of.Is("") {
			t.Errorf("it is not named: %s", r.Of)
		}
	}
	if want := append(slices.Repeat(names[:1], 4), names[1], names[1]); !slices.Equal(read, want) {
		t.Errorf("read %q", read)
	}
}
