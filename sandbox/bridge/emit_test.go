package bridge_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

const emptyResult = `{"type":"result","id":5,"value":{"json":null}}`

func emitFrame(content string) string { return `{"type":"emit","id":5,"content":` + content + `}` }

// TestEmit hands over one thing of each type, and what a program may leave out or get wrong.
func TestEmit(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          tool.Content
	}{
		{"text", `{"type":"text","text":"hi"}`, tool.Content{Type: "text", Text: "hi", MIME: "text/plain"}},
		{"table", `{"type":"text","text":"|a|","mimeType":"Text/Markdown","name":"t"}`, tool.Content{Type: "text", Text: "|a|", MIME: "text/markdown", Name: "t"}},
		{"image", `{"type":"image","data":"AAH+/w==","mimeType":"image/svg+xml","name":"plot.svg"}`, tool.Content{Type: "image", Data: []byte{0, 1, 254, 255}, MIME: "image/svg+xml", Name: "plot.svg"}},
		{"audio", `{"type":"audio","data":"AA==","mimeType":"audio/wav"}`, tool.Content{Type: "audio", Data: []byte{0}, MIME: "audio/wav"}},
		{"bytes", `{"type":"resource","data":"AA=="}`, tool.Content{Type: "resource", Data: []byte{0}, MIME: "application/octet-stream"}},
		{"file", `{"type":"resource","text":"a,b\r\n","mimeType":"text/csv; charset=utf-8","name":"/workspace/a b.csv","uri":"file:///workspace/a%20b.csv"}`,
			tool.Content{Type: "resource", Text: "a,b\r\n", MIME: "text/csv; charset=utf-8", Name: "a b.csv", URI: "file:///workspace/a%20b.csv"}},
		{"empty file", `{"type":"resource","name":"empty"}`, tool.Content{Type: "resource", MIME: "text/plain", Name: "empty"}},
		{"a name that climbs", `{"type":"text","text":"x","name":"../../etc/passwd"}`, tool.Content{Type: "text", Text: "x", MIME: "text/plain", Name: "passwd"}},
		{"a name of Windows", `{"type":"text","text":"x","name":"C:\\a\\b.txt"}`, tool.Content{Type: "text", Text: "x", MIME: "text/plain", Name: "b.txt"}},
		{"a name that is none", `{"type":"text","text":"x","name":"a/.."}`, tool.Content{Type: "text", Text: "x", MIME: "text/plain"}},
		{"a name with an escape", `{"type":"text","text":"x","name":"a\u001b[31m\u202e\nb\u0000"}`, tool.Content{Type: "text", Text: "x", MIME: "text/plain", Name: "a b"}},
		{"members of tomorrow", `{"type":"text","text":"x","annotations":{"audience":["user"]}}`, tool.Content{Type: "text", Text: "x", MIME: "text/plain"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{})
			g := connect(t, h)
			if got := g.ask(emitFrame(test.content)); got != emptyResult {
				t.Fatalf("got %s", got)
			}
			report := h.end(t, g)
			if diff := cmp.Diff([]tool.Content{test.want}, report.Emitted); diff != "" || report.Calls != 0 {
				t.Errorf("%d calls; emitted (-want +got):\n%s", report.Calls, diff)
			}
		})
	}
}

