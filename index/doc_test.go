package index_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sallyport/index"
	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

func fromSchema(schema string) index.Doc {
	return index.FromTool(tool.Tool{ID: tool.ID{Upstream: "up", Name: "do_it"}, Wire: "do-it", Title: "Do it", Description: "Does it.",
		Input: json.RawMessage(schema)}, "An upstream that does things")
}

func TestFromTool(t *testing.T) {
	got := fromSchema(`{"type": "object", "properties": {
		"path": {"type": "string", "description": "where"},
		"edits": {"type": "array", "description": "what", "items": {"type": "object", "properties": {"oldText": {"description": "before"}}}},
		"when": {"anyOf": [{"type": "null"}, {"properties": {"from": {"description": "start"}}}]}}}`)
	want := index.Doc{ID: tool.ID{Upstream: "up", Name: "do_it"}, Wire: "do-it", Upstream: "An upstream that does things", Title: "Do it", Description: "Does it.",
		Params: []index.Param{{Name: "edits", Description: "what"}, {Name: "path", Description: "where"}, {Name: "when"},
			{Name: "from", Description: "start"}, {Name: "oldText", Description: "before"}}}
	if diff := cmp.Diff(want, got, cmp.Transformer("set", paramSet)); diff != "" {
		t.Error(diff)
	}
}

// TestResultsAreFound: what a tool returns says what it is good for, be it declared or learned.
func TestResultsAreFound(t *testing.T) {
	declared := tool.Tool{ID: tool.ID{Upstream: "up", Name: "one"}, Output: json.RawMessage(`{"type":"object","properties":{"orders":{"type":"array","items":{"properties":{"trackingNumber":{"type":"string"}}}}}}`)}
	item := jsontype.Shape{Kinds: jsontype.Object, Fields: []jsontype.Field{{Name: "lastLogin", Shape: jsontype.Shape{Kinds: jsontype.String}}}}
	observed := tool.Tool{ID: tool.ID{Upstream: "up", Name: "two"}, Observed: &tool.Observed{Count: 1, Shape: jsontype.Shape{Kinds: jsontype.List, Elem: &item}}}
	silent := tool.Tool{ID: tool.ID{Upstream: "up", Name: "three"}}
	var docs []index.Doc
	for _, one := range []tool.Tool{declared, observed, silent} {
		docs = append(docs, index.FromTool(one, ""))
	}
	ix := build(t, docs)
	for query, want := range map[string]string{"tracking number": "one", "last login": "two", "three": "three"} {
		res, err := ix.Search(t.Context(), index.Query{Text: query})
		if err != nil || len(res.Hits) != 1 || res.Hits[0].ID.Name != want {
			t.Errorf("%s: %+v, %v; want %s alone", query, res.Hits, err, want)
		}
	}
}

// paramSet compares parameters without their order, which says nothing.
func paramSet(params []index.Param) map[index.Param]bool {
	set := map[index.Param]bool{}
	for _, p := range params {
		set[p] = true
	}
	return set
}

func TestFromToolOfWhatIsNoSchema(t *testing.T) {
	for _, schema := range []string{"", "null", "true", "[]", "3", "{", `{"properties": 7}`, `{"properties": [1]}`, `{"properties": null}`, "\xff"} {
		if got := fromSchema(schema); len(got.Params) != 0 || got.Description != "Does it." {
			t.Errorf("%q: %+v", schema, got)
		}
	}
	got := fromSchema(`{"properties": {"ok": {"description": "fine"}, "odd": {"description": 7, "items": "x", "anyOf": {}, "properties": "y"}, "bad": true}}`)
	want := []index.Param{{Name: "bad"}, {Name: "odd"}, {Name: "ok", Description: "fine"}}
	if diff := cmp.Diff(want, got.Params); diff != "" {
		t.Error(diff)
	}
}

func TestFromToolIsBounded(t *testing.T) {
	wide := strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(&wide, `,"p%d": {"description": %q}`, i, strings.Repeat("ä", 1000))
	}
	deep := strings.Repeat(`{"properties": {"a": `, 2000) + "{}" + strings.Repeat("}}", 2000)
	huge := index.FromTool(tool.Tool{Description: strings.Repeat("é", 1<<20), Title: strings.Repeat("t", 1<<20), Wire: strings.Repeat("w", 1<<20),
		Input: json.RawMessage(`{"properties": {` + wide.String()[1:] + `}}`)}, strings.Repeat("u", 1<<20))
	for name, d := range map[string]index.Doc{
		"huge": huge, "deep": fromSchema(deep), "wide": fromSchema(`{"properties": {"x":{}` + wide.String()[:60000] + `}}`),
	} {
		size := len(d.Wire) + len(d.Upstream) + len(d.Title) + len(d.Description)
		for _, p := range d.Params {
			size += len(p.Name) + len(p.Description)
			if !utf8.ValidString(p.Description) {
				t.Errorf("%s: a rune was cut in two", name)
			}
		}
		if size > 64<<10 || len(d.Params) > 64 {
			t.Errorf("%s: %d bytes, %d parameters", name, size, len(d.Params))
		}
	}
	if got := len(fromSchema(deep).Params); got == 0 || got > 10 {
		t.Errorf("deep: %d parameters", got)
	}
}

func FuzzFromTool(f *testing.F) {
	f.Add(`{"properties": {"a": {"description": "b", "items": {"properties": {"c": {}}}}}}`, "Some text.")
	f.Add(`{"properties": {"a": {"anyOf": [1, {"properties": {"b": {"description": ["x"]}}}]}}}`, "İ\xffΣ. 创建")
	f.Fuzz(func(t *testing.T, schema, text string) {
		d := fromSchema(schema)
		d.Description, d.Wire = text, text
		ix := build(t, []index.Doc{d})
		find(t, ix, index.Query{Text: text})
		if got := find(t, ix, index.Query{Text: "up.do_it"}); len(got.Hits) != 1 {
			t.Errorf("not found by its id: %+v", got)
		}
	})
}
