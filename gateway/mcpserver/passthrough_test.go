//nolint:staticcheck // logging and roots are deprecated, and still to be passed on
package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// TestTwoOfAKind: what two upstreams both have can be had from each.
func TestTwoOfAKind(t *testing.T) {
	t.Parallel()
	two := make([]config.Upstream, 2)
	for i, id := range []string{"one", "two"} {
		answers := oddAnswers()
		answers["resources/read"] = `{"contents":[{"uri":"odd://1","text":"of ` + id + `"}]}`
		answers["prompts/get"] = `{"messages":[],"description":"of ` + id + `"}`
		answers["prompts/list"] = `{"prompts":[{"name":"ask","n":1.0}]}`
		answers["completion/complete"] = `{"completion":{"values":["of ` + id + `"]}}`
		two[i] = upstream(id, newRawServer(t, answers).url, "")
	}
	for wire, names := range map[bool][2]string{false: {"one__ask", "two__ask"}, true: {"ask", "two__ask"}} {
		d := newDirect(t, wire, two...)
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			c := d.dialogue(version)
			prompts, resources, templates := c.ask("prompts/list", `{}`), c.ask("resources/list", `{}`), c.ask("resources/templates/list", `{}`)
			for i, id := range []string{"one", "two"} {
				if !strings.Contains(prompts, `{"name":"`+names[i]+`","n":1.0}`) {
					t.Errorf("%s: prompts %s", version, prompts)
				}
				want(t, version, c.ask("prompts/get", `{"name":"`+names[i]+`"}`), `{"messages":[],"description":"of `+id+`"}`)
				uri, pattern := "odd://1", "odd://{id}"
				if i > 0 {
					uri, pattern = "sallyport://two/"+uri, "sallyport://two/"+pattern
				}
				if !strings.Contains(resources, `{"uri":"`+uri+`","name":"one","size":9007199254740993}`) || !strings.Contains(templates, `{"uriTemplate":"`+pattern+`"`) {
					t.Errorf("%s: resources %s, templates %s", version, resources, templates)
				}
				want(t, version, c.ask("resources/read", `{"uri":"`+uri+`"}`), `{"contents":[{"uri":"`+uri+`","text":"of `+id+`"}]}`)
				filled := strings.Replace(pattern, "{id}", "7", 1)
				if got := c.ask("resources/read", `{"uri":"`+filled+`"}`); !strings.Contains(got, `"of `+id+`"`) {
					t.Errorf("%s: %s: %s", version, filled, got)
				}
				want(t, version, c.ask("completion/complete", `{"ref":{"type":"ref/resource","uri":"`+pattern+`"},"argument":{"name":"id","value":""}}`),
					`{"completion":{"values":["of `+id+`"]}}`)
			}
			if got := c.ask("resources/read", `{"uri":"nobody://1"}`); !strings.Contains(got, "-32602") && !strings.Contains(got, "-32002") {
				t.Errorf("%s: of nobody: %s", version, got)
			}
		}
	}
}

// talker is a real upstream that tells, asks and waits.
type talker struct {
	*mcp.Server
	url               string
	waiting, canceled chan struct{}
	subscribed        chan string
}

func newTalker(t *testing.T, stateless bool) *talker {
	t.Helper()
	up := &talker{waiting: make(chan struct{}, 9), canceled: make(chan struct{}, 9), subscribed: make(chan string, 9)}
	up.Server = mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, &mcp.ServerOptions{
		Capabilities:     &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}, Tools: &mcp.ToolCapabilities{}},
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error { up.subscribed <- r.Params.URI; return nil },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error {
			up.subscribed <- "-" + r.Params.URI
			return nil
		},
	})
	up.AddResource(&mcp.Resource{URI: "doc://1", Name: "doc"}, nil)
	up.offer("roots", func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		if !stateless {
			roots, err := req.Session.ListRoots(ctx, nil)
			if err != nil {
				return "", err
			}
			return roots.Roots[0].URI, nil
		}
		return "", fmt.Errorf("a modern server asks in its results")
	})
	up.offer("speak", func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "warning"} {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "l", Data: map[string]any{"at": level}}); err != nil {
				return "", err
			}
		}
		return "spoken", nil
	})
	up.offer("wait", func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
		up.waiting <- struct{}{}
		<-ctx.Done()
		up.canceled <- struct{}{}
		return "", ctx.Err()
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up.Server },
		&mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true}))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	up.url = web.URL
	return up
}

func (up *talker) offer(name string, do func(context.Context, *mcp.CallToolRequest) (string, error)) {
	up.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said, err := do(ctx, req)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
	})
}

// soon takes what a channel brings.
func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Errorf("it does not come about that %s", what)
	}
	return v
}

// pairs runs a test for old and new upstreams with old and new clients.
func pairs(t *testing.T, test func(t *testing.T, up *talker, d *direct, version string)) {
	t.Helper()
	for _, stateless := range []bool{false, true} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(fmt.Sprintf("stateless=%v,client=%s", stateless, version), func(t *testing.T) {
				t.Parallel()
				up := newTalker(t, stateless)
				test(t, up, newDirect(t, false, upstream("talker", up.url, "")), version)
			})
		}
	}
}

