package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// TestExecutionText is what a model reads of every way that a program can end.
func TestExecutionText(t *testing.T) {
	out := func(s string) sandbox.Output { return sandbox.Output{Text: s} }
	value := func(kind, s string) *bridge.Value { return &bridge.Value{Kind: kind, Text: s, Size: int64(len(s))} }
	fault := &bridge.Fault{Type: "ToolError", Message: "wrong arguments: path: got number", Hint: "parameters: depth, path", Lines: []bridge.Line{
		{Line: 7, Source: "main()"}, {Line: 3, Function: "main", Source: "read(path=7)"},
	}}
	many := &bridge.Fault{Type: "RecursionError", Message: "too deep"}
	for i := range 30 {
		many.Lines = append(many.Lines, bridge.Line{Line: i + 1, Function: "f"})
	}
	evil := &bridge.Fault{
		Type: "Err\x1b[31m\nor", Message: "one\r\ntwo\u202e\U000e0041" + strings.Repeat("x", 5000), Hint: "do\nthis\x07",
		Lines: []bridge.Line{{Line: -1, Function: "f\n\x00" + strings.Repeat("g", 100), Source: strings.Repeat("s", 300) + "\x1b"}},
	}
	var all strings.Builder
	for _, test := range []struct {
		name    string
		outcome sandbox.Outcome
	}{
		{"nothing at all", sandbox.Outcome{Status: sandbox.OK}},
		{"output", sandbox.Outcome{Status: sandbox.OK, Stdout: out("  one\n\ttwo\n\n")}},
		{"output with escapes", sandbox.Outcome{Status: sandbox.OK, Stdout: out("10%\r20%\r\n\x1b[31mred\x1b[0m\u202e\u200b\U000e0041 naïve 日本 👨\u200d👩\n")}},
		{"output that was cut", sandbox.Outcome{Status: sandbox.OK, Stdout: sandbox.Output{Text: "a\n[... 7 bytes cut ...]\nz", Cut: 7}}},
		{"a JSON value", sandbox.Outcome{Status: sandbox.OK, Value: value("json", `{"a":[1,2]}`)}},
		{"a string as value", sandbox.Outcome{Status: sandbox.OK, Value: value("json", `"two\nlines \u001b[31m"`)}},
		{"an empty string as value", sandbox.Outcome{Status: sandbox.OK, Value: value("json", `""`)}},
		{"a described value", sandbox.Outcome{Status: sandbox.OK, Value: value("text", "<Blob image/png, 8 bytes>")}},
		{"what is called JSON and is none", sandbox.Outcome{Status: sandbox.OK, Value: value("json", `"oops`)}},
		{"a value that was cut", sandbox.Outcome{Status: sandbox.OK, Value: &bridge.Value{Kind: "text", Text: "[1,2", Size: 1004}}},
		{"output and value", sandbox.Outcome{Status: sandbox.OK, Stdout: out("one\n"), Value: value("json", "7")}},
		{"output, value and warnings", sandbox.Outcome{Status: sandbox.OK, Stdout: out("one\n"), Value: value("json", "7"), Stderr: out("careful\n")}},
		{"warnings and value", sandbox.Outcome{Status: sandbox.OK, Value: value("json", "7"), Stderr: out("careful\n")}},
		{"a fault", sandbox.Outcome{Status: sandbox.Failed, Stdout: out("before\n"), Fault: fault}},
		{"a fault without words", sandbox.Outcome{Status: sandbox.Failed}},
		{"a fault with many lines", sandbox.Outcome{Status: sandbox.Failed, Fault: many}},
		{"a hostile fault", sandbox.Outcome{Status: sandbox.Failed, Fault: evil}},
		{"an exit", sandbox.Outcome{Status: sandbox.Exited, Exit: 3, Stderr: out("usage\n")}},
		{"too slow", sandbox.Outcome{Status: sandbox.TimedOut, Stdout: out("step 1\n")}},
		{"too busy", sandbox.Outcome{Status: sandbox.OutOfCPU, Stdout: out("step 1\n")}},
		{"too large", sandbox.Outcome{Status: sandbox.OutOfMemory}},
		{"too loud", sandbox.Outcome{Status: sandbox.Flooded, Stdout: sandbox.Output{Text: "y\n[... 9 bytes cut ...]\ny", Cut: 9}}},
		{"canceled", sandbox.Outcome{Status: sandbox.Canceled}},
		{"killed", sandbox.Outcome{Status: sandbox.Crashed, Exit: 139}},
		{"vanished", sandbox.Outcome{Status: sandbox.Crashed}},
	} {
		e := execution.Result{ID: "e-1", Language: "python", Outcome: test.outcome, Limits: sandbox.DefaultLimits()}
		e.Limits.Timeout = 2500 * time.Millisecond
		fmt.Fprintf(&all, "## %s\n%s\n\n", test.name, e.Text())
		checkClean(t, e.Text(), 6000)
		if e.Failed() != (test.outcome.Status != sandbox.OK) {
			t.Errorf("%s: failed is %v", test.name, e.Failed())
		}
	}
	golden.Check(t, "testdata/execution.txt", all.String())
}

