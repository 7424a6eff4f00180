package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/bench/agent"
	"sallyport/bench/endpoint"
	"sallyport/bench/endpoint/endpointtest"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// shelf is tools that know the weights of some things; weigh is found by a search where one is asked for.
type shelf struct{ search bool }

var weigh = tokencount.Definition{
	Name: "shelf__weigh", Description: "Weighs <one> thing",
	InputSchema: json.RawMessage(`{"$schema":"x","type":"object","properties":{"thing":{"type":"string"}},"required":["thing"]}`),
}

func (shelf) Instructions() []string { return []string{"Weigh only what is there."} }

func (s shelf) Definitions() []tokencount.Definition {
	if s.search {
		return []tokencount.Definition{{Name: suite.SearchTool, InputSchema: json.RawMessage(`{"type":"object"}`)}}
	}
	return []tokencount.Definition{weigh, {Name: "shelf__list"}}
}

func (shelf) Call(_ context.Context, call tokencount.Call) (tokencount.Result, error) {
	switch call.Tool {
	case suite.SearchTool:
		return tokencount.Result{Text: "shelf__weigh", Shows: []tokencount.Definition{weigh}}, nil
	case "shelf__list":
		return tokencount.Result{Text: ""}, nil
	}
	var args struct{ Thing string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tokencount.Result{}, err
	}
	return tokencount.Result{Text: strings.Repeat("I", len(args.Thing)) + " & <b>"}, nil
}

// weighing makes two turns of calls, two in the first of them.
func weighing() *suite.Task {
	thing := func(name string) tokencount.Call {
		return suite.Call("shelf.weigh", map[string]string{"thing": name})
	}
	return &suite.Task{
		Name: "weighing", Prompt: "How heavy are an apple & a fig?", Needs: []string{"shelf.weigh"}, Queries: [][]string{{"scales"}},
		Direct: func(m *suite.ScriptRun) string {
			first := m.All(thing("apple"), thing("fig"))
			return strings.Join(append(first, m.All(thing("pear"))...), " ")
		},
	}
}

const weighed = "IIIII & <b> III & <b> IIII & <b>"

