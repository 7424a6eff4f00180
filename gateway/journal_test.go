package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestExecutionIsRecorded: what a program was, did and called can be had by its id, by whoever ran it and nobody else.
func TestExecutionIsRecorded(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc)}))
	cfg.Sandbox.Timeout = 20 * time.Second
	g := open(t, cfg, nil)
	ada := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "client-1")
	code := "from servers.calc import add, fail\nprint(add(a=1, b=2))\ntry: fail()\nexcept Exception: pass\n'4 bytes'[:4]"
	e, err := g.Executor.Execute(ada, execution.Program{Code: code, Session: "mine"})
	if err != nil || e.Status != sandbox.OK {
		t.Fatal(err, e.Text())
	}
	r, err := g.History.Record(ada, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	digest := func(name string) string {
		i := slices.IndexFunc(g.Catalog.Tools(), func(t tool.Tool) bool { return t.ID.Name == name })
		return g.Catalog.Tools()[i].Digest()
	}
	want := history.Record{
		ID: e.ID, Principal: "ada", Session: "client-1", Memory: "mine", Language: "python", Title: "calc.add, calc.fail", Code: code, Status: sandbox.OK,
		Output:   &history.Output{Stdout: "3", Value: "4 by"},
		Duration: e.Duration, Made: 2, Stdout: 2, Value: r.Value, Tokens: g.Searcher.CountTokens(e.Text()), TokensRead: g.Searcher.CountTokens("3") + g.Searcher.CountTokens("no such \x1b[31mledger"),
		Calls: []toolcall.RecordedCall{
			{Tool: tool.ID{Upstream: "calc", Name: "add"}, Digest: digest("add"), Arguments: sum(`{"a":1,"b":2}`), Outcome: "ok"},
			{Tool: tool.ID{Upstream: "calc", Name: "fail"}, Digest: digest("fail"), Arguments: sum(`{}`), Outcome: "failed"},
		},
	}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreFields(history.Record{}, "Started"), cmpopts.IgnoreFields(toolcall.RecordedCall{}, "Begun", "Duration", "Size")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if since := r.Calls[1].Begun.Sub(r.Calls[0].Begun); r.Calls[0].Begun.Before(r.Started) || since < r.Calls[0].Duration || since > e.Duration {
		t.Errorf("the calls began at %v and %v of %v", r.Calls[0].Begun, r.Calls[1].Begun, r.Started)
	}
	if age := time.Since(r.Started); age < e.Duration || age > time.Hour || r.Calls[0].Duration <= 0 {
		t.Errorf("started %v ago, first call took %v", age, r.Calls[0].Duration)
	}
	for _, other := range []string{"", "bob", "ADA", "ada/", "../ada", "ada.>"} {
		_, err := g.History.Record(tool.WithPrincipal(t.Context(), other), e.ID)
		wantError(t, err, tool.NotFound, "there is no execution "+e.ID)
	}
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// TestRecords: a program that does not even compile is recorded too, and the records of one principal come in
// order; an id may be any text.
func TestRecords(t *testing.T) {
	t.Parallel()
	g := open(t, settings(nil), nil)
	var ids []string
	for range 3 {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "let = ;", Language: "ts"})
		if err != nil || e.Status != sandbox.Failed {
			t.Fatal(err, e.Status)
		}
		ids = append(ids, e.ID)
	}
	if _, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), "bob"), execution.Program{Code: "let = ;", Language: "ts"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range g.History.Records(t.Context()) {
		if err != nil || r.Status != sandbox.Failed || r.Code != "let = ;" {
			t.Error(err, r)
		}
		got = append(got, r.ID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("records %v, want %v", got, ids)
	}
	operator := tool.WithOperator(t.Context(), "cli")
	all := 0
	for r, err := range g.History.Records(operator) {
		all++
		if found, err2 := g.History.Record(operator, r.ID); err != nil || err2 != nil || found.Principal != r.Principal || found.ID != r.ID {
			t.Errorf("an operator finds %+v, %v, %v", found, err, err2)
		}
	}
	if all != 4 {
		t.Errorf("an operator sees %d records, want 4", all)
	}
	for _, id := range []string{"", ">", "*", "../" + ids[0], ids[0] + "\x00", strings.Repeat("x", 10_000), "e-\x1b[2J"} {
		_, err := g.History.Record(t.Context(), id)
		wantError(t, err, tool.NotFound, "there is no execution")
		if strings.ContainsAny(err.Error(), "\x1b\x00") || len(err.Error()) > 200 {
			t.Errorf("%q", err)
		}
	}
}
