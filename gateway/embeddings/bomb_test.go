package embeddings_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"sallyport/gateway/embeddings"
	"sallyport/internal/testutil/tlstest"
)

// TestBombs: an answer that unpacks to a hundred megabytes, or is of endless empty vectors, costs
// megabytes at most.
func TestBombs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 1 << 7 {
		_, _ = z.Write(bytes.Repeat([]byte("0,"), 1<<19))
	}
	_ = z.Close()
	for name, body := range map[string]struct {
		data   []byte
		packed bool
	}{
		"gzip":  {packed.Bytes(), true},
		"empty": {[]byte(`{"data":[` + strings.Repeat("{},", 1<<24) + `{}]}`), false},
		"deep":  {[]byte(`{"data":` + strings.Repeat("[", 1<<19)), false},
	} {
		s := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body.packed {
				w.Header().Set("Content-Encoding", "gzip")
			}
			_, _ = w.Write(body.data)
		}))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := embeddings.Check(t.Context(), embeddings.Settings{URL: s.URL, Model: "m"})
		runtime.ReadMemStats(&after)
		s.Close()
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || used > 16 {
			t.Errorf("%s: %d MB, %v", name, used, err)
		}
	}
}
