package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

func text(s string) tool.Content { return tool.Content{Type: "text", Text: s} }

// TestResultsByteForByte is what guests are written against.
func TestResultsByteForByte(t *testing.T) {
	image := tool.Content{Type: "image", Data: []byte{0, 1, 254, 255}, MIME: "image/png"}
	for _, test := range []struct {
		name   string
		result tool.Result
		value  string
	}{
		{"structured", tool.Result{Structured: []byte(`{"a": [1, 2.50, null]}`)}, `{"json":{"a": [1, 2.50, null]}}`},
		{"big integers and odd numbers", tool.Result{Structured: []byte(`[9007199254740993,12345678901234567890123,1e400,-0.0]`)}, `{"json":[9007199254740993,12345678901234567890123,1e400,-0.0]}`},
		{"HTML and separators", tool.Result{Structured: []byte(`"<a href='x'>&\u0026\u2028` + "\u2028" + `"`)}, `{"json":"<a href='x'>&\u0026\u2028` + "\u2028" + `"}`},
		{"lone surrogates stay escaped", tool.Result{Structured: []byte(`"\ud800"`)}, `{"json":"\ud800"}`},
		{"order and duplicates stay", tool.Result{Structured: []byte(`{"b":1,"a":2,"b":3}`)}, `{"json":{"b":1,"a":2,"b":3}}`},
		{"white space around", tool.Result{Structured: []byte(" \n[1]\n")}, "{\"json\": \n[1]\n}"},
		{"text", tool.Result{Content: []tool.Content{text(`a "b" <c> & d` + "\n\x00\x1b")}}, `{"json":"a \"b\" <c> & d\n\u0000\u001b"}`},
		{"text that is JSON", tool.Result{Content: []tool.Content{text(` {"n": 1}`)}}, `{"json":{"n": 1}}`},
		{"text that is a number", tool.Result{Content: []tool.Content{text("007")}}, `{"json":"007"}`},
		{"nothing", tool.Result{}, `{"json":null}`},
		{"null", tool.Result{Structured: []byte("null")}, `{"json":null}`},
		{"blob", tool.Result{Content: []tool.Content{image}}, `{"blob":{"data":"AAH+/w==","mime":"image/png"}}`},
		{"empty blob", tool.Result{Content: []tool.Content{{Data: []byte{}}}}, `{"blob":{"data":"","mime":""}}`},
		{
			"blob with a hostile name",
			tool.Result{Content: []tool.Content{{Data: []byte("x"), MIME: `"},"json":"`, URI: "file:///\"", Name: "<\xff>"}}},
			`{"blob":{"data":"eA==","mime":"\"},\"json\":\"","uri":"file:///\"","name":"<\ufffd>"}}`,
		},
		{"parts", tool.Result{Content: []tool.Content{text("a"), image, text("[1]")}}, `{"parts":[{"json":"a"},{"blob":{"data":"AAH+/w==","mime":"image/png"}},{"json":[1]}]}`},
		{"JSON that looks like a blob", tool.Result{Structured: []byte(`{"blob":{"data":"eA=="}}`)}, `{"json":{"blob":{"data":"eA=="}}}`},
		{"text that is not UTF-8", tool.Result{Structured: []byte("[\"a\xffb\"]")}, "{\"json\":[\"a\uFFFDb\"]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) { return test.result, nil }), bridge.Limits{})
			g := connect(t, h)
			got, want := g.ask(`{"type":"call","id":-3,"tool":"a.b"}`), `{"type":"result","id":-3,"value":`+test.value+"}"
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !json.Valid([]byte(got)) {
				t.Error("the frame is not JSON")
			}
		})
	}
}

// TestResultsThatAreNoJSON must not end the frame that they are put into.
func TestResultsThatAreNoJSON(t *testing.T) {
	for _, raw := range []string{"nope", `1}}`, `1}},{"type":"run"`, `"`, `{"a":1`, "[1]\x00", "\xff", strings.Repeat("[", 20000) + strings.Repeat("]", 20000)} {
		for name, result := range map[string]tool.Result{
			"structured": {Structured: []byte(raw)},
			"a part":     {Content: []tool.Content{text("x"), {Type: "odd", Raw: []byte(raw)}}},
		} {
			t.Run(fmt.Sprintf("%s %.20q", name, raw), func(t *testing.T) {
				h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) { return result, nil }), bridge.Limits{})
				want := `{"type":"error","id":1,"error":{"kind":"upstream","message":"the upstream's result is not JSON"}}`
				if got := connect(t, h).ask(`{"type":"call","id":1,"tool":"a.b"}`); got != want {
					t.Errorf("got  %.200s\nwant %s", got, want)
				}
			})
		}
	}
}

func TestLargeResult(t *testing.T) {
	large := `"` + strings.Repeat("é<", 10<<20/3) + `"`
	data := bytes.Repeat([]byte{1, 2, 3}, 3<<20)
	h := open(t, callerFunc(func(_ context.Context, call tool.Call) (tool.Result, error) {
		if call.Tool.Name == "blob" {
			return tool.Result{Content: []tool.Content{{Data: data}}}, nil
		}
		return tool.Result{Structured: []byte(large)}, nil
	}), bridge.Limits{})
	g := connect(t, h)
	if got := g.ask(`{"type":"call","id":1,"tool":"a.text"}`); got != `{"type":"result","id":1,"value":{"json":`+large+`}}` {
		t.Errorf("10 MB of text came as %d bytes", len(got))
	}
	var frame struct{ Value tool.Value }
	if err := json.Unmarshal([]byte(g.ask(`{"type":"call","id":1,"tool":"a.blob"}`)), &frame); err != nil || !bytes.Equal(frame.Value.Blob.Data, data) {
		t.Errorf("9 MB of bytes came back different: %v", err)
	}
}

