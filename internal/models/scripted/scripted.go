// Package scripted is the endpoint of a model that says what a function returns. It is as strict as a real one: it refuses
// unknown fields, parameters that its model does not take, wrong keys, and conversations out of turn. It streams as the
// real ones do. Examples use it where there is no model, and tests through package modeltest.
package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"sallyport/internal/models"
)

// Key is the required key, Name the only model, which is also the deployment of Azure.
const (
	Key  = "sk-test-S3cret-0123456789"
	Name = "scripted-1"
)

// Turn is a request, in the common form of all APIs.
type Turn struct {
	// Number counts the requests that were answered, from 1.
	Number   int
	System   string
	Messages []models.Message
	// Limit is the bound of the answer, Temperature the temperature, nil for none.
	Limit       int
	Temperature *float64
	// Params are the names of the members of the request.
	Params map[string]bool
}

// Last returns the text of the last message.
func (t Turn) Last() string { return t.Messages[len(t.Messages)-1].Text }

// Model is an endpoint, an [http.Handler]. Its fields are set before the first request.
type Model struct {
	API models.API
	// Reply returns the model's text.
	Reply func(Turn) string
	// Refuses are parameters that the model does not take, such as max_tokens.
	Refuses []string
	// NoStream answers in one piece, also if a stream was requested.
	NoStream bool
	// NoUsage reports no usage.
	NoUsage bool

	mu       sync.Mutex
	before   []http.HandlerFunc
	requests int
	answered []Turn
}

// Script returns a Reply that says one text after the other, and the last one for ever.
func Script(texts ...string) func(Turn) string {
	return func(t Turn) string { return texts[min(t.Number, len(texts))-1] }
}

// Settings returns the settings of a client of the endpoint at a URL.
func (s *Model) Settings(url string) models.Settings {
	out := models.Settings{API: s.API, URL: url, Key: Key, Price: models.Price{Input: 2, Cached: 1, Output: 10}}
	if s.API == models.Azure {
		out.Deployment, out.APIVersion = Name, models.DefaultAPIVersion
	} else {
		out.Model = Name
	}
	return out
}

// Before sets handlers for the first requests; nil means the normal response.
func (s *Model) Before(first ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = first
}

// Requests returns the number of requests.
func (s *Model) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Turns returns the requests that were answered.
func (s *Model) Turns() []Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Turn(nil), s.answered...)
}