// TestEmitRefused: what cannot be shown is an error of the program's, of which nothing is kept.
func TestEmitRefused(t *testing.T) {
	for content, want := range map[string]string{
		`null`: `type "" cannot be emitted`, `[]`: "must be an object", `"text"`: "must be an object", `{"type":5}`: "must be an object", `{}`: `type "" cannot be emitted`,
		`{"type":"resource_link","text":"x"}`:                                        `type "resource_link" cannot be emitted`,
		`{"type":"text"}`:                                                            "a text has text",
		`{"type":"text","text":"x","data":"AA=="}`:                                   "a text has text",
		`{"type":"image","mimeType":"image/png"}`:                                    "an image has data",
		`{"type":"image","mimeType":"image/png","data":"AA==","text":"x"}`:           "an image has data",
		`{"type":"image","data":"AA=="}`:                                             `invalid MIME type ""`,
		`{"type":"image","data":"AA==","mimeType":"text/html"}`:                      "text/html is not an image type",
		`{"type":"audio","data":"AA==","mimeType":"image/png"}`:                      "image/png is not an audio type",
		`{"type":"text","text":"x","mimeType":"text/plain\r\nX: y"}`:                 "invalid MIME type",
		`{"type":"text","text":"x","mimeType":"text"}`:                               "invalid MIME type",
		`{"type":"text","text":"x","mimeType":"text/plain; q=\"<\""}`:                "invalid MIME type",
		`{"type":"resource","data":"AA==","text":"x"}`:                               "either text or data",
		`{"type":"resource","data":"AA"}`:                                            "not base64",
		`{"type":"resource","data":"AB=="}`:                                          "not base64",
		`{"type":"resource","data":"A\nA=="}`:                                        "not base64",
		`{"type":"resource","data":"_-8="}`:                                          "not base64",
		`{"type":"resource","text":"x","uri":"/etc/passwd"}`:                         "invalid URI",
		`{"type":"resource","text":"x","uri":"file:///a b"}`:                         "invalid URI",
		`{"type":"resource","text":"x","uri":"file:///\u202e"}`:                      "invalid URI",
		`{"type":"resource","text":"x","uri":"JavaScript:alert(1)"}`:                 "scheme javascript",
		`{"type":"resource","text":"x","uri":"data:text/html,x"}`:                    "scheme data",
		`{"type":"resource","text":"x","uri":"a:` + strings.Repeat("b", 2048) + `"}`: "invalid URI",
	} {
		t.Run(content[:min(len(content), 60)], func(t *testing.T) {
			h := open(t, answer("1"), bridge.Limits{})
			g := connect(t, h)
			got := g.ask(emitFrame(content))
			emitted := h.end(t, g).Emitted
			if e := failureOf(t, got); e.Kind != tool.Invalid || !strings.Contains(e.Message, want) || len(emitted) != 0 {
				t.Errorf("got %s, emitted %v", got, emitted)
			}
		})
	}
}

func failureOf(t *testing.T, frame string) tool.Error {
	t.Helper()
	var got struct {
		Type  string
		ID    int64
		Error tool.Error
	}
	if err := json.Unmarshal([]byte(frame), &got); err != nil || got.Type != "error" || got.ID != 5 {
		t.Fatalf("%.200s is no error: %v", frame, err)
	}
	return got.Error
}

func TestEmitLimits(t *testing.T) {
	limits := bridge.Limits{Emits: 3, Emit: 1000, Emitted: 1500}
	bytes := func(n int) string {
		return emitFrame(fmt.Sprintf(`{"type":"resource","data":%q}`, base64.StdEncoding.EncodeToString(make([]byte, n))))
	}
	h := open(t, answer("1"), limits)
	g := connect(t, h)
	for i, step := range []struct{ frame, want string }{
		{bytes(1001), "that is 1001 bytes; at most 1000 bytes can be emitted at once"},
		{emitFrame(`{"type":"resource","text":"` + strings.Repeat("x", 1001) + `"}`), "at most 1000 bytes can be emitted at once"},
		{bytes(1000), ""},
		{bytes(1000), "1500 bytes in all"},
		{bytes(0), ""},
		{bytes(100), ""},
		{bytes(1), "emitted its 3 items"},
	} {
		got := g.ask(step.frame)
		if step.want == "" && got != emptyResult {
			t.Errorf("%d: got %s", i, got)
		} else if step.want != "" {
			if e := failureOf(t, got); e.Kind != tool.Limit || e.Hint == "" || e.Retryable || !strings.Contains(e.Message, step.want) {
				t.Errorf("%d: got %s, want %s", i, got, step.want)
			}
		}
	}
	if got := h.end(t, g).Emitted; len(got) != 3 || len(got[0].Data) != 1000 || len(got[2].Data) != 100 {
		t.Errorf("emitted %d", len(got))
	}
}

