package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// peer is a caller that writes down what it is told and answers what it is asked.
type peer struct {
	mu      sync.Mutex
	told    []string
	asked   []string
	answer  func(ctx context.Context, method string) (json.RawMessage, error)
	over    bool // the call has returned
	strange bool // it was used after that
}

func (p *peer) Notify(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, method+" "+string(params))
	p.strange = p.strange || p.over
}

func (p *peer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	p.asked = append(p.asked, method+" "+string(params))
	p.strange = p.strange || p.over
	p.mu.Unlock()
	if p.answer != nil {
		return p.answer(ctx, method)
	}
	return json.RawMessage(`{"action":"accept","content":{"n":9007199254740993}}`), nil
}

// run makes a call with the peer.
func (p *peer) run(t testing.TB, s *upstream.Session, c tool.Call) (tool.Result, error) {
	t.Helper()
	c.Peer = p
	result, err := s.Call(t.Context(), c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.strange {
		t.Error("the peer was used after the call")
	}
	return result, err
}

func toolCall(name, args string) tool.Call {
	return tool.Call{Tool: tool.ID{Upstream: "mem", Name: name}, Args: json.RawMessage(args)}
}

func must(t testing.TB, result tool.Result, err error) tool.Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestMethods(t *testing.T) {
	for _, mode := range []string{"talk", "talk,modern"} {
		s := open(t, settings(t, mode), nil)
		ask := func(c tool.Call) tool.Result {
			t.Helper()
			result, err := s.Call(t.Context(), c)
			return must(t, result, err)
		}
		values := map[string]string{
			"mem://text": `{"json":"words"}`,
			"mem://blob": `{"blob":{"mime":"image/png","data":"AAE=","uri":"mem://blob"}}`,
			"mem://both": `{"parts":[{"json":"one"},{"blob":{"mime":"","data":"","uri":"mem://b"}},{"json":7}]}`,
		}
		for uri, want := range values {
			result := ask(toolCall(tool.ReadResource, fmt.Sprintf(`{"uri":%q}`, uri)))
			got, _ := json.Marshal(result.Value())
			if string(got) != want || !strings.HasSuffix(string(result.Raw), `,"ttlMs":5}`) {
				t.Errorf("%s: %s, raw %s", uri, got, result.Raw)
			}
		}
		if c := ask(toolCall(tool.ReadResource, `{"uri":"mem://text"}`)).Content[0]; c.Type != "text" || c.URI != "mem://text" || c.MIME != "text/plain" {
			t.Errorf("content: %+v", c)
		}
		prompt := ask(toolCall(tool.GetPrompt, `{"name":"greet","arguments":{"who":"<you>"}}`))
		// The escapes are the talker's, not ours.
		if got := string(prompt.Structured); got != string(prompt.Raw) || !strings.Contains(got, `"arguments":{"who":"\u003cyou\u003e"}`) || !strings.Contains(got, `"big":9007199254740993`) {
			t.Errorf("prompt: %s", got)
		}
		if got := string(ask(toolCall(tool.Complete, `{"ref":{"type":"ref/prompt","name":"greet"}}`)).Raw); !strings.Contains(got, `"ref":{"type":"ref/prompt","name":"greet"}`) {
			t.Errorf("completion: %s", got)
		}
		_, err := s.Call(t.Context(), toolCall(tool.ReadResource, `{"uri":"mem://none"}`))
		wantError(t, err, tool.Invalid, "no such resource")
		_, err = s.Call(t.Context(), toolCall("tools/list", ""))
		wantError(t, err, tool.Invalid, "unsupported method")
	}
}

func TestSubscribe(t *testing.T) {
	notices := make(chan string, 10)
	opts := &upstream.Options{OnNotice: func(method string, params json.RawMessage) { notices <- method + " " + string(params) }}
	s := open(t, settings(t, "talk"), opts)
	if _, err := s.Call(t.Context(), toolCall(tool.Subscribe, `{"uri":"mem://text"}`)); err != nil {
		t.Fatal(err)
	}
	if got := <-notices; got != `notifications/resources/updated {"uri":"mem://text"}` {
		t.Errorf("notice: %s", got)
	}
	s = open(t, settings(t, "talk,modern"), opts) // in that revision it is a stream
	for _, method := range []string{tool.Subscribe, tool.Unsubscribe} {
		if _, err := s.Call(t.Context(), toolCall(method, `{"uri":"mem://text"}`)); err != nil {
			t.Fatal(err)
		}
		all := `{\"toolsListChanged\":true,\"promptsListChanged\":true,\"resourcesListChanged\":true`
		want := map[string]string{tool.Subscribe: all + `,\"resourceSubscriptions\":[\"mem://text\"]}":1`, tool.Unsubscribe: all + `}":2`}[method]
		testutil.Eventually(t, "it listens for what is wanted after "+method, soon, func() bool {
			return strings.Contains(string(call(t, s, "counts", "").Structured), want)
		})
	}
	call(t, s, "log", "")
	if got := <-notices; got != `notifications/message {"level":"info","data":"hi"}` {
		t.Errorf("notice: %s", got)
	}
}

func TestLogLevelTravelsWithTheCall(t *testing.T) {
	s := open(t, settings(t, "talk,modern"), nil)
	if _, err := s.Call(t.Context(), toolCall(tool.SetLogLevel, `{"level":"debug"}`)); err != nil {
		t.Fatal(err)
	}
	result, err := (&peer{}).run(t, s, toolCall("params", ""))
	if got := must(t, result, err).Structured; !strings.Contains(string(got), `"io.modelcontextprotocol/logLevel":"debug"`) {
		t.Errorf("params: %s", got)
	}
}

func TestParamsPassThrough(t *testing.T) {
	for mode, protocols := range map[string]string{
		"talk": "",
		"talk,modern": `"io.modelcontextprotocol/clientCapabilities":{"sampling":{"x":9007199254740993}},` +
			`"io.modelcontextprotocol/clientInfo":{"name":"sallyport","version":"dev"},"io.modelcontextprotocol/logLevel":"error","io.modelcontextprotocol/protocolVersion":"2026-07-28",`,
	} {
		s := open(t, settings(t, mode), nil)
		c := toolCall("params", `{"n":9007199254740993,"html":"<b>"}`)
		c.Params = map[string]json.RawMessage{
			"requestState": raw(`"state"`), "inputResponses": raw(`{"a":{}}`), "name": raw(`"forged"`),
			"_meta": raw(`{"trace":"<1>","progressToken":"mine","io.modelcontextprotocol/clientInfo":{"name":"forged"},"io.modelcontextprotocol/logLevel":"error",
				"io.modelcontextprotocol/clientCapabilities":{"sampling":{"x":9007199254740993}},"io.modelcontextprotocol/protocolVersion":"forged"}`),
		}
		result, err := s.Call(t.Context(), c)
		want := `{"_meta":{` + protocols + `"trace":"<1>"},"arguments":{"n":9007199254740993,"html":"<b>"},"inputResponses":{"a":{}},"name":"params","requestState":"state"}`
		if got := must(t, result, err); strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(got.Structured)) != want || !strings.HasSuffix(string(got.Raw), `"_meta":{"big":9007199254740993}}`) {
			t.Errorf("%s: params came as %s, raw %s", mode, got.Structured, got.Raw)
		}
	}
}

