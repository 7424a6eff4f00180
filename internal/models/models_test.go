package models_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/tool"
)

var apis = []models.API{models.OpenAI, models.Azure, models.Anthropic}

func open(t *testing.T, s models.Settings) *models.Endpoint {
	t.Helper()
	e, err := models.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func ask(text string) models.Request {
	return models.Request{System: "Be short.", Messages: []models.Message{{Text: text}}}
}

// TestAnswers: text, usage and price come through in each API, streamed and in one piece.
func TestAnswers(t *testing.T) {
	for _, api := range apis {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprint(api, " whole ", whole), func(t *testing.T) {
				said := strings.Repeat("Zürich <b> & ", 20)
				s := modeltest.New(t, api, func(modeltest.Turn) string { return said })
				s.NoStream = whole
				seen := 0
				r := ask("where?")
				r.Progress = func(n int) { seen = n }
				a, err := open(t, s.Settings()).Ask(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				turn := s.Turns()[0]
				if a.Text != said || turn.System != "Be short." || turn.Last() != "where?" || !strings.HasPrefix(a.Model, modeltest.Model+"-") || a.Cut {
					t.Errorf("answer %+v to %+v", a, turn)
				}
				if want := (models.Usage{Input: 4, Output: len(said)/4 + 1}); a.Usage != want {
					t.Errorf("usage %+v, want %+v", a.Usage, want)
				}
				if got, want := s.Settings().Price.Of(a.Usage), (4*2+float64(len(said)/4+1)*10)/1e6; got != want {
					t.Errorf("price %v, want %v", got, want)
				}
				if !whole && seen != len(said) {
					t.Errorf("progress %d", seen)
				}
			})
		}
	}
}

// TestCached: what was read from a cache costs less.
func TestCached(t *testing.T) {
	for _, api := range apis {
		s := modeltest.New(t, api, modeltest.Script("ok"))
		r := models.Request{System: strings.Repeat("s", 400), Messages: []models.Message{{Text: "a"}, {Assistant: true, Text: "b"}, {Text: "c"}}}
		a, err := open(t, s.Settings()).Ask(t.Context(), r)
		if err != nil || a.Usage != (models.Usage{Input: 101, Cached: 101, Output: 1}) {
			t.Errorf("%s: %+v, %v", api, a.Usage, err)
		}
	}
}

