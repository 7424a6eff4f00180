package embeddings_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway/embeddings"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// meaning is a small model of the world: words of one line mean the same.
var meaning = []string{
	"remove delete erase cancel",
	"calendar appointment meeting event",
	"issue ticket bug problem",
	"create open file add",
	"message chat dm",
}

const dims = 64

// embedding is what our endpoint makes of a text: a direction for each meaning.
func embedding(text string, dims int) []float64 {
	v := make([]float64, dims)
	for word := range strings.FieldsSeq(strings.ToLower(strings.NewReplacer("_", " ", ".", " ", ",", " ").Replace(text))) {
		for _, line := range meaning {
			if slices.Contains(strings.Fields(line), word) {
				word, _, _ = strings.Cut(line, " ")
			}
		}
		h := fnv.New32()
		_, _ = h.Write([]byte(word))
		sum := h.Sum32()
		for i := range 8 {
			v[(sum>>(4*i)+uint32(i)*8)%uint32(dims)] += float64(1 - 2*int(sum>>(31-i)&1))
		}
	}
	v[0]++
	return v
}

// endpoint is a real server that speaks the protocol, with ways to fail.
type endpoint struct {
	web  *httptest.Server
	dims atomic.Int32
	// base64 makes it send vectors as base64.
	base64 atomic.Bool
	// answer, if set, is all there is.
	answer atomic.Pointer[http.HandlerFunc]
	slow   atomic.Int64 // how long it takes

	mu    sync.Mutex
	asked [][]string
	keys  []string
}

func newEndpoint(t testing.TB) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.dims.Store(dims)
	e.web = tlstest.NewServer(t, e)
	t.Cleanup(e.web.Close)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model  string
		Format string `json:"encoding_format"`
		Input  []string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || in.Format != "float" || in.Model == "" {
		http.Error(w, "not what we speak", http.StatusTeapot)
		return
	}
	e.mu.Lock()
	e.asked, e.keys = append(e.asked, in.Input), append(e.keys, r.Header.Get("Authorization"))
	e.mu.Unlock()
	select {
	case <-time.After(time.Duration(e.slow.Load())):
	case <-r.Context().Done():
		return
	}
	if f := e.answer.Load(); f != nil {
		(*f)(w, r)
		return
	}
	e.good(w, in.Input)
}

// good answers as it should, from the last to the first.
func (e *endpoint) good(w http.ResponseWriter, texts []string) {
	type datum struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"` // []float64, or []byte, which is base64
	}
	var data []datum
	for i, text := range slices.Backward(texts) {
		var v any = embedding(text, int(e.dims.Load()))
		if e.base64.Load() {
			v = asBase64(v.([]float64))
		}
		data = append(data, datum{"embedding", i, v})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "usage": map[string]int{"total_tokens": 1}})
}

func asBase64(v []float64) (raw []byte) {
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
	}
	return raw
}

func (e *endpoint) says(status int, body string) {
	f := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	e.answer.Store(&f)
}

// take returns the texts that were asked for since the last time, sorted.
func (e *endpoint) take() (texts []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, batch := range e.asked {
		texts = append(texts, batch...)
	}
	e.asked = nil
	slices.Sort(texts)
	return texts
}

func (e *endpoint) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func (e *endpoint) settings() embeddings.Settings {
	return embeddings.Settings{URL: e.web.URL + "/v1", Model: "small", Headers: map[string]string{"Authorization": "Bearer sk-hunter2"}, Timeout: 2 * time.Second}
}

func id(name string) tool.ID { return tool.ID{Upstream: "up", Name: name} }

// catalog has a tool for each text.
func catalog(texts ...string) (docs []embeddings.Document) {
	for _, text := range texts {
		docs = append(docs, embeddings.Document{ID: id(tool.Identifier(text)), Text: text})
	}
	return docs
}

var office = []string{"delete event", "create issue", "send message", "list users", "weather forecast"}

func open(t testing.TB, s embeddings.Settings, opts *embeddings.Options) *embeddings.Ranker {
	t.Helper()
	r, err := embeddings.New(s, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// ready waits until the ranker ranks, and returns the first of the ranking.
func ready(t testing.TB, r *embeddings.Ranker, query string) (first string) {
	t.Helper()
	testutil.Eventually(t, "it ranks", 20*time.Second, func() bool {
		ids := r.Rank(t.Context(), query, nil)
		if len(ids) == 0 {
			return false
		}
		first = ids[0].Name
		return true
	})
	return first
}
