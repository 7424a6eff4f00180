package toolsearch_test

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

// noise is a vector that depends on a text, and says nothing about it.
func noise(text string) []float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float64, 64)
	for i := range v {
		v[i] = random.NormFloat64()
	}
	return v
}

// knowing returns the vectors of a model that knows which tool is meant by each query of the trial, if it gets a prefix.
func knowing(t *testing.T, prefix string) func(string) []float64 {
	t.Helper()
	text, err := os.ReadFile("trial.txt")
	if err != nil {
		t.Fatal(err)
	}
	meant, about := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if query, ok := strings.CutPrefix(line, "? "); ok {
			meant[prefix+query] = about
		} else if _, what, ok := strings.Cut(line, ": "); ok {
			about = what
		}
	}
	return func(text string) []float64 {
		if what := meant[text]; what != "" {
			return noise(what)
		}
		if _, what, ok := strings.Cut(text, ". "); ok {
			return noise(what)
		}
		return noise(text)
	}
}

// modelServer serves a model to an OpenAI-compatible client.
func modelServer(t *testing.T, model func(string) []float64) config.Embeddings {
	t.Helper()
	web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Input) == 0 || len(in.Input) > 64 {
			http.Error(w, "invalid input", http.StatusBadRequest)
			return
		}
		var data []map[string]any
		for i, text := range in.Input {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": model(text)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
	}))
	t.Cleanup(web.Close)
	return config.Embeddings{URL: web.URL, Model: "m", Timeout: 5 * time.Second}
}

// TestJudgeEmbeddings: a model that helps keeps its weight, one that does harm is not used; a prefix that is missing shows.
func TestJudgeEmbeddings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model  func(string) []float64
		prefix string
		helps  bool
	}{
		"a good model":            {model: knowing(t, ""), helps: true},
		"noise":                   {model: noise},
		"one that needs a prefix": {model: knowing(t, "search_query: ")},
		"one that has the prefix": {model: knowing(t, "search_query: "), prefix: "search_query: ", helps: true},
		"one that knows some words": {model: func(text string) []float64 {
			return []float64{1, float64(strings.Count(text, "add")), float64(strings.Count(text, "bin"))}
		}},
		"one answer for all the texts": {model: func(string) []float64 { return []float64{1, 2, 3} }},
	} {
		cfg := modelServer(t, test.model)
		cfg.QueryPrefix = test.prefix
		v, err := toolsearch.JudgeEmbeddings(t.Context(), cfg)
		if err != nil || v.Words < .3 || (v.WithModel > v.Words+.05) != test.helps || (v.Weight > 0) != test.helps {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	cfg := modelServer(t, func(text string) []float64 { return noise(text)[:1+len(text)%2] })
	if v, err := toolsearch.JudgeEmbeddings(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "vectors of different lengths") {
		t.Errorf("vectors of different lengths: %+v, %v", v, err)
	}
	cfg.URL = "https://127.0.0.1:1"
	if v, err := toolsearch.JudgeEmbeddings(t.Context(), cfg); err == nil {
		t.Errorf("no server: %+v", v)
	}
}
