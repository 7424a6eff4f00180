package codegen_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

// observedTool is a tool that declares no result, of which one with this value was seen.
func observedTool(t *testing.T, value string, count int) tool.Tool {
	t.Helper()
	s, err := jsontype.Of([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Tool{ID: tool.ID{Upstream: "up", Name: "t"}, Wire: "t", Input: json.RawMessage(`{"type":"object","properties":{}}`), Observed: &tool.Observed{Shape: s, Count: count}}
}

// TestShapesAsText holds signatures to the texts that the guest's shape_of is held to as well.
func TestShapesAsText(t *testing.T) {
	data, err := os.ReadFile("../internal/jsontype/testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Value              json.RawMessage
		Python, TypeScript string
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 40 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		tl := observedTool(t, string(c.Value), 1)
		if got, want := codegen.Signature(tl, codegen.Python), "up.t() -> "+c.Python+"  # observed 1x"; got != want {
			t.Errorf("%s\n got %s\nwant %s", c.Value, got, want)
		}
		got := codegen.Signature(tl, codegen.TypeScript)
		if want := "up.t(): Promise<" + c.TypeScript + ">  // observed 1x"; got != want {
			t.Errorf("%s\n got %s\nwant %s", c.Value, got, want)
		}
	}
}

// observedUpstream has tools of which results were seen, with names that are hard to write.
func observedUpstream() codegen.Upstream {
	blob, text := jsontype.Shape{Kinds: jsontype.Blob}, jsontype.Shape{Kinds: jsontype.String | jsontype.Null, Format: "uri"}
	fields := func(s jsontype.Shape, names ...string) jsontype.Shape {
		o := jsontype.Shape{Kinds: jsontype.Object}
		for i, name := range names {
			o.Fields = append(o.Fields, jsontype.Field{Name: name, Optional: i%2 == 0, Shape: s})
		}
		return o
	}
	hard := fields(text, "$ref", "@type", "Any", "Blob", "Result", "__class__", "__proto__", "a-b", "call", "class", "constructor", "from", "list", "str", "名前")
	up := codegen.Upstream{ID: "observed"}
	for name, s := range map[string]jsontype.Shape{
		"Blob": blob, "image": blob, "parts": jsontype.ListOf(jsontype.Merge(blob, text)), "map": {Kinds: jsontype.Object, Values: &blob},
		"member": fields(blob, "image"), "hard": hard, "call": fields(hard, "Result", "call"), "nested": jsontype.ListOf(fields(jsontype.ListOf(hard), "items", "more")),
		"deep": {Kinds: jsontype.Object | jsontype.List | jsontype.Blob, Values: &hard, Elem: &hard}, "none": {Kinds: jsontype.Null}, "any": {Any: true}, "nothing": {},
		"scalars": jsontype.ListOf(jsontype.Shape{Kinds: jsontype.Bool | jsontype.Number | jsontype.String | jsontype.Null}),
	} {
		up.Tools = append(up.Tools, tool.Tool{
			ID: tool.ID{Upstream: "observed", Name: tool.Identifier(name)}, Wire: name, Input: json.RawMessage(`{"type":"object","properties":{}}`),
			Observed: &tool.Observed{Shape: s, Count: 7},
		})
	}
	return up
}

// TestObservedMarks: only what was learned, and is used, is marked.
func TestObservedMarks(t *testing.T) {
	tl := observedTool(t, `{"items":[{"at":"2024-01-01","urls":["https://a.b/c"]}]}`, 5)
	declared, bare, unknown, failed := tl, tl, tl, tl
	declared.Output = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	bare.Output = json.RawMessage(`{"type":"object"}`)
	unknown.Observed = &tool.Observed{Shape: jsontype.Shape{Any: true}, Count: 5}
	failed.Observed = &tool.Observed{Count: 5}
	for _, test := range []struct {
		name string
		tool tool.Tool
		want string
	}{
		{"silent", tl, "up.t() -> {items: list[{at: str, urls: list[str]}]}  # observed 5x"}, {"bare", bare, "up.t() -> {items: list[{at: str, urls: list[str]}]}  # observed 5x"},
		{"declared", declared, "up.t() -> {n?: int}"}, {"unknown", unknown, "up.t() -> Any"}, {"nothing", failed, "up.t() -> Any"},
	} {
		if got := codegen.Signature(test.tool, codegen.Python); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		marked := strings.Contains(test.want, "observed")
		for _, f := range codegen.GenerateUpstream(codegen.Upstream{ID: "up", Tools: []tool.Tool{test.tool}}) {
			if isStub := strings.HasPrefix(f.Path, "up/t."); isStub && marked != strings.Contains(string(f.Data), "Result observed 5x, not declared") {
				t.Errorf("%s: %s: %s", test.name, f.Path, f.Data)
			}
		}
		if got := codegen.Describe(test.tool, codegen.TypeScript).Text; marked != strings.Contains(got, "/ observed 5x") {
			t.Errorf("%s: %s", test.name, got)
		}
		if got := codegen.DeclaresResult(test.tool); got != (test.name == "declared") {
			t.Errorf("%s: declares %v", test.name, got)
		}
	}
}

// TestObservedFormats: what the strings of members had in common is told in one line.
func TestObservedFormats(t *testing.T) {
	tl := observedTool(t, `{"items":[{"at":"2024-01-01","urls":["https://a.b/c"],"owner":{"mail":"a@b.cd"},"n":1}]}`, 5)
	for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
		if got, want := codegen.Describe(tl, lang).Text, "\n\nFormats: items[].at date, items[].owner.mail email, items[].urls[] uri"; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", lang, got)
		}
	}
	if got := codegen.Describe(observedTool(t, `{"n":"a"}`, 5), codegen.Python).Text; strings.Contains(got, "Formats") {
		t.Error(got)
	}
}

// TestObservedChangesNoDigest: what was observed is no part of a definition.
func TestObservedChangesNoDigest(t *testing.T) {
	tl := observedTool(t, `{"a":1}`, 5)
	plain := tl
	plain.Observed = nil
	if tl.Digest() != plain.Digest() {
		t.Error("the digest depends on what was observed")
	}
}
