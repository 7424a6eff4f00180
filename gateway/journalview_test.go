package gateway_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// TestJournaled: the calls of an execution are there while it runs and afterwards, long ones in part, for whoever ran it and for operators.
func TestJournaled(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := open(t, &config.Config{Journal: config.Default().Journal}, &gateway.Options{DataDir: data})
	w, err := journal.Create(filepath.Join(data, "executions", "ann"), journal.Header{ID: "e-aaaaaaaaaaaa", Principal: "ann"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	id := tool.ID{Upstream: "calc", Name: "add"}
	long := strings.Repeat("é", 20_000)
	for _, result := range []tool.Result{
		{Content: []tool.Content{{Type: "text", Text: "3"}}}, {Structured: json.RawMessage(`{"sum":3}`)},
		{Content: []tool.Content{{Type: "image", MIME: "image/png", Data: []byte("1234")}}}, {Content: []tool.Content{{Type: "text", Text: long}}, IsError: true},
	} {
		n, err := w.Begin(journal.Start{Tool: id, Arguments: "digest", Args: []byte(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.End(n, result, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Refuse(id, "", "digest", &tool.Error{Kind: tool.Denied, Message: "not here", Hint: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Begin(journal.Start{Tool: id, Arguments: "digest"}); err != nil { // it is under way
		t.Fatal(err)
	}

	ann := tool.WithPrincipal(t.Context(), "ann")
	for who, ctx := range map[string]struct{ of, by string }{"ann": {"ann", ""}, "ops": {"", "ops"}} {
		ctx := tool.WithOperator(tool.WithPrincipal(t.Context(), ctx.of), ctx.by)
		view, err := g.History.JournalCalls(ctx, "e-aaaaaaaaaaaa", 0, 0)
		if err != nil || view.Total != 6 || len(view.Calls) != 6 {
			t.Fatalf("%s: %+v %v", who, view, err)
		}
		got := view.Calls
		if got[0].Result != "3" || got[0].Arguments != `{"a":1}` || got[1].Result != `{"sum":3}` || got[2].Result != "[image/png, 4 bytes]" || !got[3].Failed ||
			got[3].ResultSize != len(long) || len(got[3].Result) > 16<<10 || !strings.HasPrefix(long, got[3].Result) || got[4].Problem != "not here" || got[4].State != "refused" || got[5].State != "begun" {
			t.Errorf("%s: %+v", who, got)
		}
	}
	if view, err := g.History.JournalCalls(ann, "e-aaaaaaaaaaaa", 4, 1); err != nil || len(view.Calls) != 1 || view.Calls[0].Number != 5 {
		t.Errorf("%+v %v", view, err)
	}
	for who, id := range map[string]string{"bob": "e-aaaaaaaaaaaa", "ann": "e-bbbbbbbbbbbb", "": "../ann/e-aaaaaaaaaaaa"} {
		_, err := g.History.JournalCalls(tool.WithPrincipal(t.Context(), who), id, 0, 0)
		wantError(t, err, tool.NotFound, "is not kept")
	}
}
