// Package recognizertest has a fake Presidio analyzer: https, the checks of its POST /analyze, and responses in its
// format. It finds the names that it is given.
package recognizertest

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"sallyport/internal/testutil/tlstest"
)

// Server is a running fake.
type Server struct {
	// URL is its address, without a path.
	URL string
	// Down, if set, handles requests in its place.
	Down atomic.Pointer[http.HandlerFunc]
	// NoLists, set before the first request, rejects lists of texts, as older analyzers do.
	NoLists bool

	known map[string]string // entity types by value
	mu    sync.Mutex
	texts []string
	calls int
}

// New starts a fake that knows values and their types; its certificate is signed by [tlstest.Authority].
func New(t testing.TB, known map[string]string) *Server {
	t.Helper()
	s := &Server{known: known}
	s.URL = tlstest.NewServer(t, s).URL
	return s
}

// Requests returns the texts that were sent, and in how many requests.
func (s *Server) Requests() (texts []string, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts), s.calls
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if down := s.Down.Load(); down != nil {
		(*down)(w, r)
		return
	}
	if r.URL.Path != "/analyze" {
		fail(w, http.StatusNotFound, "The requested URL was not found on the server.")
		return
	}
	if r.Method != http.MethodPost {
		fail(w, http.StatusMethodNotAllowed, "The method is not allowed for the requested URL.")
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		fail(w, http.StatusInternalServerError, "415 Unsupported Media Type")
		return
	}
	var body map[string]any
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		fail(w, http.StatusInternalServerError, "400 Bad Request")
		return
	}
	answer, status, wrong := s.analyze(body)
	if wrong != "" {
		fail(w, status, wrong)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

// analyze is the handler of presidio-analyzer's app.py.
func (s *Server) analyze(body map[string]any) (answer any, status int, wrong string) {
	threshold, _ := body["score_threshold"].(float64)
	texts, batch := body["text"].([]any)
	if one, ok := body["text"].(string); ok && one != "" {
		texts = []any{one}
	}
	switch {
	case batch && s.NoLists:
		return nil, http.StatusInternalServerError, "expected string or bytes-like object"
	case len(texts) == 0:
		return nil, http.StatusInternalServerError, "No text provided"
	case body["language"] == nil || body["language"] == "":
		return nil, http.StatusInternalServerError, "No language provided"
	case body["language"] != "en":
		return nil, http.StatusInternalServerError, "No matching recognizers were found to serve the request."
	}
	entities, wrong := s.entities(body["entities"])
	if wrong != "" {
		return nil, http.StatusInternalServerError, wrong
	}
	lists := []any{}
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	for _, value := range texts {
		text, ok := value.(string)
		if !ok {
			return nil, http.StatusInternalServerError, "Error processing the batch: texts must be strings"
		}
		s.mu.Lock()
		s.texts = append(s.texts, text)
		s.mu.Unlock()
		lists = append(lists, s.find([]rune(text), entities, threshold))
	}
	if batch {
		return lists, http.StatusOK, ""
	}
	return lists[0], http.StatusOK, ""
}

// entities returns the requested entities; an analyzer that knows none of them has no recognizers.
func (s *Server) entities(asked any) (names []string, wrong string) {
	list, given := asked.([]any)
	if asked != nil && !given {
		return nil, "entities must be a list"
	}
	for _, known := range []string{"PERSON", "LOCATION", "NRP", "DATE_TIME"} {
		if !given || slices.Contains(list, any(known)) {
			names = append(names, known)
		}
	}
	if len(names) == 0 {
		return nil, "No matching recognizers were found to serve the request."
	}
	return names, ""
}

// find responds as Presidio does: code points, highest score first, so not in text order.
func (s *Server) find(text []rune, entities []string, threshold float64) []map[string]any {
	found := []map[string]any{}
	for value, entity := range s.known {
		runes := []rune(value)
		for i := 0; i+len(runes) <= len(text); i++ {
			if !slices.Equal(text[i:i+len(runes)], runes) || !slices.Contains(entities, entity) || threshold > score {
				continue
			}
			found = append(found, map[string]any{"analysis_explanation": nil, "end": i + len(runes), "entity_type": entity, "score": score, "start": i})
		}
	}
	slices.SortFunc(found, func(a, b map[string]any) int { return b["start"].(int) - a["start"].(int) }) //nolint:forcetypeassert // as written above
	return found
}

// score is Presidio's score for findings of a model.
const score = 0.85

// FixedResponse returns a handler with a fixed response.
func FixedResponse(status int, body string) *http.HandlerFunc {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	})
	return &handler
}