func TestEmitLongText(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	e := failureOf(t, connect(t, h).ask(emitFrame(`{"type":"text","text":"`+strings.Repeat("x", 64<<10+1)+`"}`)))
	if e.Kind != tool.Limit || e.Hint != "emit it as a file" {
		t.Errorf("%+v", e)
	}
}

// TestEmittedIsKept however the program ends, in its order, calls or not.
func TestEmittedIsKept(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	g := connect(t, h)
	for i := range 10 {
		g.write(`{"type":"call","id":1,"tool":"a.b"}`)
		g.write(emitFrame(fmt.Sprintf(`{"type":"text","text":"%d"}`, i)))
	}
	for range 20 {
		g.read()
	}
	_ = g.Close() // it dies
	h.closed(t)
	var got string
	for _, c := range h.report.Emitted {
		got += c.Text
	}
	if got != "0123456789" {
		t.Errorf("emitted %s", got)
	}
}

// TestEmitHoldsNoMore than what was taken: not the long frames of which little is of use.
func TestEmitHoldsNoMore(t *testing.T) {
	h := open(t, answer("1"), bridge.Limits{})
	g := connect(t, h)
	before := heap()
	long := strings.Repeat("x", 2<<20)
	for range 32 {
		if got := g.ask(emitFrame(`{"type":"text","text":"x","name":"` + long + `","other":"` + long + `"}`)); got != emptyResult {
			t.Fatalf("got %.200s", got)
		}
	}
	for range 8 {
		failureOf(t, g.ask(emitFrame(`{"type":"image","mimeType":"image/png","data":"`+long+`\n"}`)))
	}
	if held := heap() - before; held > 8<<20 {
		t.Errorf("%d bytes are held for %d bytes emitted", held, 32)
	}
	runtime.KeepAlive(h)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestRetryableIsTold(t *testing.T) {
	h := open(t, callerFunc(func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, &tool.Error{Kind: tool.Limit, Message: "busy", Retryable: true}
	}), bridge.Limits{})
	if got, want := connect(t, h).ask(`{"type":"call","id":5,"tool":"a.b"}`), `{"type":"error","id":5,"error":{"kind":"limit","message":"busy","retryable":true}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

var shownType = regexp.MustCompile(`^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(; ?charset=[a-z0-9_-]+)?$`)

// FuzzEmit lets a program emit anything twice: each frame is answered, and what
// was taken can be shown.
func FuzzEmit(f *testing.F) {
	for _, seed := range []string{
		`{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","name":"plot.png"}`, `{"type":"text","text":"a","mimeType":"text/markdown"}`,
		`{"type":"resource","text":"a","uri":"file:///workspace/a.csv","name":"..\\a\u202e.csv"}`, `{"type":"audio","data":"AAA=","mimeType":"audio/x"}`,
		`{"type":"text","text":"\ud800\u0000"}`, `{"type":"resource"}`, `{"TYPE":"text","Text":"x","mimetype":"a/b"}`, `{"type":"resource","data":"===="}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if !json.Valid([]byte(content)) || strings.ToValidUTF8(content, "") != content || len(content) > 1<<16 {
			t.Skip("no frame")
		}
		limits := bridge.Limits{Emits: 2, Emit: 64, Emitted: 100}
		h := open(t, answer("1"), limits)
		g := connect(t, h)
		for range 2 {
			if got := g.ask(emitFrame(content)); got != emptyResult {
				failureOf(t, got)
			}
		}
		total := 0
		for _, c := range h.end(t, g).Emitted {
			total += len(c.Text) + len(c.Data) + len(c.MIME) + len(c.Name) + len(c.URI)
			switch {
			case !strings.Contains(" text image audio resource ", " "+c.Type+" "), !shownType.MatchString(c.MIME),
				strings.ContainsAny(c.Name, `/\`), strings.ContainsFunc(c.Name+c.URI, unicode.IsControl), c.Name == "..",
				c.Type == "text" && (c.Text == "" || c.Data != nil), c.Type == "image" && (len(c.Data) == 0 || c.Text != ""):
				t.Errorf("taken: %+v", c)
			}
		}
		if total > limits.Emitted {
			t.Errorf("%d bytes", total)
		}
	})
}
