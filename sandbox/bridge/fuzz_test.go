package bridge_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// madeCall is a call as a frame asks for it.
type madeCall struct{ Tool, Args string }

// FuzzFrames lets a guest send messages, or any bytes at all after its
// handshake. Nothing may panic or hang, and the Caller gets what well-formed
// call frames ask for, in order, and nothing else.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"type":"call","id":1,"tool":"a.b","args":{"x":[1,"é"]}}` + "\n" + `{"type":"done","value":{"kind":"json","text":"1","size":1}}`,
		`{"type":"call","id":1,"tool":"a.b"}` + "\n" + `{"type":"call","id":1,"tool":"../b","args":null}` + "\n[]",
		`{"type":"done","fault":{"type":"E","message":"m","lines":[{"line":1}],"hint":"h"},"exit":7}` + "\n" + `{"type":"call","id":2,"tool":"a.b"}`,
		`{"type":"result","id":1}` + "\n" + `{"type":"call","type":"done"}` + "\n" + `{"type":"call","tool":"a.b","args":{},"ARGS":"x","execution":"e-2"}`,
		`{"type":"done","fault":{"lines":[` + "\n" + `{"type":"call","id":1e3,"tool":"a.b"}`,
		"{\"type\":\"call\",\"tool\":\"a.b\",\"args\":\"\xff\"}\n{}",
		`{"type":"emit","id":1,"content":{"type":"image","data":"aGk=","mimeType":"IMAGE/png; charset=x","name":"../\u202e\u001b[31m/..\\CON.","uri":"JavaScript:alert(1)"}}` + "\n" + `{"type":"emit","content":{"type":"resource","data":"aGk","name":".","uri":"a:b"}}`,
		`{"type":"emit","content":{"type":"resource","text":"x","data":"","mimeType":"text/html\r\nX: y","uri":"data:text/html,x"}}` + "\n" + `{"type":"emit","content":{"type":"resource","TYPE":"text","text":"","Text":"x","uri":"A:%00"}}` + "\n" + `{"type":"call","id":1,"tool":"sallyport.describe","args":{}}`,
		`{"type":"emit","content":{"type":"resource","text":"x","uri":"a:\"><img src=x onerror=y>"}}` + "\n" + `{"type":"emit","content":{"type":"resource","text":"x","uri":"https://a/b]({x})|` + "`" + `"}}`,
		`{"type":"emit","id":1,"content":{"type":"text","text":"a"}}` + "\n" + `{"type":"emit","content":7,"tool":"a.b"}` + "\n" + `{"type":"emit"}` + "\n" + `{"type":"call","tool":"a.b"}`,
	} {
		f.Add([]byte(seed), false)
	}
	for _, seed := range [][]byte{
		frameBytes(0x81, `{"type":"call","id":1,"tool":"a.b","args":1}`),
		append(append(frameBytes(0x01, `{"type":"call",`), frameBytes(0x89, "ping")...), frameBytes(0x80, `"tool":"a.b"}`)...),
		append(frameBytes(0x82, "{}"), frameBytes(0x81, `{"type":"call","tool":"a.b"}`)...),
		append(frameBytes(0x88, "\x03\xe8"), frameBytes(0x81, `{"type":"call","tool":"a.b"}`)...),
		{0x81, 0x02, '{', '}'}, {0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x8f, 0x80}, []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		want := messages(data)
		if !raw {
			want = nil
			for line := range bytes.SplitSeq(data, []byte("\n")) {
				want = append(want, line)
			}
		}
		calls, done := runFuzzed(t, func(conn *websocket.Conn) {
			if raw {
				_, _ = conn.NetConn().Write(data)
				return
			}
			for _, message := range want {
				_ = conn.WriteMessage(websocket.TextMessage, message)
			}
		})
		wantCalls, wantDone := wellFormed(want)
		if diff := cmp.Diff(wantCalls, calls); diff != "" || done != wantDone {
			t.Errorf("done %t, want %t; calls (-want +got):\n%s", done, wantDone, diff)
		}
	})
}