func TestProgress(t *testing.T) {
	for _, mode := range []string{"talk", "talk,modern"} {
		s := open(t, settings(t, mode), nil)
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				p := &peer{}
				c := toolCall("progress", `{"times":3}`)
				var want []string
				own := ""
				if i > 0 { // the first has no token of its own
					own = fmt.Sprintf(`,"progressToken":"mine %d"`, i)
					c.Params = map[string]json.RawMessage{"_meta": raw(`{` + own[1:] + `}`)}
				}
				for n := range 3 {
					want = append(want, fmt.Sprintf(`notifications/progress {"progress":%d%s,"total":9007199254740993}`, n+1, own))
				}
				if _, err := p.run(t, s, c); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(want, p.told); diff != "" {
					t.Error(diff)
				}
			})
		}
		all.Wait()
		if got := call(t, s, "params", "").Structured; strings.Contains(string(got), "progressToken") {
			t.Errorf("a call without a peer has a token: %s", got)
		}
	}
}

func TestFloodOfProgress(t *testing.T) {
	s := open(t, settings(t, "talk"), nil)
	p := &peer{}
	if _, err := p.run(t, s, toolCall("progress", `{"times":50000}`)); err != nil {
		t.Fatal(err)
	}
	if n := len(p.told); n < 100 || n > 2000 {
		t.Errorf("%d notifications passed on of 50000", n)
	}
	call(t, s, "params", "")
}

