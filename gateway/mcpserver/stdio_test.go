package mcpserver

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestLinesThatAreNoMessages are answered, and the session goes on.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(context.Background(), rawTransport{newTransport(stdin, stdout)}) }()
	answers := bufio.NewReader(out)
	say := func(line string) string {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const parse, invalid = `"code":-32700`, `"code":-32600`
	ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	for _, tc := range []struct{ line, want string }{
		{"[" + ping + "]", invalid}, // nobody has said which revision it is
		{initialize, `"protocolVersion":"2025-03-26"`},
		{"{", parse},
		{"hello", parse},
		{"{}{}", parse},
		{ping + ping, parse},
		{"\xff\xfe", parse},
		{`{"jsonrpc":"2.0","id":3,"method":"` + "\xff" + `"}`, parse},
		{strings.Repeat("[", 100_000), parse},
		{"null", invalid},
		{"7", invalid},
		{`"x"`, invalid},
		{"[]", invalid},
		{"[1]", invalid},
		{"[" + ping + ",null]", invalid},
		{"[" + strings.Repeat(ping+",", 100_000) + ping + "]", "at most 100 messages"},
		{"{}", invalid},
		{`{"id":5}`, `"id":5`},
		{`{"jsonrpc":"2.0","id":"a"}`, ``},
		{`{"jsonrpc":"1.0","id":"a b","method":"ping"}`, `"id":"a b"`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, invalid},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, invalid},
		{strings.Repeat(" ", maxLine+1) + ping, "larger than 16 MiB"},
		{`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 3*maxLine) + `"}`, "larger than 16 MiB"},
		{"\r\n\n \t\n" + ping + "\r", `"result":{}`},
		{"[" + ping + "]", `[{`},
	} {
		if tc.want == "" { // an answer to nothing that we asked, which nobody answers
			_, _ = io.WriteString(in, tc.line+"\n")
		} else if got := say(tc.line); !strings.Contains(got, tc.want) {
			t.Errorf("%.80q: %s, want %s", tc.line, got, tc.want)
		}
		if got := say(ping); !strings.Contains(got, `"id":9`) && !strings.Contains(got, `"id":1`) && tc.line[0] != '[' {
			t.Fatalf("after %.80q: %s", tc.line, got)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestLargeBatchOverHTTP costs little.
func TestLargeBatchOverHTTP(t *testing.T) {
	t.Parallel()
	ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	reached := 0
	door := bufferBody(64<<20, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	for body, passes := range map[string]bool{
		"[" + strings.Repeat(ping+",", 100_000) + ping + "]": false,
		"[]": false,
		" [" + strings.Repeat(ping+",", maxBatch-1) + ping + "]": true,
		ping: true, "[": true, "": true,
	} {
		before, w := reached, httptest.NewRecorder()
		door.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body)))
		if passed := reached > before; passed != passes || !passes && (w.Code != 400 || !strings.Contains(w.Body.String(), "-32600")) {
			t.Errorf("%.60q: %d %s", body, w.Code, w.Body)
		}
	}
}