// runFuzzed runs a bridge with a guest that sends something and stops, and
// returns the calls that were made and whether the guest has reported an end.
func runFuzzed(t *testing.T, send func(*websocket.Conn)) (calls []madeCall, done bool) {
	t.Helper()
	var mu sync.Mutex
	b, path := listen(t)
	caller := callerFunc(func(_ context.Context, call tool.Call) (tool.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, madeCall{call.Tool.String(), string(call.Args)})
		if call.Execution != "e-1" {
			t.Errorf("a call of %q", call.Execution)
		}
		return tool.Result{Structured: []byte("1")}, nil
	})
	ended := make(chan outcome, 1)
	go func() {
		report, err := b.Run(context.Background(), program, account(caller, bridge.Limits{Concurrency: 1, Calls: 1 << 30, Frame: 1 << 16}), func() {})
		ended <- outcome{report, err}
	}()
	g := dial(t, path)
	go func() { // reads what comes, so that the guest never holds up its answers
		for {
			if _, _, err := g.NextReader(); err != nil {
				return
			}
		}
	}()
	send(g.Conn)
	_ = g.NetConn().(*net.UnixConn).CloseWrite()
	select {
	case o := <-ended:
		checkEmitted(t, o.report.Emitted)
		return calls, o.err == nil
	case <-time.After(time.Minute):
		t.Fatalf("Run goes on:\n%s", stacks())
		return nil, false
	}
}

// checkEmitted: what goes on to a client is bounded, and says of itself only what is harmless to show and to follow.
func checkEmitted(t *testing.T, items []tool.Content) {
	t.Helper()
	if len(items) > 32 {
		t.Errorf("%d things emitted", len(items))
	}
	for _, c := range items {
		own := c.Name + c.URI + c.MIME
		scheme, _, _ := strings.Cut(strings.ToLower(c.URI), ":")
		switch {
		case !slices.Contains([]string{"text", "image", "audio", "resource"}, c.Type), len(own) > 4<<10, !utf8.ValidString(own + c.Text):
		case strings.ContainsAny(own, "\x00\x1b\n\r\u202e\u2028"), strings.ContainsAny(c.Name, `/\`), c.Name == ".", c.Name == "..":
		case strings.ContainsAny(c.URI, " <>\"`\\^{|}"), slices.Contains([]string{"javascript", "data", "vbscript"}, scheme), c.Type != "resource" && c.Type != "text" && !strings.HasPrefix(c.MIME, c.Type+"/"):
		default:
			continue
		}
		t.Errorf("emitted: %q", c)
	}
}

// wellFormed says again, from docs/reference/bridge.md, which calls the messages of a guest ask for.
func wellFormed(messages [][]byte) (calls []madeCall, done bool) {
	for _, message := range messages {
		var frame struct {
			Type  string
			ID    int64
			Tool  string
			Args  json.RawMessage
			Value *struct {
				Kind, Text string
				Size       int64
			}
			Fault *struct {
				Type, Message, Hint string
				Lines               []struct {
					Line             int
					Function, Source string
				}
			}
			Exit int
		}
		if len(message) > 1<<16 || !utf8.Valid(message) || json.Unmarshal(message, &frame) != nil || frame.Type == "done" {
			return calls, frame.Type == "done" && utf8.Valid(message) && json.Valid(message)
		}
		if _, err := tool.ParseID(frame.Tool); frame.Type == "call" && err == nil {
			calls = append(calls, madeCall{frame.Tool, string(frame.Args)})
		}
	}
	return calls, false
}

// messages reads a guest's bytes as RFC 6455 says, up to the first violation; a message that is not text is one.
func messages(data []byte) (all [][]byte) {
	var message []byte
	open := false
	for len(data) >= 2 {
		first, masked, size := data[0], data[1]&0x80 != 0, uint64(data[1]&0x7f)
		opcode, final, control := first&0x0f, first&0x80 != 0, first&0x08 != 0
		if first&0x70 != 0 || !masked || control && (!final || size > 125) || opcode > 10 || opcode > 2 && opcode < 8 || opcode == 8 {
			return all
		}
		data = data[2:]
		for _, wide := range []struct {
			mark  uint64
			bytes int
		}{{127, 8}, {126, 2}} {
			if size == wide.mark && len(data) >= wide.bytes {
				size, data = binary.BigEndian.Uint64(append(make([]byte, 8-wide.bytes), data[:wide.bytes]...)), data[wide.bytes:]
				break
			}
		}
		if len(data) < 4 || uint64(len(data)-4) < size {
			return all
		}
		payload := unmask(data[:4], data[4:4+size])
		data = data[4+size:]
		if control {
			continue
		}
		if open != (opcode == 0) || opcode == 2 {
			return all
		}
		message, open = append(message, payload...), !final
		if len(message) > 1<<16 {
			return all
		}
		if final {
			all, message = append(all, message), nil
		}
	}
	return all
}

func unmask(mask, payload []byte) []byte {
	out := make([]byte, len(payload))
	for i, b := range payload {
		out[i] = b ^ mask[i%4]
	}
	return out
}

// frameBytes is one masked frame of up to 125 bytes.
func frameBytes(first byte, payload string) []byte {
	mask := []byte{1, 2, 3, 4}
	return append(append([]byte{first, 0x80 | byte(len(payload))}, mask...), unmask(mask, []byte(payload))...)
}