func TestLogMessages(t *testing.T) {
	s := open(t, settings(t, "talk"), nil)
	one, other := &peer{}, &peer{}
	waiting, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Call(waiting, tool.Call{Tool: tool.ID{Name: "wait"}, Peer: other, Args: raw(`{"method":"x"}`)})
	}()
	testutil.Eventually(t, "both are told", soon, func() bool {
		one = &peer{}
		if _, err := one.run(t, s, toolCall("log", `{"say":{"n":9007199254740993}}`)); err != nil {
			t.Fatal(err)
		}
		other.mu.Lock()
		defer other.mu.Unlock()
		return len(other.told) > 0
	})
	cancel()
	<-done
	if want := []string{`notifications/message {"level":"info","data":{"n":9007199254740993}}`}; cmp.Diff(want, one.told) != "" || other.told[0] != want[0] {
		t.Errorf("told %v and %v", one.told, other.told)
	}
}

func TestAsking(t *testing.T) {
	s := open(t, settings(t, "talk"), &upstream.Options{Asks: true})
	for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
		p := &peer{}
		result, err := p.run(t, s, toolCall("ask", fmt.Sprintf(`{"method":%q}`, method)))
		if got := must(t, result, err).Text(); !strings.Contains(got, `"result":{"action":"accept","content":{"n":9007199254740993}}`) {
			t.Errorf("%s was answered with %s", method, got)
		}
		if want := []string{method + ` {"message":"Sure?","n":9007199254740993}`}; cmp.Diff(want, p.asked) != "" {
			t.Errorf("asked %v", p.asked)
		}
	}
	for says, answer := range map[string]func(context.Context, string) (json.RawMessage, error){
		"nobody is there": func(context.Context, string) (json.RawMessage, error) {
			return nil, &tool.Error{Kind: tool.Denied, Message: "nobody is there"}
		},
		`"message":"no answer"`: func(context.Context, string) (json.RawMessage, error) { return nil, errors.New("inside of ours") },
		`"error"`:               func(context.Context, string) (json.RawMessage, error) { return raw(`[1`), nil },
	} {
		result, err := (&peer{answer: answer}).run(t, s, toolCall("ask", ""))
		if got := must(t, result, err).Text(); !strings.Contains(got, says) || strings.Contains(got, "inside") {
			t.Errorf("answered with %s, want %s", got, says)
		}
	}
}

func TestNotDeclaredIsNotAsked(t *testing.T) {
	s := open(t, settings(t, "talk"), nil)
	p := &peer{}
	result, err := p.run(t, s, toolCall("ask", ""))
	if got := must(t, result, err).Text(); !strings.Contains(got, `"error"`) || p.asked != nil {
		t.Errorf("answered with %s", got)
	}
}

func TestAskingBelongsToOneCall(t *testing.T) {
	s := open(t, settings(t, "talk"), &upstream.Options{Asks: true})
	if _, err := (&peer{}).run(t, s, toolCall("ask", "")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	now, most := 0, 0
	for range 8 {
		all.Go(func() {
			p := &peer{answer: func(context.Context, string) (json.RawMessage, error) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
				return raw(`{}`), nil
			}}
			result, err := p.run(t, s, toolCall("ask", ""))
			if got := must(t, result, err).Text(); !strings.Contains(got, `"result":{}`) || len(p.asked) != 1 {
				t.Errorf("%s, asked %v", got, p.asked)
			}
		})
	}
	for range 3 { // those that cannot be asked need not wait
		all.Go(func() { call(t, s, "params", "") })
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d asked at once", most)
	}
}

