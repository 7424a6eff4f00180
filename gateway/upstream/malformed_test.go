package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/tool"
)

const fine = `{"content":[],"structuredContent":{"a":1}}`

// malformedAnswers are answers as servers write them that are wrong in some way.
var malformedAnswers = []struct {
	name, line string
	says       string // in the error; "" where the answer is read all the same
	want       string // the structured result
	body       bool
	stdio      bool // over stdio only
}{
	{name: "NaN", line: `{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN"}}}`,
		want: `{"a":null,"b":[null,null],"c":"NaN"}`},
	{name: "not UTF-8", line: "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[],\"structuredContent\":{\"a\":\"\xff\"}}}", want: "{\"a\":\"\xff\"}"},
	{name: "half a surrogate pair", line: `{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":"\ud800"}}}`, want: `{"a":"\ud800"}`},
	{name: "id as a string", line: `{"jsonrpc":"2.0","id":"ID","result":` + fine + `}`, want: `{"a":1}`},
	{name: "trailing comma", line: `{"jsonrpc":"2.0","id":ID,"result":{"content":[],}}`, says: "invalid JSON: invalid character '}'"},
	{name: "cut off", line: `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"te`, says: "unexpected end of JSON input"},
	{name: "Python's repr", line: `{"jsonrpc":"2.0","id":ID,"result":{'content':[]}}`, says: `invalid JSON: invalid character '\''`},
	{name: "wrong version", line: `{"jsonrpc":"1.0","id":ID,"result":` + fine + `}`, says: `its "jsonrpc" is not "2.0"`},
	{name: "no version", line: `{"id":ID,"result":` + fine + `}`, says: `its "jsonrpc" is not "2.0"`},
	{name: "nothing in it", line: `{"jsonrpc":"2.0","id":ID}`, says: `it has neither "result" nor "error"`},
	{name: "result twice", line: `{"jsonrpc":"2.0","id":ID,"result":{},"result":` + fine + `}`, want: `{"a":1}`},
	{name: "odd id", line: `{"jsonrpc":"2.0","id":[ID],"result":` + fine + `}`, says: "not a JSON-RPC message", body: true},
	{name: "no id", line: `{"jsonrpc":"2.0","result":{"content":[}}`, says: "not a JSON-RPC message", body: true},
	{name: "error without an id", line: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot parse that"}}`, says: "cannot parse that"},
	{name: "result is a text", line: `{"jsonrpc":"2.0","id":ID,"result":"done"}`, says: "not a JSON object"},
	{name: "behind a progress bar", line: "loading 100%|####| 5/5\r" + `Server started {"jsonrpc":"2.0","id":ID,"result":` + fine + `}`, want: `{"a":1}`, stdio: true},
	{name: "far behind text", line: strings.Repeat("#", 200) + `{"result":{"content":[],"structuredContent":{"a":"` + strings.Repeat("x", 100_000) + `"}},"jsonrpc":"2.0","id":ID}`,
		want: `{"a":"` + strings.Repeat("x", 100_000) + `"}`, stdio: true},
	{name: "before text", line: `{"jsonrpc":"2.0","id":ID,"result":` + fine + `} done.`, want: `{"a":1}`, stdio: true},
	{name: "behind a log line", line: `{"level":"info","id":7}{"jsonrpc":"2.0","id":ID,"result":` + fine + `}`, want: `{"a":1}`, stdio: true},
	{name: "cut off behind text", line: `listening {"jsonrpc":"2.0","id":ID,"result":{"content":[`, says: "unexpected end of JSON input", stdio: true},
	{name: "byte order mark", line: "\ufeff" + `{"jsonrpc":"2.0","id":ID,"result":` + fine + `}`, want: `{"a":1}`, stdio: true},
}

// An answer that is wrong ends its call at once, and no other.
func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	web, old := malformedSite(t, "application/json"), malformedSite(t, "text/event-stream")
	for transport, cfg := range map[string]upstream.Settings{"stdio": settings(t, "good"), "json": web, "events": old} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			cfg.Timeout = 20 * time.Second
			s := open(t, cfg, nil)
			call(t, s, "echo", "{}")
			for _, test := range malformedAnswers {
				if test.stdio && transport != "stdio" || test.body && transport != "json" {
					continue
				}
				begin := time.Now()
				args, _ := json.Marshal(map[string][]byte{"line": []byte(test.line)})
				result, err := callContext(t.Context(), s, "echo", string(args))
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("%s: took %v", test.name, took)
				}
				if test.says != "" && err == nil {
					t.Errorf("%s: result %s", test.name, result.Raw)
				} else if test.says != "" {
					if e := tool.AsError(err); e.Retryable || !strings.Contains(e.Error(), test.says) {
						t.Errorf("%s: %v", test.name, e)
					}
				} else if err != nil || string(result.Structured) != test.want {
					t.Errorf("%s: %.200s %v", test.name, result.Structured, err)
				}
				call(t, s, "echo", "{}")
			}
		})
	}
}

// malformedSite answers calls as their arguments say, over HTTP.
func malformedSite(t *testing.T, contentType string) upstream.Settings {
	t.Helper()
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, _ *http.Request, body string) bool {
		var req request
		_ = json.Unmarshal([]byte(body), &req)
		answer := rawAnswer(req)
		if answer == "" {
			return false
		}
		w.Header().Set("Content-Type", contentType)
		if contentType == "text/event-stream" {
			answer = "data: " + answer + "\n\n"
		}
		fmt.Fprint(w, answer)
		return true
	})
	return web.settings()
}