// TestUpdatesReachWhoSubscribed, and nobody after that.
func TestUpdatesReachWhoSubscribed(t *testing.T) {
	t.Parallel()
	pairs(t, func(t *testing.T, up *talker, d *direct, version string) {
		t.Helper()
		told := make(chan string, 9)
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
				select {
				case told <- req.Params.URI:
				default: // told often enough
				}
			},
		})
		session, listening := d.connect(client, version)
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "doc://1"}); err != nil {
			t.Fatal(err)
		}
		soon(t, "the client listens", listening)
		if got := soon(t, "the upstream hears of it", up.subscribed); got != "doc://1" {
			t.Errorf("subscribed %s", got)
		}
		// The SDK's server calls its handler before it notes who has subscribed, so an update right after that may find nobody.
		testutil.Eventually(t, "the client is told", 20*time.Second, func() bool {
			if err := up.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "doc://1"}); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-told:
				return got == "doc://1"
			case <-time.After(time.Second):
				return false
			}
		})
		if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "doc://1"}); err != nil {
			t.Fatal(err)
		}
		if got := soon(t, "the upstream hears that it is over", up.subscribed); got != "-doc://1" {
			t.Errorf("unsubscribed %s", got)
		}
	})
}

// TestLogMessagesPass to clients that want them, at their level.
func TestLogMessagesPass(t *testing.T) {
	t.Parallel()
	pairs(t, func(t *testing.T, up *talker, d *direct, version string) {
		t.Helper()
		said := make(chan string, 9)
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
				data, _ := json.Marshal(req.Params)
				said <- string(data)
			},
		})
		session, _ := d.connect(client, version)
		params := &mcp.CallToolParams{Name: "talker__speak"}
		if version < "2026" {
			if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
				t.Fatal(err)
			}
		} else {
			params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: "info"}
		}
		if got, isError := callWith(t, session, params); isError || got != "spoken" {
			t.Fatalf("speak: %s", got)
		}
		if got := soon(t, "the log message arrives", said); got != `{"data":{"at":"warning"},"level":"warning","logger":"l"}` {
			t.Errorf("said %s", got)
		}
	})
}

func callWith(t *testing.T, session *mcp.ClientSession, params *mcp.CallToolParams) (string, bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// TestRootsAreThoseOfTheClient when an older upstream asks for them.
func TestRootsAreThoseOfTheClient(t *testing.T) {
	t.Parallel()
	up := newTalker(t, false)
	d := newDirect(t, false, upstream("talker", up.url, ""))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		client.AddRoots(&mcp.Root{URI: "file:///home/ada/" + version})
		session, _ := d.connect(client, version)
		if got, isError := callWith(t, session, &mcp.CallToolParams{Name: "talker__roots"}); isError || got != "file:///home/ada/"+version {
			t.Errorf("%s: %s", version, got)
		}
	}
}

// TestCancellationReachesTheUpstream of a call in direct mode.
func TestCancellationReachesTheUpstream(t *testing.T) {
	t.Parallel()
	pairs(t, func(t *testing.T, up *talker, d *direct, version string) {
		t.Helper()
		session, _ := d.connect(mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil), version)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "talker__wait"})
			ended <- err
		}()
		soon(t, "the upstream works", up.waiting)
		cancel()
		soon(t, "the upstream is told to stop", up.canceled)
		if err := soon(t, "the call ends", ended); err == nil {
			t.Error("a canceled call has a result")
		}
	})
}

// late is a gateway whose upstreams are there when it has been waited for.
type late struct {
	upstreams
	tell    func()
	settled bool
}

func (l *late) Watch(f func()) func() { l.tell = f; return func() {} }

func (l *late) Await(context.Context, string) {
	if !l.settled {
		time.Sleep(time.Second)
		l.offers, l.settled = []catalog.UpstreamOffer{offering("up", "slow")}, true
		l.tell()
	}
}

// TestFirstRequestsWait for upstreams that have not been tried, whichever they are.
func TestFirstRequestsWait(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"tools/list", "tools/call"} {
		for range 50 { // the roster may be made by one goroutine or the other
			synctest.Test(t, func(t *testing.T) {
				l := &late{upstreams: upstreams{call: func(context.Context, tool.Call) (tool.Result, error) {
					return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"up__slow"}]}`)}, nil
				}}}
				face := mcpserver.NewDirect(l, nil)
				near, far := mcp.NewInMemoryTransports()
				if _, err := face.Connect(t.Context(), far); err != nil {
					t.Fatal(err)
				}
				conn, err := near.Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := exchange(t, conn, method); !strings.Contains(got, "up__slow") {
					t.Errorf("%s: %s", method, got)
				}
				_ = conn.Close()
				face.Close()
			})
		}
	}
}

// exchange sends the first request on a connection, and returns the answer.
func exchange(t *testing.T, conn mcp.Connection, method string) string {
	t.Helper()
	msg, err := jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"up__slow","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	answer, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := jsonrpc.EncodeMessage(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