// TestLearned: what the model refuses is omitted, and not sent again.
func TestLearned(t *testing.T) {
	hot := 0.5
	for _, test := range []struct {
		refuses  []string
		sent     []string
		requests int
	}{
		{nil, []string{"max_tokens", "temperature", "stream_options"}, 1},
		{[]string{"max_tokens"}, []string{"max_completion_tokens", "temperature"}, 2},
		{[]string{"temperature", "max_tokens", "stream_options"}, []string{"max_completion_tokens"}, 4},
	} {
		s := modeltest.New(t, models.OpenAI, modeltest.Script("ok"))
		s.Refuses = test.refuses
		settings := s.Settings()
		settings.Temperature = &hot
		e := open(t, settings)
		for range 2 {
			if _, err := e.Ask(t.Context(), ask("x")); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Requests(); got != test.requests+1 {
			t.Errorf("%v: %d requests, want %d", test.refuses, got, test.requests+1)
		}
		last := s.Turns()[1]
		for _, name := range test.sent {
			if !last.Params[name] {
				t.Errorf("%v: %s is missing in %v", test.refuses, name, last.Params)
			}
		}
	}
}

// TestOtherRefusals: a refusal that is about something else is an error at once.
func TestOtherRefusals(t *testing.T) {
	s := modeltest.New(t, models.OpenAI, modeltest.Script("ok"))
	s.Refuses = []string{"messages"}
	_, err := open(t, s.Settings()).Ask(t.Context(), ask("x"))
	if e := tool.AsError(err); e.Kind != tool.Invalid || s.Requests() != 1 {
		t.Errorf("%d requests, %v", s.Requests(), err)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":"status %d for %s"}}`, code, modeltest.Key)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		before []http.HandlerFunc
		least  time.Duration
		kind   tool.Kind
		tries  int
	}{
		{name: "retry-after", before: []http.HandlerFunc{status(429, "Retry-After", "1")}, least: time.Second, tries: 2},
		{name: "overloaded", before: []http.HandlerFunc{status(529), status(503)}, tries: 3},
		{name: "much later", before: []http.HandlerFunc{status(429, "Retry-After", "86400")}, kind: tool.Limit, tries: 1},
		{name: "key", before: []http.HandlerFunc{status(401)}, kind: tool.Denied, tries: 1},
		{name: "model", before: []http.HandlerFunc{status(404)}, kind: tool.NotFound, tries: 1},
		{name: "redirect", before: []http.HandlerFunc{status(307, "Location", "https://elsewhere.test/")}, kind: tool.NotFound, tries: 1},
		{name: "broken", before: []http.HandlerFunc{status(500), status(500), status(500), status(500), status(500)}, kind: tool.Upstream, tries: 5},
		{name: "cut stream", before: []http.HandlerFunc{stream(`data: {"choices":[{"delta":{"content":"half"}}]}` + "\n\n")}, tries: 2},
		{name: "error in stream", before: []http.HandlerFunc{stream(`data: {"error":{"message":"overloaded"}}` + "\n\n")}, kind: tool.Upstream, tries: 1},
		{name: "other API", before: []http.HandlerFunc{stream("data: {\"hello\":1}\n\n")}, kind: tool.Upstream, tries: 1},
		{name: "page", before: []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }}, kind: tool.Upstream, tries: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.New(t, models.OpenAI, modeltest.Script("ok"))
			s.Before(test.before...)
			settings := s.Settings()
			settings.Backoff = time.Millisecond
			a, err := open(t, settings).Ask(t.Context(), ask("x"))
			if test.kind == "" && (err != nil || a.Text != "ok" || a.Waited < test.least) || test.kind != "" && tool.AsError(err).Kind != test.kind {
				t.Errorf("%+v, %v", a, err)
			}
			if s.Requests() != test.tries {
				t.Errorf("%d requests, want %d", s.Requests(), test.tries)
			}
			if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), "S3cret") {
				t.Errorf("the key is in %v", err)
			}
		})
	}
}

func stream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
	}
}

// TestBounds: an answer that is too long, too large, silent or late ends, with a reason.
func TestBounds(t *testing.T) {
	t.Parallel()
	event := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 64<<10) + `"}}]}` + "\n\n"
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": ping\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, test := range []struct {
		name   string
		before http.HandlerFunc
		kind   tool.Kind
		change func(*models.Settings)
	}{
		{"flood", stream(strings.Repeat(event, 400)), tool.Limit, nil},
		{"one event", stream("data: " + strings.Repeat("x", 5<<20)), tool.Limit, nil},
		{"piece", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 17<<20)) }, tool.Limit, nil},
		{"silence", silent, tool.Timeout, func(s *models.Settings) { s.Silence = 50 * time.Millisecond }},
		{"late", silent, tool.Timeout, func(s *models.Settings) { s.Timeout = 50 * time.Millisecond }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.New(t, models.OpenAI, modeltest.Script("ok"))
			all := []http.HandlerFunc{test.before, test.before, test.before, test.before, test.before}
			s.Before(all...)
			settings := s.Settings()
			settings.Backoff = time.Millisecond
			if test.change != nil {
				test.change(&settings)
			}
			_, err := open(t, settings).Ask(t.Context(), ask("x"))
			if tool.AsError(err).Kind != test.kind || !strings.Contains(err.Error(), "localhost:") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, api := range apis {
		s := modeltest.New(t, api, modeltest.Script(strings.Repeat("long ", 100)))
		settings := s.Settings()
		settings.Answer = 5
		a, err := open(t, settings).Ask(t.Context(), ask("x"))
		if err != nil || !a.Cut || a.Usage.Output != 5 {
			t.Errorf("%s: %+v, %v", api, a, err)
		}
	}
}