// ServeHTTP answers a request to the model.
func (s *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if n := s.requests; n <= len(s.before) && s.before[n-1] != nil {
		s.before[n-1](w, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.RequestURI() != s.path() {
		s.refuse(w, http.StatusNotFound, "not_found", "", "no resource at "+r.URL.Path)
		return
	}
	if !s.allowed(r) {
		s.refuse(w, http.StatusUnauthorized, "authentication_error", "", "Incorrect API key provided: "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("Api-Key"))
		return
	}
	var raw map[string]json.RawMessage
	turn, err := s.decode(r, &raw)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	for _, name := range s.Refuses {
		if raw[name] != nil {
			s.refuse(w, http.StatusBadRequest, "invalid_request_error", name, refusal(name))
			return
		}
	}
	turn.Number = len(s.answered) + 1
	s.answered = append(s.answered, turn)
	s.answer(w, turn, string(raw["stream"]) == "true" && !s.NoStream)
}

// refusal is the text that OpenAI refuses a parameter with.
func refusal(name string) string {
	if name == "max_tokens" {
		return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
	}
	return fmt.Sprintf("Unsupported value: '%s' is not supported with this model.", name)
}

func (s *Model) path() string {
	switch s.API {
	case models.Anthropic:
		return "/v1/messages"
	case models.Azure:
		return "/openai/deployments/" + Name + "/chat/completions?api-version=" + models.DefaultAPIVersion
	}
	return "/v1/chat/completions"
}

func (s *Model) allowed(r *http.Request) bool {
	switch s.API {
	case models.Anthropic:
		return r.Header.Get("X-Api-Key") == Key && r.Header.Get("Anthropic-Version") == "2023-06-01"
	case models.Azure:
		return r.Header.Get("Api-Key") == Key
	}
	return r.Header.Get("Authorization") == "Bearer "+Key
}

func (s *Model) refuse(w http.ResponseWriter, status int, kind, param, said string) {
	body := map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": said}}
	if s.API != models.Anthropic {
		var about any
		if param != "" {
			about = param
		}
		body = map[string]any{"error": map[string]any{"type": kind, "message": said, "param": about, "code": kind}}
	}
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

// decode reads a request strictly.
func (s *Model) decode(r *http.Request, raw *map[string]json.RawMessage) (t Turn, err error) {
	var body bytes.Buffer
	if _, err = body.ReadFrom(r.Body); err != nil {
		return t, err
	}
	if err = json.Unmarshal(body.Bytes(), raw); err != nil {
		return t, err
	}
	if s.API == models.Anthropic {
		t, err = decodeMessages(body.Bytes())
	} else {
		t, err = decodeChat(body.Bytes(), s.API == models.Azure)
	}
	if err != nil {
		return t, err
	}
	t.Params = map[string]bool{}
	for name := range *raw {
		t.Params[name] = true
	}
	return t, t.check()
}

// check refuses a conversation out of turn.
func (t Turn) check() error {
	for i, m := range t.Messages {
		if m.Assistant != (i%2 == 1) || strings.TrimSpace(m.Text) == "" {
			return fmt.Errorf("messages.%d: roles must alternate, and texts must not be empty", i)
		}
	}
	if len(t.Messages)%2 == 0 || t.Limit < 1 {
		return fmt.Errorf("%d messages, a limit of %d", len(t.Messages), t.Limit)
	}
	return nil
}

func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func decodeChat(data []byte, azure bool) (t Turn, err error) {
	var b struct {
		Model    string
		Messages []struct{ Role, Content string }
		Stream   bool
		Options  *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		MaxTokens           int `json:"max_tokens"`
		MaxCompletionTokens int `json:"max_completion_tokens"`
		Temperature         *float64
	}
	if err = strict(data, &b); err != nil {
		return t, err
	}
	if !azure && b.Model != Name || b.MaxTokens > 0 && b.MaxCompletionTokens > 0 {
		return t, fmt.Errorf("model %q, and both bounds: %v", b.Model, b.MaxTokens > 0)
	}
	t.Limit, t.Temperature = b.MaxTokens+b.MaxCompletionTokens, b.Temperature
	for i, m := range b.Messages {
		switch {
		case m.Role == "system" && i == 0:
			t.System = m.Content
		case m.Role == "user" || m.Role == "assistant":
			t.Messages = append(t.Messages, models.Message{Assistant: m.Role == "assistant", Text: m.Content})
		default:
			return t, fmt.Errorf("messages.%d: role %q", i, m.Role)
		}
	}
	return t, nil
}

type part struct {
	Type, Text string
	Cache      *struct{ Type string } `json:"cache_control"`
}

func decodeMessages(data []byte) (t Turn, err error) {
	var b struct {
		Model       string
		MaxTokens   int `json:"max_tokens"`
		System      []part
		Stream      bool
		Temperature *float64
		Messages    []struct {
			Role    string
			Content []part
		}
	}
	if err = strict(data, &b); err != nil {
		return t, err
	}
	if b.Model != Name {
		return t, fmt.Errorf("model %q", b.Model)
	}
	t.Limit, t.Temperature = b.MaxTokens, b.Temperature
	for _, p := range b.System {
		t.System += p.Text
	}
	for _, m := range b.Messages {
		var text strings.Builder
		for _, p := range m.Content {
			text.WriteString(p.Text)
		}
		t.Messages = append(t.Messages, models.Message{Assistant: m.Role == "assistant", Text: text.String()})
	}
	if marks := bytes.Count(data, []byte(`"cache_control"`)); marks > 4 {
		return t, fmt.Errorf("%d marks of the cache", marks)
	}
	return t, nil
}
