package codegen_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

func TestHints(t *testing.T) {
	meet := tool.Tool{ID: tool.ID{Upstream: "cal", Name: "meet"}, Input: json.RawMessage(`{"type":"object","required":["at"],"properties":{
		"title":{"type":"string","description":"What it is about."},"minutes":{"type":"integer","description":"How long it lasts. In minutes, e.g. 30.","minimum":0},
		"at":{"type":"string","format":"date-time"},"page":{"type":"integer","minimum":1},"of":{"type":"string","description":"Only used if by is given. Must be an address."}}}`)}
	want := []string{"at: date-time", "minutes: In minutes, e.g. 30", "of: Must be an address"}
	if diff := cmp.Diff(want, codegen.Usual(nil).Hints(meet, codegen.Python, 200)); diff != "" {
		t.Error(diff)
	}
	if got := codegen.Usual(nil).Hints(meet, codegen.TypeScript, 20); len(got) != 1 {
		t.Errorf("in 20 bytes: %q", got)
	}
}

// TestWholeNumbersAndSiblings checks that signatures show counts and ports as int, and texts the names of other tools as programs write them.
func TestWholeNumbersAndSiblings(t *testing.T) {
	scan := tool.Tool{ID: tool.ID{Upstream: "net", Name: "scan"}, Description: "Scans hosts of list-hosts, not of list-hosts-v2.", Siblings: map[string]string{"list-hosts": "list_hosts"},
		Input: json.RawMessage(`{"type":"object","properties":{"listen":{"type":"number","minimum":1,"maximum":65535},"maxCount":{"type":"number"},"issue_number":{"type":"number"},
		"width":{"type":"number","minimum":1,"maximum":100,"default":30},"ratio":{"type":"number","minimum":0,"maximum":1},"volume":{"type":"number","minimum":0,"maximum":100},
		"host":{"type":"string","description":"One of list-hosts."}}}`)}
	const want = "net.scan(*, listen: int = ..., maxCount: int = ..., issue_number: int = ..., width: int = 30, ratio: float = ..., volume: float = ..., host: str = ...) -> Any"
	if got := codegen.Usual(nil).Signature(scan, codegen.Python); got != want {
		t.Errorf("signature %s", got)
	}
	text := codegen.Describe(scan, codegen.Python).Text
	for _, want := range []string{"Scans hosts of list_hosts, not of list-hosts-v2.", "host: One of list_hosts."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestShortened checks that a signature with a nested type that is not written out says how to see it, at any length and in both languages.
func TestShortened(t *testing.T) {
	var members []string
	for i := range 30 {
		members = append(members, fmt.Sprintf(`"a_member_with_a_long_name_%d":{"type":"string"}`, i))
	}
	object := `{"type":"object","properties":{` + strings.Join(members, ",") + `}}`
	list := tool.Tool{ID: tool.ID{Upstream: "up", Name: "list"}, Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":` + object + `}}}`)}
	small := tool.Tool{ID: list.ID, Input: json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`), Output: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"string"}}}`)}
	for lang, mark := range map[codegen.Language]string{codegen.Python: "  # ", codegen.TypeScript: "  // "} {
		for _, got := range []string{codegen.Usual(nil).Signature(list, lang), codegen.Usual(nil).Brief(list, lang)} {
			if !strings.Contains(got, "{...}") || !strings.HasSuffix(got, mark+`shortened: query "detail:full list"`) {
				t.Errorf("shortened: %s", got)
			}
		}
		if got := codegen.Usual(nil).Brief(small, lang); strings.Contains(got, "shortened") {
			t.Errorf("whole: %s", got)
		}
	}
}

func TestExample(t *testing.T) {
	for schema, want := range map[string][2]string{
		`{"properties":{"a":{"type":"string"}},"required":["a"]}`:                                         {},
		`{"properties":{"a":{"type":"string","default":"x"}}}`:                                            {},
		`{"properties":{"a":{"examples":["x"]},"b":{"type":"string"}},"required":["b"]}`:                  {},
		`{"properties":{"a":{"examples":["x"]},"b":{"enum":["y","z"]}},"required":["b"]}`:                 {`f(b="y", a="x")`, `await f({b: "y", a: "x"})`},
		`{"examples":[{"a":{"k":[1,true,null]}}],"properties":{"a":{"type":"object"}}}`:                   {`f(a={"k": [1, True, None]})`, `await f({a: {"k": [1, true, null]}})`},
		`{"properties":{"a":{"examples":["\"); import os #"]}}}`:                                          {`f(a="\"); import os #")`, `await f({a: "\"); import os #"})`},
		`{"properties":{"a":{"examples":["` + strings.Repeat("x", 400) + `"]}}}`:                          {},
		`{"properties":{"a":{"examples":[` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `]}}}`: {},
	} {
		f := tool.Tool{ID: tool.ID{Upstream: "up", Name: "f"}, Input: json.RawMessage(schema)}
		if got := [2]string{codegen.Example(f, codegen.Python), codegen.Example(f, codegen.TypeScript)}; got != want {
			t.Errorf("%.80s: %q, want %q", schema, got, want)
		}
	}
}
