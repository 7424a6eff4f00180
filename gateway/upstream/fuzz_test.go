package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"

	"sallyport/gateway/upstream/budget"
	"sallyport/gateway/upstream/jsontext"
	"sallyport/gateway/upstream/process"
	"sallyport/internal/tool"
)

func FuzzFramer(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", `{"jsonrpc":"2.0","method":""}` + "\n", "junk\n\n" + `[{"jsonrpc":"2.0","method":"x"},7]`,
		`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}}` + "\r\n", "{\x00}\n", strings.Repeat("{", 300),
		`{"jsonrpc":"2.0","id":null,"result":1}`, `{"jsonrpc":"2.0","id":1e400,"method":"m"}`, strings.Repeat("x", 300) + "\n{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 200
		frames := &framer{buffer: budget.Buffer{Budget: budget.New(0)}, in: bufio.NewReaderSize(bytes.NewReader(data), 16), max: limit, junk: func(line []byte) {
			if len(bytes.TrimSpace(line)) == 0 {
				t.Error("an empty line is junk")
			}
		}}
		for {
			msgs, err := frames.next()
			if err != nil {
				return
			}
			if len(msgs) == 0 || frames.buffer.Size > limit {
				t.Fatalf("%d messages, %d bytes kept", len(msgs), frames.buffer.Size)
			}
			for _, msg := range msgs {
				again, err := jsonrpc.EncodeMessage(msg)
				if err != nil || parseMessage(again) == nil {
					t.Fatalf("message does not survive: %s %v", again, err)
				}
			}
		}
	})
}

// What is a message to encoding/json is one to the scan, with the same parts.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1000001,"result":{"a":[NaN,-Infinity,"NaN"]}}`, `{"jsonrpc":"2.0","id":1000001,"result":{,}`,
		`Server started {"jsonrpc":"2.0","id":1000001,"result":{}} done`, `{"level":1}{"id":1000001,"result":{"x":"\"}"}`, `{"\u0069d":7,"jsonrpc":"2.0","method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, `{"jsonrpc":"2.0","error":{"code":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, answer := range recoverResponses(data) {
			if _, ok := answer.(*jsonrpc.Response); !ok {
				t.Errorf("rescued %T", answer)
			}
		}
		mended, changed := replaceNonFinite(data)
		if changed && json.Valid(data) || !changed && !bytes.Equal(mended, data) {
			t.Errorf("made %q of %q", mended, data)
		}
		var env envelope
		var want map[string]json.RawMessage
		if size := env.scan(data); size > len(data) || json.Unmarshal(data, &want) != nil || want == nil {
			return
		}
		for key, got := range map[string]json.RawMessage{"jsonrpc": env.Version, "id": env.ID, "method": env.Method, "params": env.Params, "result": env.Result, "error": env.Error} {
			if !bytes.Equal(got, want[key]) {
				t.Errorf("%s of %s: %s, want %s", key, data, got, want[key])
			}
		}
	})
}

func FuzzPrune(f *testing.F) {
	nested := func(n int) string {
		return strings.Repeat(`{"a":[`, n) + `"]}\\\""` + strings.Repeat(`]}`, n)
	}
	for _, seed := range []string{`[` + nested(500) + `,1,` + nested(501) + `,"x"]`, nested(500), nested(501), nested(6000), strings.Repeat("[", 3000), strings.Repeat("]", 3000), `"` + strings.Repeat("[", 3000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, deep := jsontext.Prune(data)
		if !deep && !bytes.Equal(out, data) {
			t.Fatal("changed without need")
		}
		if !json.Valid(data) { // which says so too of what is nested 10,000 levels deep
			return
		}
		if _, again := jsontext.Prune(out); !json.Valid(out) || again || deep != bytes.Contains(out, []byte(jsontext.Pruned)) {
			t.Fatalf("pruned %v, %.200q", deep, out)
		}
	})
}

