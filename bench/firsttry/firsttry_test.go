package main

import (
	"slices"
	"testing"

	"sallyport/bench/firsttry/fixture"
	"sallyport/internal/testutil"
)

// few are cases that a model must get right, or be taught, at the least.
var few = []string{
	"py-open-count", "ts-bug-numbers", "py-comment-id", "ts-invoice-count",
	"await-length-compare", "await-for-of", "await-in-object", "await-write-then-print", "py-aio-not-awaited",
	"param-py-snake-message-id", "param-ts-cc-snake", "param-py-camel-per-page", "param-ts-nested-snake", "param-py-enum-hyphen",
	"tool-py-no-import", "tool-ts-camel-of-snake", "tool-py-from-servers",
	"arg-py-number-text", "arg-ts-text-for-list",
	"res-py-null-assignee", "res-ts-json-parse-object",
	"val-py-stock-plus", "val-ts-sku-length", "err-ts-unhandled",
	"form-ts-top-return", "form-py-main-guard", "out-ts-fetch", "big-ts-set", "big-ts-refund",
}

// TestFew runs a small part of the cases on real sandboxes.
func TestFew(t *testing.T) {
	s := setup{Runsc: testutil.Runsc(t), Snapshots: testutil.Snapshots(), DataDir: t.TempDir()}
	all, err := readCases()
	if err != nil {
		t.Fatal(err)
	}
	chosen := filter(all, func(c trial) bool { return slices.Contains(few, c.Name) })
	if len(chosen) != len(few) {
		t.Errorf("%d of %d cases exist", len(chosen), len(few))
	}
	_, err = judgeAll(t.Context(), s, chosen, func(o outcome) {
		if o.Verdict != right && o.Verdict != taught {
			t.Errorf("%s: %s\n%s\n%q", o.Name, o.Verdict, o.Answer, o.Repairs)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCases checks that the cases are whole, and at least 300.
func TestCases(t *testing.T) {
	all, err := readCases()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range check(all, tasks(fixture.NewWorld()), sources) {
		t.Error(problem)
	}
	if len(all) < 300 {
		t.Errorf("%d cases", len(all))
	}
	for key := range sources {
		if !slices.ContainsFunc(all, func(c trial) bool { return c.Source == key }) {
			t.Errorf("no case for source %s", key)
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   any
		same   bool
	}{
		{"42", 42, true},
		{"42.0", 42, true},
		{"42\n=> 7", 7, true},
		{"42\n=> 7", 42, true},
		{"9007199254740993", "9007199254740993", true},
		{"9007199254740992", "9007199254740993", false},
		{"9007199254740993n", "9007199254740993", true},
		{"7", "007", false},
		{"['a', 'b']", []string{"a", "b"}, true},
		{"[ 'a', 'b' ]", []string{"a", "b"}, true},
		{"True", true, true},
		{"8\nnote: something else", 8, true},
		{"8\nstderr:\nwarning", 8, true},
		{"few", "many", false},
		{"", "nobody", false},
	} {
		if got := same(c.answer, c.want); got != c.same {
			t.Errorf("same(%q, %v) = %v", c.answer, c.want, got)
		}
	}
}

func TestInvented(t *testing.T) {
	if words := invented("x = await f(per_page=100)", "x = f(perPage=100)", "did you mean per_page? the call was not awaited"); len(words) > 0 {
		t.Errorf("invented: %q", words)
	}
	if words := invented("json.loads(f())", "f()", "f returns text"); !slices.Equal(words, []string{"json", "loads"}) {
		t.Errorf("invented: %q", words)
	}
}
