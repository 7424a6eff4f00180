package embeddings

import (
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/testutil/tlstest"
)

// TestRest: pauses grow, and are never shorter than the endpoint asks for.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := func(err error) (all []time.Duration) {
			var r backoff
			if r.failing() || r.remaining() > 0 {
				t.Error("it rests before the first failure")
			}
			for i := range 12 {
				if first := r.recordFailure(err); first != (i == 0) {
					t.Errorf("failure %d is the first: %v", i, first)
				}
				all = append(all, r.remaining())
				time.Sleep(r.remaining())
				if !r.failing() || r.remaining() > 0 {
					t.Error("it rests longer")
				}
			}
			if !r.recordSuccess() || r.recordSuccess() || r.failing() {
				t.Error("it does not recover")
			}
			return all
		}
		within := func(what string, d, least time.Duration) {
			t.Helper()
			if d < least || d > least+least/4+time.Second {
				t.Errorf("%s: %v, want %v and a little", what, d, least)
			}
		}
		all := pauses(faultf("HTTP 500"))
		within("the first", all[0], time.Second)
		within("the fourth", all[3], 8*time.Second)
		within("the last", all[11], 5*time.Minute)
		all = pauses(&fault{status: http.StatusUnauthorized})
		within("denied", all[0], time.Minute)
		all = pauses(errors.Join(&fault{status: http.StatusTooManyRequests, retryAfter: time.Hour}))
		within("asked to wait", all[0], time.Hour)
	})
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999999": 0, "1000000": time.Hour, "1.5": 0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):       0,
		time.Now().Add(2000 * time.Hour).UTC().Format(http.TimeFormat): time.Hour,
	} {
		web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		c, err := newClient(Settings{URL: web.URL, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.embed(t.Context(), []string{"a"})
		if f, ok := errors.AsType[*fault](err); !ok || f.retryAfter != want || f.Error() != "HTTP 429" {
			t.Errorf("%q: %+v", text, err)
		}
		c.close()
		web.Close()
	}
}

// TestVectorKeepsAngles: a byte for each number is enough to rank by.
func TestVectorKeepsAngles(t *testing.T) {
	numbers := func(seed int) []float64 {
		all := make([]float64, 768)
		for i := range all {
			all[i] = math.Sin(float64(seed*i*i + seed))
		}
		return all
	}
	for seed := range 20 {
		a, b := numbers(seed+1), numbers(2*seed+7)
		for i := range b {
			b[i] = 0.7*a[i] + 0.5*b[i]
		}
		product, aa, bb := 0.0, 0.0, 0.0
		for i := range a {
			product, aa, bb = product+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
		}
		v, err := newVector(a)
		w, err2 := newVector(b)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		want, got := product/math.Sqrt(aa*bb), float64(dot(v.values, w.values))/(v.norm*w.norm)
		if math.Abs(got-want) > .003 {
			t.Errorf("%d: %.4f, want %.4f", seed, got, want)
		}
	}
	if _, err := newVector([]float64{1, math.NaN()}); err == nil {
		t.Error("NaN passed")
	}
	if _, err := newVector([]float64{1, math.Inf(-1)}); err == nil {
		t.Error("infinity passed")
	}
}

// TestOldVectorsGo: what no tool has had for a month is dropped, and so are files of models not in use.
func TestOldVectorsGo(t *testing.T) {
	dir := t.TempDir()
	c, err := newClient(Settings{URL: "http://localhost", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := openFiles(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	v, err := newVector([]float64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	body := encode(storedVectors{2, map[digest]storedVector{digestOf("old"): {v, today() - 31}, digestOf("new"): {v, today() - 29}}})
	all, err := decode(body)
	if err != nil || len(all.vectors) != 1 || all.vectors[digestOf("new")].norm == 0 {
		t.Errorf("%v, %v", all, err)
	}
	other, old := filepath.Join(dir, "other.vectors"), time.Now().Add(-31*24*time.Hour)
	if err := errors.Join(os.WriteFile(other, nil, 0o600), os.Chtimes(other, old, old), f.merge(2, map[digest]vector{digestOf("a"): v}, true), f.close()); err != nil {
		t.Fatal(err)
	}
	if f, err = openFiles(dir, c); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.close() }()
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 || names[0] == other {
		t.Errorf("files: %v", names)
	}
}

func FuzzVectors(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[0.5,-3e2]}]}`))
	f.Add([]byte(`{"data":[{"embedding":[1]},{"index":0,"embedding":[1]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := vectors(data, 2)
		if err != nil {
			return
		}
		if len(all) != 2 || len(all[0].values) != len(all[1].values) || all[0].norm == 0 || all[1].norm == 0 {
			t.Errorf("%v", all)
		}
	})
}

func FuzzDecode(f *testing.F) {
	v, _ := newVector([]float64{1, 2, 3})
	f.Add(encode(storedVectors{3, map[digest]storedVector{digestOf("a"): {v, today()}, digestOf("b"): {v, 1}}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := decode(body)
		if err != nil {
			return
		}
		if _, err := decode(encode(all)); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