func TestEstimated(t *testing.T) {
	for _, api := range apis {
		s := modeltest.New(t, api, modeltest.Script("four char"))
		s.NoUsage = true
		a, err := open(t, s.Settings()).Ask(t.Context(), ask("x"))
		if err != nil || a.Usage != (models.Usage{Input: 3, Output: 3, Estimated: true}) {
			t.Errorf("%s: %+v, %v", api, a.Usage, err)
		}
	}
}

// TestSaysKey: a model that repeats the key does not get it into an answer.
func TestSaysKey(t *testing.T) {
	s := modeltest.New(t, models.OpenAI, modeltest.Script("the key is "+modeltest.Key))
	a, err := open(t, s.Settings()).Ask(t.Context(), ask("x"))
	if err != nil || a.Text != "the key is [hidden]" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestCanceled(t *testing.T) {
	s := modeltest.New(t, models.OpenAI, modeltest.Script("ok"))
	ctx, cancel := context.WithCancel(t.Context())
	s.Before(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := open(t, s.Settings()).Ask(ctx, ask("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWrongSettings(t *testing.T) {
	for _, s := range []models.Settings{
		{API: "other", Model: "m"},
		{API: models.OpenAI},
		{API: models.OpenAI, Model: "m", URL: "localhost:1"},
		{API: models.OpenAI, Model: "m", URL: "https://user:S3cret@host.test"},
		{API: models.Azure, URL: "https://host.test"},
		{API: models.Azure, Deployment: "d"},
	} {
		if _, err := models.Open(s); tool.AsError(err).Kind != tool.Invalid || strings.Contains(err.Error(), "S3cret") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestEnvironment: the variables of other projects are understood.
func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		want models.Settings
		none bool
	}{
		{"nothing", nil, models.Settings{}, true},
		{"openai", map[string]string{"OPENAI_API_KEY": "k", "LLM_MODEL": "m"}, models.Settings{API: models.OpenAI, Key: "k", Model: "m"}, false},
		{"azure", map[string]string{"OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://a.test", "AZURE_OPENAI_API_KEY": "z", "AZURE_OPENAI_DEPLOYMENT_NAME": "d", "AZURE_OPENAI_API_VERSION": "v"},
			models.Settings{API: models.Azure, URL: "https://a.test", Key: "z", Deployment: "d", APIVersion: "v"}, false},
		{"chosen", map[string]string{"LLM_PROVIDER": "OpenAI", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "AZURE_OPENAI_ENDPOINT": "https://a.test", "AZURE_OPENAI_API_KEY": "z"},
			models.Settings{API: models.OpenAI, Key: "k", Model: "m"}, false},
		{"anthropic", map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MODEL": "m"}, models.Settings{API: models.Anthropic, Key: "k", Model: "m"}, false},
		{"ollama", map[string]string{"LLM_PROVIDER": "ollama", "LLM_MODEL": "m", "OLLAMA_HOST": "box:11434"}, models.Settings{API: models.OpenAI, URL: "http://box:11434", Model: "m"}, false},
	} {
		lookup := func(name string) (string, bool) { v, ok := test.env[name]; return v, ok }
		got, ok, err := models.FromEnvironment(lookup)
		if err != nil || ok == test.none || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", test.want) {
			t.Errorf("%s: %+v, %v, %v", test.name, got, ok, err)
		}
	}
	lookup := func(name string) (string, bool) {
		return map[string]string{"LLM_PROVIDER": "llama"}[name], name == "LLM_PROVIDER"
	}
	if _, _, err := models.FromEnvironment(lookup); err == nil || !strings.Contains(err.Error(), "azure_openai") {
		t.Error(err)
	}
}