func TestErrors(t *testing.T) {
	failed := tool.Result{IsError: true, Content: []tool.Content{text("no <such> thing"), text("try \"b\"\n")}}
	for _, test := range []struct {
		name   string
		result tool.Result
		err    error
		want   string
	}{
		{"invalid", tool.Result{}, &tool.Error{Kind: tool.Invalid, Message: "no parameter <a>", Hint: "did you mean b & c?"}, `"kind":"invalid","message":"no parameter <a>","hint":"did you mean b & c?"`},
		{"not found", tool.Result{}, fmt.Errorf("look: %w", &tool.Error{Kind: tool.NotFound, Message: "no tool"}), `"kind":"not_found","message":"no tool"`},
		{"denied", tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "m", Err: errors.New("secret")}, `"kind":"denied","message":"m"`},
		{"limit", tool.Result{}, &tool.Error{Kind: tool.Limit, Message: "m"}, `"kind":"limit","message":"m"`},
		{"timeout", tool.Result{}, &tool.Error{Kind: tool.Timeout, Message: "m"}, `"kind":"timeout","message":"m"`},
		{"deadline", tool.Result{}, fmt.Errorf("call: %w", context.DeadlineExceeded), `"kind":"timeout","message":"timed out"`},
		{"canceled", tool.Result{}, context.Canceled, `"kind":"canceled","message":"canceled"`},
		{"upstream", tool.Result{}, &tool.Error{Kind: tool.Upstream, Message: "m\xff\x00"}, `"kind":"upstream","message":"m\ufffd\u0000"`},
		{"internal", tool.Result{}, errors.New("password is 123"), `"kind":"internal","message":"internal error"`},
		{"failed", failed, nil, `"kind":"failed","message":"no <such> thing\ntry \"b\"\n"`},
		{"failed without a word", tool.Result{IsError: true}, nil, `"kind":"failed","message":"the tool reported an error without a message"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) { return test.result, test.err }), bridge.Limits{})
			got, want := connect(t, h).ask(`{"type":"call","id":5,"tool":"a.b"}`), `{"type":"error","id":5,"error":{`+test.want+"}}"
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestDoneIsBounded: the guest is asked to keep to limits, but a program can speak in its place.
func TestDoneIsBounded(t *testing.T) {
	value := func(kind, text string, size int64) bridge.ProgramResult {
		return bridge.ProgramResult{Value: &bridge.Value{Kind: kind, Text: text, Size: size}}
	}
	lines := func(n int) []bridge.Line {
		all := make([]bridge.Line, n)
		for i := range all {
			all[i] = bridge.Line{Line: i + 1, Source: "x"}
		}
		return all
	}
	long, e := strings.Repeat("é", 1<<20), strings.Repeat("é", 1<<15)
	for _, test := range []struct {
		name       string
		sent, want bridge.ProgramResult
	}{
		{"as it is", value("json", `{"a":1}`, 7), value("json", `{"a":1}`, 7)},
		{"text", value("text", "<x>", 3), value("text", "<x>", 3)},
		{"of 100 characters", value("json", `"`+long[:196]+`"`, 198), value("json", `"`+long[:196]+`"`, 198)},
		{"too long", value("json", `"`+long+`"`, 0), value("text", `"`+long[:198], 2<<20+2)},
		{"no JSON", value("json", "{1}", 3), value("text", "{1}", 3)},
		{"another kind", value("html", "x", 3), value("text", "x", 3)},
		{"a size of its own", value("text", "x", -5), value("text", "x", 1)},
		{"exit", bridge.ProgramResult{Exit: 256 + 7}, bridge.ProgramResult{Exit: 7}},
		{"negative exit", bridge.ProgramResult{Exit: -1}, bridge.ProgramResult{Exit: 255}},
		{
			"fault", bridge.ProgramResult{Fault: &bridge.Fault{Type: "T", Message: "m", Hint: "h", Lines: lines(3)}},
			bridge.ProgramResult{Fault: &bridge.Fault{Type: "T", Message: "m", Hint: "h", Lines: lines(3)}},
		},
		{
			"long fault", bridge.ProgramResult{Fault: &bridge.Fault{Type: "x" + e, Message: "x" + e, Hint: e, Lines: append(lines(19), bridge.Line{Function: e, Source: e}, bridge.Line{Line: 9})}},
			bridge.ProgramResult{Fault: &bridge.Fault{Type: "x" + e[:254], Message: "x" + e[:16<<10-2], Hint: e[:2<<10], Lines: append(lines(19), bridge.Line{Function: e[:256], Source: e[:1<<10]})}},
		},
		{"endless fault", bridge.ProgramResult{Fault: &bridge.Fault{Lines: lines(100000)}}, bridge.ProgramResult{Fault: &bridge.Fault{Type: "Error", Message: "(the description of the fault is too long)"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{})
			frame, err := json.Marshal(struct {
				Type string `json:"type"`
				bridge.ProgramResult
			}{"done", test.sent})
			if err != nil {
				t.Fatal(err)
			}
			connect(t, h).write(string(frame))
			got, err := h.wait(t)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%.2000s", err, diff)
			}
		})
	}
}