// rig is a server and a model that it is.
func rig(t *testing.T, api endpoint.API, task *suite.Task) (*endpointtest.Server, *endpoint.Endpoint) {
	t.Helper()
	world, err := suite.NewWorld(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := endpointtest.New(t, api, func() *suite.World { return world })
	s.Tasks = []*suite.Task{task}
	return s, open(t, endpoint.Settings{URL: s.URL, API: api, Key: endpointtest.Key, Backoff: time.Millisecond})
}

func open(t *testing.T, settings endpoint.Settings) *endpoint.Endpoint {
	t.Helper()
	e, err := endpoint.Open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func apis() []endpoint.API { return []endpoint.API{endpoint.OpenAI, endpoint.Anthropic} }

func TestTask(t *testing.T) {
	for _, api := range apis() {
		for _, mode := range []suite.Mode{suite.Direct, suite.Search} {
			t.Run(string(api)+"/"+string(mode), func(t *testing.T) {
				s, e := rig(t, api, weighing())
				talk := e.Begin()
				transcript := tokencount.Transcript{Prompt: weighing().Prompt}
				used, err := agent.Run(t.Context(), talk, shelf{mode == suite.Search}, &transcript, agent.Limits{Turns: 9})
				if err != nil || transcript.Answer != weighed {
					t.Fatalf("%q, %v", transcript.Answer, err)
				}
				turns := 3
				if mode == suite.Search {
					turns = 4
				}
				if len(transcript.Turns) != turns || s.TurnCount() != turns {
					t.Errorf("%d turns, %d requests", len(transcript.Turns), s.TurnCount())
				}
				if used != talk.Used || used.Input <= used.Cached || used.Cached == 0 || used.Output == 0 || (used.Stored > 0) != (api == endpoint.Anthropic) {
					t.Errorf("used %+v, and %+v", used, talk.Used)
				}
				if e.Model() != endpointtest.Model || !strings.HasPrefix(talk.Served, endpointtest.Model+"-2026") || e.Host() != strings.TrimPrefix(s.URL, "https://") {
					t.Errorf("model %s, served %s, host %s", e.Model(), talk.Served, e.Host())
				}
			})
		}
	}
}

// bench is tools in code mode whose first program ends with an error.
type bench struct {
	shelf
	runs int
}

func (*bench) Definitions() []tokencount.Definition {
	return []tokencount.Definition{{Name: suite.SearchTools}, {Name: suite.ExecuteCode}}
}

func (b *bench) Call(_ context.Context, call tokencount.Call) (tokencount.Result, error) {
	if call.Tool == suite.SearchTools {
		return tokencount.Result{Text: "from servers.shelf import ...\n  weigh(thing: str)"}, nil
	}
	if b.runs++; b.runs == 1 {
		return tokencount.Result{Text: "KeyError: 'weight'\n  line 1: x", Error: true}, nil
	}
	return tokencount.Result{Text: weighed}, nil
}

// A mistake that a script makes is one in both APIs, though one of them has no mark for it.
func TestCode(t *testing.T) {
	for _, api := range apis() {
		t.Run(string(api), func(t *testing.T) {
			task := weighing()
			file := suite.Tasks()[1].Programs[0].File // an addition, for which nothing has to be read
			task.Programs = []suite.Program{{File: file, Fails: "KeyError: 'weight'", Needs: task.Needs}, {File: file, Needs: task.Needs}}
			_, e := rig(t, api, task)
			transcript := tokencount.Transcript{Prompt: task.Prompt}
			if _, err := agent.Run(t.Context(), e.Begin(), &bench{}, &transcript, agent.Limits{Turns: 9}); err != nil || transcript.Answer != weighed || len(transcript.Turns) != 4 {
				t.Errorf("%q after %d turns, %v", transcript.Answer, len(transcript.Turns), err)
			}
		})
	}
}

// What a model writes that nobody can call is answered, and goes back in a form that endpoints take.
func TestMistakes(t *testing.T) {
	for _, api := range apis() {
		t.Run(string(api), func(t *testing.T) {
			s, e := rig(t, api, weighing())
			s.Override = func(turn int) *agent.Move {
				switch {
				case turn == 0:
					return &agent.Move{Text: "well", Calls: []tokencount.Call{{Tool: "shelf.weigh it", Args: json.RawMessage(`{}`)}, {Tool: "shelf__list", Args: json.RawMessage(`{}`)}}}
				case turn == 1 && api == endpoint.OpenAI:
					return &agent.Move{Text: "now", Calls: []tokencount.Call{{Tool: "shelf__weigh", Args: json.RawMessage(`{"thing": `)}}}
				}
				return nil
			}
			transcript := tokencount.Transcript{Prompt: weighing().Prompt}
			_, err := agent.Run(t.Context(), e.Begin(), shelf{}, &transcript, agent.Limits{Turns: 9})
			if err != nil || transcript.Answer != weighed {
				t.Fatalf("%q, %v", transcript.Answer, err)
			}
			first := transcript.Turns[0]
			if first.Text != "well" || first.Calls[0].Tool != "shelf.weigh it" || !first.Results[0].Error || first.Results[1].Error {
				t.Errorf("first turn %+v", first)
			}
			if second := transcript.Turns[1]; api == endpoint.OpenAI && (!second.Results[0].Error || string(second.Calls[0].Args) != `"{\"thing\": "`) {
				t.Errorf("second turn %+v", second)
			}
		})
	}
}

func TestWithoutEnd(t *testing.T) {
	s, e := rig(t, endpoint.OpenAI, weighing())
	s.Override = func(int) *agent.Move {
		return &agent.Move{Calls: []tokencount.Call{{Tool: "shelf__list", Args: json.RawMessage(`{}`)}}}
	}
	_, err := agent.Run(t.Context(), e.Begin(), shelf{}, &tokencount.Transcript{Prompt: weighing().Prompt}, agent.Limits{Turns: 3})
	if !errors.Is(err, agent.ErrLimit) || s.TurnCount() != 3 {
		t.Errorf("%d requests, %v", s.TurnCount(), err)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"error": {"message": "said \u001b[31mso to ` + endpointtest.Key + `"}}`))
	}
}

func TestAnotherTry(t *testing.T) {
	for _, api := range apis() {
		t.Run(string(api), func(t *testing.T) {
			s, e := rig(t, api, weighing())
			s.Before(
				status(429, "Retry-After", "0"), status(500), status(529), status(503, "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"),
				nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			)
			talk := e.Begin()
			transcript := tokencount.Transcript{Prompt: weighing().Prompt}
			_, err := agent.Run(t.Context(), talk, shelf{}, &transcript, agent.Limits{})
			if err != nil || transcript.Answer != weighed || s.TurnCount() != 8 || talk.Waited == 0 {
				t.Errorf("%q after %d requests, %s, %v", transcript.Answer, s.TurnCount(), talk.Waited, err)
			}
		})
	}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(make([]byte, 1<<16)); err != nil {
			return
		}
	}
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		api    endpoint.API
		answer http.HandlerFunc
		asked  int32
		kind   tool.Kind
		want   string
	}{
		{"key", endpoint.OpenAI, status(401), 1, tool.Denied, "answered 401: said so to [key] (the key comes from the environment"},
		{"path", endpoint.OpenAI, status(404), 1, tool.NotFound, "such as http://localhost:11434/v1"},
		{"path of messages", endpoint.Anthropic, status(404), 1, tool.NotFound, "/v1/messages answered 404: said so"},
		{"redirect", endpoint.OpenAI, status(307, "Location", "https://elsewhere.test/v1?key=x"), 1, tool.NotFound, "it leads to https://elsewhere.test/v1 (a redirect is not followed"},
		{"busy", endpoint.OpenAI, status(429, "Retry-After", "0"), 5, tool.Limit, "answered 429"},
		{"long wait", endpoint.OpenAI, status(429, "Retry-After", "300"), 1, tool.Limit, "answered 429: said so to [key] (try again in 5m0s)"},
		{"long rest", endpoint.OpenAI, status(503, "Retry-After", "3600"), 1, tool.Upstream, "answered 503: said so to [key] (try again in 1h0m0s)"},
		{"broken", endpoint.Anthropic, status(500), 5, tool.Upstream, "answered 500: said so to [key] (its log may say why)"},
		{"broken off", endpoint.OpenAI, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 5, tool.Upstream, "INTERNAL_ERROR; received from peer (its log may say why)"},
		{"stream", endpoint.OpenAI, body("data: {}\n\ndata: [DONE]\n\n"), 1, tool.Upstream, "/chat/completions streams its answer, which it was not asked to"},
		{"stream of messages", endpoint.Anthropic, body("\nevent: message_start\ndata: {}\n\n"), 1, tool.Upstream, "/messages streams its answer"},
		{"TLS", endpoint.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "The plain HTTP request was sent to HTTPS port", http.StatusBadRequest)
		}, 1, tool.Invalid, "HTTPS port (is it https://?)"},
		{"no page", endpoint.OpenAI, body("<html>hello</html>"), 1, tool.Upstream, "with text, not with JSON: <html>hello</html>"},
		{"other JSON", endpoint.OpenAI, body(`{"message":"hello ` + endpointtest.Key + `"}`), 1, tool.Upstream, "no choices that can be read: hello [key] (see --api"},
		{"other API", endpoint.Anthropic, body(`{"choices":[],"error":null}`), 1, tool.Upstream, "no content that can be read"},
		{"no message", endpoint.OpenAI, body(`[]`), 1, tool.Upstream, "no choices"},
		{"calls", endpoint.OpenAI, body(`{"choices":[{"message":{"tool_calls":["` + endpointtest.Key + `"]}}]}`), 1, tool.Upstream, "no tool_calls"},
		{"blocks", endpoint.Anthropic, body(`{"type":"message","content":[1]}`), 1, tool.Upstream, "no content"},
		{"error inside", endpoint.OpenAI, body(`{"error":{"message":"invalid key ` + endpointtest.Key + `"}}`), 1, tool.Upstream, "/chat/completions answered with an error: invalid key [key] (--key-env names"},
		{"error inside messages", endpoint.Anthropic, body(`{"type":"error","error":{"message":"` + strings.Repeat("-", 190) + endpointtest.Key + `"}}`), 1, tool.Upstream, "-[key]"},
		{"cut", endpoint.OpenAI, body(`{"choices":[{"finish_reason":"length","message":{"content":"a"}}]}`), 1, tool.Failed, "finish_reason length"},
		{"cut", endpoint.Anthropic, body(`{"type":"message","stop_reason":"max_tokens","content":[{"type":"text","text":"a"}]}`), 1, tool.Failed, "stop_reason max_tokens"},
		{"no tools", endpoint.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":"tiny does not support tools, see https://docs.test"}`, http.StatusBadRequest)
		}, 1, tool.Invalid, "tiny does not support tools, see https://docs.test (the model must be able to call tools"},
		{"large", endpoint.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"maximum context length is 10 tokens"}}`, http.StatusBadRequest)
		}, 1, tool.Invalid, "maximum context length is 10 tokens"},
		{"endless", endpoint.OpenAI, endless, 1, tool.Upstream, "an answer of more than 8 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int32
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				test.answer(w, r)
			})
			start := func() *httptest.Server { return tlstest.NewServer(t, handler) }
			if test.name == "TLS" {
				start = func() *httptest.Server { return httptest.NewServer(handler) }
			}
			s := start()
			defer s.Close()
			e := open(t, endpoint.Settings{URL: s.URL, API: test.api, Key: endpointtest.Key, Model: "m", Backoff: time.Microsecond})
			_, err := e.Begin().Next(t.Context(), &tokencount.Transcript{Prompt: "hello"})
			fault, ok := errors.AsType[*tool.Error](err)
			if !ok || fault.Kind != test.kind || !strings.Contains(err.Error(), test.want) || asked.Load() != test.asked {
				t.Errorf("%d requests: %v", asked.Load(), err)
			}
			if strings.Contains(err.Error(), endpointtest.Key[:8]) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("not clean: %q", err)
			}
		})
	}
}

// An endpoint that says nothing costs a task its time, and no more.
func TestHang(t *testing.T) {
	asked, gone := make(chan bool, 1), make(chan bool)
	s := tlstest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body) // only then the server sees that a client goes
		asked <- true
		<-r.Context().Done()
		close(gone)
	}))
	defer s.Close()
	e := open(t, endpoint.Settings{URL: s.URL, Model: "m"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := e.Begin().Next(ctx, &tokencount.Transcript{Prompt: "hello"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-gone
}

func TestNobodyListens(t *testing.T) {
	s := tlstest.NewServer(t, http.NotFoundHandler())
	s.Close()
	_, err := endpoint.Open(t.Context(), endpoint.Settings{URL: s.URL})
	if err == nil || !strings.Contains(err.Error(), "no answer from localhost") || !strings.Contains(err.Error(), "see that it runs") {
		t.Error(err)
	}
}

// Who takes one scheme for the other is told at once.
func TestSchemes(t *testing.T) {
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	clear, secret := httptest.NewServer(page), httptest.NewUnstartedServer(page)
	defer clear.Close()
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.StartTLS()
	defer secret.Close()
	for url, want := range map[string]string{
		"https" + strings.TrimPrefix(clear.URL, "http"):  "(is it http://?)",
		"http" + strings.TrimPrefix(secret.URL, "https"): "(is it https://?)",
		"https" + strings.TrimPrefix(greeter(t), "http"): "(is it http://?)",
		secret.URL: "(its certificate must be one that this machine trusts",
	} {
		talk := open(t, endpoint.Settings{URL: url, Model: "m", Backoff: time.Microsecond}).Begin()
		if _, err := talk.Next(t.Context(), &tokencount.Transcript{Prompt: "hello"}); err == nil || !strings.Contains(err.Error(), want) || talk.Waited > 0 {
			t.Errorf("%s: waited %s, %v", url, talk.Waited, err)
		}
	}
}

// greeter is a server that speaks first, and not HTTP.
func greeter(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("<!DOCTYPE html>\n"))
			_, _ = conn.Read(make([]byte, 1)) // what was sent before is not lost then
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// What is cut was billed; what the endpoint says of itself is shown in one line.
func TestAnswered(t *testing.T) {
	usage := `"model":"evil\nname \u001b[31m` + endpointtest.Key + strings.Repeat("x", 99) + `","usage":{"prompt_tokens":10,"completion_tokens":2}`
	for answer, turns := range map[string]int{
		`{"choices":[{"finish_reason":"stop","message":{"content":"a"}}],` + usage + `}`:   1,
		`{"choices":[{"finish_reason":"length","message":{"content":"a"}}],` + usage + `}`: 1,
		`{"choices":[{"message":{"tool_calls":["x"]}}],` + usage + `}`:                     1,
		`{"error":"no"}`: 0,
	} {
		s := tlstest.NewServer(t, body(answer))
		talk := open(t, endpoint.Settings{URL: s.URL, Key: endpointtest.Key, Model: "m"}).Begin()
		_, _ = talk.Next(t.Context(), &tokencount.Transcript{Prompt: "hello"})
		if talk.Turns != turns || talk.Used != (agent.Usage{Input: 10 * turns, Output: 2 * turns}) {
			t.Errorf("%s: %d turns, %+v", answer, talk.Turns, talk.Used)
		}
		if turns > 0 && (!strings.HasPrefix(talk.Served, "evil name [key]x") || len(talk.Served) > 90) {
			t.Errorf("served %q", talk.Served)
		}
		s.Close()
	}
}

// Where the time is over between two tries, it is known what the last one came to.
func TestNoTimeForAnotherTry(t *testing.T) {
	s := httptest.NewServer(status(429, "Retry-After", "60")) // HTTP/1.1, whose connections tell when they are idle
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{PutIdleConn: func(error) { cancel() }}) // all has been read then
	talk := open(t, endpoint.Settings{URL: s.URL, Key: endpointtest.Key, Model: "m"}).Begin()
	if _, err := talk.Next(ctx, &tokencount.Transcript{Prompt: "hello"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if talk.Fault == nil || !strings.Contains(talk.Fault.Message, "answered 429: said so to [key]") || talk.Turns != 0 {
		t.Errorf("fault %v after %d turns", talk.Fault, talk.Turns)
	}
}

// Without a name an endpoint that says nothing is given up soon.
func TestModelsHang(t *testing.T) {
	s := tlstest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	_, err := endpoint.Open(t.Context(), endpoint.Settings{URL: s.URL, Listing: 20 * time.Millisecond})
	if fault, ok := errors.AsType[*tool.Error](err); !ok || fault.Kind != tool.Timeout || !strings.Contains(err.Error(), "does not say within 20ms which models it has (--name MODEL says which model)") {
		t.Error(err)
	}
}

func TestModels(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{`{"data":[{"id":"one"}]}`, ""},
		{`{"data":[{"id":"one"},{"id":"two\u001b"}]}`, "has 2: one, two"},
		{`{"data":[]}`, "no model is named (--name MODEL says which model)"},
		{`{"data":3}`, "no model is named"},
		{`{"data":[{"id":"one\ntwo"}]}`, "has 1: one two"},
		{`{"data":[{"id":"` + strings.Repeat("long", 99) + `"}]}`, "has 1: longlong"},
	} {
		s := tlstest.NewServer(t, body(test.list))
		e, err := endpoint.Open(t.Context(), endpoint.Settings{URL: s.URL})
		if err != nil && test.want == "" || err == nil && (test.want != "" || e.Model() != "one") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.list, err)
		}
		s.Close()
	}
}
