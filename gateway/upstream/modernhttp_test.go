package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// askingServer is a real HTTP server whose tool logs, reports progress and asks
// before it answers, in the way of either revision.
func askingServer(t *testing.T, opts *mcp.StreamableHTTPOptions) *httptest.Server {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.InputResponses != nil {
			said := req.Params.InputResponses["q"].(*mcp.ElicitResult)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(said.Content["who"])}}}, nil
		}
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: string(req.Params.Arguments)}); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: string(req.Params.Arguments), RequestedSchema: map[string]any{"type": "object"}}}}, nil
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts))
	t.Cleanup(web.Close)
	return web
}

// Over HTTP it is clear to which call a question belongs, so many may ask at once.
func TestAskingOverHTTP(t *testing.T) {
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{"2026-07-28": {Stateless: true}, "2025-11-25": {}} {
		t.Run(name, func(t *testing.T) {
			web := askingServer(t, opts)
			s := open(t, upstream.Settings{ID: "mem", URL: web.URL}, &upstream.Options{Asks: true})
			connect(t, s)
			if got := s.State().Protocol; got != name {
				t.Fatalf("revision %s", got)
			}
			together := sync.WaitGroup{}
			together.Add(4)
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					me := fmt.Sprintf(`{"i":%d}`, i)
					p := &peer{answer: func(context.Context, string) (json.RawMessage, error) {
						together.Done()
						together.Wait() // all are asked before one is answered
						return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":{"who":"peer %d"}}`, i)), nil
					}}
					result, err := p.run(t, s, toolCall("ask", me))
					if err != nil {
						t.Error(err)
						return
					}
					if got := result.Text(); got != fmt.Sprintf("peer %d", i) || len(p.asked) != 1 || !strings.Contains(p.asked[0], fmt.Sprintf(`{\"i\":%d}`, i)) {
						t.Errorf("call %d: %s, asked %v", i, got, p.asked)
					}
					if len(p.told) != 1 || !strings.Contains(p.told[0], fmt.Sprintf(`{\"i\":%d}`, i)) {
						t.Errorf("call %d was told %v", i, p.told)
					}
				})
			}
			all.Wait()
		})
	}
}

const headerSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
 "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Deep-N"}}},"yes":{"type":"boolean","x-mcp-header":"Yes"}}}`

func TestArgumentsInHeaders(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := mcp.NewServer(&mcp.Implementation{Name: "proxied", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "fine", InputSchema: json.RawMessage(headerSchema)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Header.Get("Mcp-Method") == "tools/call" {
			got = append(got, r.Header.Get("Mcp-Name"), r.Header.Get("Mcp-Param-Region"), r.Header.Get("Mcp-Param-Deep-N"), r.Header.Get("Mcp-Param-Yes"))
		}
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s := open(t, upstream.Settings{ID: "mem", URL: web.URL}, nil)
	call(t, s, "fine", `{"region":" größe","deep":{"n":42},"yes":false}`)
	call(t, s, "fine", `{"region":"us-west1","yes":null}`)
	want := []string{"fine", "=?base64?IGdyw7bDn2U=?=", "42", "false", "fine", "us-west1", "", ""}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A stream of events that is hostile ends the call, not the session.
func TestHostileStreamOfACall(t *testing.T) {
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		mine := strings.Contains(body, "poison")
		if mine {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\ndata: \"params\":{\"data\":\"two lines\"}}\n\n: comment\n\n")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notif")
		}
		return mine
	})
	s := open(t, web.settings(), nil)
	p := &peer{}
	_, err := p.run(t, s, toolCall("echo", `{"a":"poison"}`))
	if err == nil || len(p.told) != 1 || p.told[0] != `notifications/message {"data":"two lines"}` || p.asked != nil {
		t.Errorf("%v, told %v, asked %v", err, p.told, p.asked)
	}
	_, err = callContext(t.Context(), s, "echo", `{"a":"poison"}`) // without a caller to notify or ask
	if err == nil {
		t.Error("half an answer is an answer")
	}
	call(t, s, "echo", "{}")
}

var _ tool.Peer = (*peer)(nil)