// TestFoundText is about what no real server shows in search.txt.
func TestFoundText(t *testing.T) {
	id := func(s string) tool.ID {
		parsed, err := tool.ParseID(s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	mixed := []toolsearch.FoundTool{
		{ID: id("mem.s"), Import: "from servers.mem import s", Text: "mem.s() -> Any", Summary: "Sum"},
		{ID: id("mem.mem"), Import: "from servers.mem import mem", Text: "mem.mem() -> Any", Destructive: true},
		{ID: id("other.x"), Import: "from servers.other import x", Text: "other.x() -> Any"},
		{ID: id("mem.t"), Import: "from servers.mem import t", Text: "mem.t() -> Any"},
	}
	var all strings.Builder
	for _, test := range []struct {
		name  string
		found toolsearch.Found
	}{
		{"tools of two upstreams in turn", toolsearch.Found{Tools: mixed, Total: 9, Detail: toolsearch.Signature, Language: "python"}},
		{"no summary", toolsearch.Found{Tools: mixed[1:2], Total: 1, Detail: toolsearch.Summary, Language: "python"}},
		{"an import of a short name", toolsearch.Found{Tools: []toolsearch.FoundTool{{ID: id("f.f"), Import: `import { f } from "servers/f"`, Text: "f.f(): Promise<any>"}}, Total: 1, Detail: toolsearch.Signature, Language: "typescript"}},
		{"weak", toolsearch.Found{Tools: mixed[:1], Total: 90, Weak: true, Detail: toolsearch.Names, Suggest: []string{"sum", "some"}}},
		{"nothing, and words like it", toolsearch.Found{Detail: toolsearch.Signature, Suggest: []string{"a", "b", "c", "d", "e", "f"}}},
		{"an upstream's tools, not all", toolsearch.Found{Tools: mixed[:1], Total: 90, Listing: true, Upstream: "mem", Detail: toolsearch.Names}},
		{"an upstream without tools", toolsearch.Found{Listing: true, Upstream: "mem"}},
		{"no upstream at all", toolsearch.Found{Listing: true}},
		{"no upstream that works", toolsearch.Found{Listing: true, Upstreams: []toolsearch.FoundUpstream{{ID: "mem", Description: "Memory", Problem: "still connecting"}}}},
		{"a bad edit of the settings", toolsearch.Found{Listing: true, Problem: "/etc/upstreams.yaml:2:9: unknown key \"ulr\"", Upstreams: []toolsearch.FoundUpstream{{ID: "mem", Tools: 2}}}},
		{"a long reason", toolsearch.Found{Tools: mixed[:1], Total: 1, Detail: toolsearch.Names, Upstreams: []toolsearch.FoundUpstream{
			{ID: "gone", Problem: strings.Repeat("why ", 50)}, {ID: "mem", Tools: 2, Problem: "exited"},
		}}},
	} {
		fmt.Fprintf(&all, "## %s\n%s\n\n", test.name, test.found.Text())
	}
	golden.Check(t, "testdata/found.txt", all.String())
}