func FuzzParseTool(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`))
	f.Add([]byte(`{"name":"a","inputSchema":[],"outputSchema":7,"title":{},"annotations":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // a page was parsed before
		}
		got, err := parseTool(data)
		if err != nil {
			return
		}
		if got.Wire == "" || !isObject(got.Input) || got.Output != nil && !isObject(got.Output) {
			t.Errorf("%s became %+v", data, got)
		}
	})
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"aGk"}],"structuredContent":null}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"blob":""}},[],null],"isError":1,"resultType":"input_required"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseResult(data)
		if err != nil {
			return
		}
		value, err := json.Marshal(got.Value())
		if err != nil || !json.Valid(value) {
			t.Errorf("%s has no value: %v", data, err)
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add("id: 1\ndata: {\"jsonrpc\":\ndata: \"2.0\"}\n\n: comment\ndata\r\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		const most = 1000
		err := readEvents(strings.NewReader(stream), most, budget.Buffer{Budget: budget.New(0)}, func(e event) {
			if strings.ContainsAny(e.id+e.name, "\n") || len(e.data) > most {
				t.Errorf("event %q %q %q", e.name, e.id, e.data)
			}
		})
		if err != nil && !isTooLarge(err) {
			t.Errorf("a string has no end but its own: %v", err)
		}
	})
}

func FuzzVeil(f *testing.F) {
	f.Add("token secret-one and secret-one-longer\x1b[2J")
	f.Add("secret-\u200bone, pass-\x00word")
	v := newRedactor(Settings{
		Env: map[string]string{"A": "secret-one", "B": "short", "C": "secret-one-longer"}, URL: "http://u:pass-word@h/?k=key-in-url",
		Headers: map[string]string{"Authorization": "Bearer token-in-header"},
	}, nil)
	f.Fuzz(func(t *testing.T, s string) {
		got := v.line(s, 100)
		for _, secret := range []string{"secret-one", "pass-word", "key-in-url", "token-in-header"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q shows %q", got, secret)
			}
		}
	})
}

func TestLastWords(t *testing.T) {
	tests := map[string]string{
		"": "", "one\ntwo\n": "two",
		"node:internal\n  throw err;\n\nError: Cannot find module 'x'\n    at error.js\n\nNode.js v20\n": "Error: Cannot find module 'x'",
		"Traceback:\n  File x\nValueError: bad\n":                                                        "ValueError: bad",
	}
	for text, want := range tests {
		r := &process.Ring{}
		r.Fill(strings.NewReader(strings.Repeat("padding\n", 5000) + text))
		if text == "" {
			want = "padding"
		}
		if got := r.Headline(); got != want {
			t.Errorf("of %q: %q, want %q", text, got, want)
		}
		if len(r.Tail()) > process.StderrKept {
			t.Errorf("%d bytes kept", len(r.Tail()))
		}
	}
}

// Two wire names may be made so that one is the identifier of the other.
func TestIdentifiersStayUnique(t *testing.T) {
	forged := tool.Identifiers([]string{"a-b", "a_b"})[0]
	l := &link{wire: &wire{redactor: newRedactor(Settings{}, nil)}, log: Options{}.withDefaults().Logger}
	var found []tool.Tool
	for _, name := range []string{"a-b", "a_b", forged} {
		found = append(found, tool.Tool{Wire: name})
	}
	seen := map[tool.ID]bool{}
	for _, t2 := range l.nameTools(found) {
		if seen[t2.ID] {
			t.Errorf("%s is there twice", t2.ID)
		}
		seen[t2.ID] = true
	}
	if len(seen) < 2 {
		t.Errorf("tools are %v", seen)
	}
}

func FuzzTap(f *testing.F) {
	f.Add("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
	f.Add("data\r\n\r\n: c\n\ndata: {}")
	f.Fuzz(func(t *testing.T, stream string) {
		const limit = 1000
		w := &wire{redactor: newRedactor(Settings{}, nil), toSDK: make(chan jsonrpc.Message, 2000), dead: make(chan struct{}), changed: func(parts) {}, notice: func(string, json.RawMessage) {}, budget: rate.NewLimiter(0, 0)}
		body := &eventBody{httpCall: &httpCall{wire: w}, Closer: io.NopCloser(nil), in: bufio.NewReaderSize(strings.NewReader(stream), 16), limit: limit, event: budget.Buffer{Budget: budget.New(0)}}
		got, err := io.ReadAll(body)
		if len(got) > len(stream)+500*strings.Count(stream, "data") || err != nil { // an answer that cannot be read becomes an error
			t.Fatalf("%d bytes of %d, %v", len(got), len(stream), err)
		}
		again, _ := io.ReadAll(&eventBody{httpCall: &httpCall{wire: w}, Closer: io.NopCloser(nil), in: bufio.NewReader(bytes.NewReader(got)), limit: limit, event: budget.Buffer{Budget: budget.New(0)}})
		if !body.passThrough && string(again) != string(got) {
			t.Errorf("a second tap takes more: %q of %q", again, got)
		}
	})
}