func TestAsksInALoop(t *testing.T) {
	s := open(t, settings(t, "talk"), &upstream.Options{Asks: true})
	p := &peer{}
	result, err := p.run(t, s, toolCall("asks", ""))
	if got := must(t, result, err).Text(); got != "36" || len(p.asked) != 64 {
		t.Errorf("asked %d times, %s refused, of 100", len(p.asked), got)
	}
}

func TestAsksWithNoCall(t *testing.T) {
	s := open(t, settings(t, "talk"), &upstream.Options{Asks: true})
	p := &peer{}
	if _, err := p.run(t, s, toolCall("late", "")); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it is refused", soon, func() bool {
		return strings.Contains(call(t, s, "answered", "").Text(), "it belongs to no call in flight")
	})
	if p.asked != nil {
		t.Errorf("asked %v", p.asked)
	}
}

func TestAskEndsWithTheCall(t *testing.T) {
	cfg := settings(t, "talk")
	cfg.Timeout = 200 * time.Millisecond
	s := open(t, cfg, &upstream.Options{Asks: true})
	connect(t, s)
	p := &peer{answer: func(ctx context.Context, _ string) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	_, err := p.run(t, s, toolCall("ask", ""))
	wantError(t, err, tool.Timeout, "mem.ask")
	call(t, s, "params", "")
}

func TestRounds(t *testing.T) {
	s := open(t, settings(t, "talk,modern"), &upstream.Options{Asks: true})
	p := &peer{}
	result, err := p.run(t, s, toolCall("input", `{"x":1}`))
	got := string(must(t, result, err).Structured)
	for _, part := range []string{
		`"arguments":{"x":1}`, `"inputResponses":{"a":{"action":"accept","content":{"n":9007199254740993}},"b":{`, `"requestState":"s\u003c1\u003e"`,
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}},"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the second request lacks %s: %s", part, got)
		}
	}
	if want := []string{`roots/list `, `elicitation/create {"message":"Sure?","n":9007199254740993}`}; cmp.Diff(want, p.asked) != "" {
		t.Errorf("asked %q", p.asked)
	}
	c := toolCall("input", "")
	c.Rounds = true
	result, err = s.Call(t.Context(), c)
	if got := string(must(t, result, err).Raw); !strings.HasPrefix(got, `{"resultType":"input_required","inputRequests":{"b":`) {
		t.Errorf("raw result: %s", got)
	}
}

func TestRoundsThatEndBadly(t *testing.T) {
	s := open(t, settings(t, "talk,modern"), &upstream.Options{Asks: true})
	p := &peer{}
	_, err := p.run(t, s, toolCall("endless", ""))
	wantError(t, err, tool.Failed, "still asks after 16 rounds")
	if len(p.asked) != 16 {
		t.Errorf("asked %d times", len(p.asked))
	}
	_, err = s.Call(t.Context(), toolCall("input", ""))
	wantError(t, err, tool.Failed, "mem.input: the upstream requires input", "a program cannot answer")
	_, err = (&peer{answer: func(context.Context, string) (json.RawMessage, error) {
		return nil, &tool.Error{Kind: tool.Denied, Message: "she said no"}
	}}).run(t, s, toolCall("input", ""))
	wantError(t, err, tool.Failed, "she said no")
	p = &peer{}
	_, err = p.run(t, s, toolCall("many_questions", ""))
	wantError(t, err, tool.Failed, "100 questions at once")
	_, err = s.Call(t.Context(), toolCall("odd_type", ""))
	wantError(t, err, tool.Upstream, "unknown resultType")
	if p.asked != nil {
		t.Errorf("asked %v", p.asked)
	}
}

func TestBusyIsBoundedByTheCall(t *testing.T) {
	cfg := settings(t, "talk,modern")
	cfg.Timeout = 400 * time.Millisecond
	s := open(t, cfg, nil)
	connect(t, s)
	_, err := s.Call(t.Context(), toolCall("busy", ""))
	wantError(t, err, tool.Timeout, "mem.busy")
}
