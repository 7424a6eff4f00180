package embeddings_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/embeddings"
	"sallyport/internal/testutil"
)

// TestBadAnswers: what is no good answer is no ranking, and the next good one is.
func TestBadAnswers(t *testing.T) {
	zeros, long := strings.Repeat("0,", dims-1)+"0", strings.Repeat("1,", 9000)+"1"
	one := func(numbers string) string { return `{"data":[{"index":0,"embedding":[` + numbers + `]}]}` }
	for name, body := range map[string]string{
		"empty":              ``,
		"no JSON":            `<html>`,
		"null":               `null`,
		"no data":            `{"data":[]}`,
		"too many":           `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`,
		"another index":      `{"data":[{"index":7,"embedding":[1]}]}`,
		"a negative index":   `{"data":[{"index":-1,"embedding":[1]}]}`,
		"zeros":              one(zeros),
		"no numbers":         one(""),
		"too many numbers":   one(long),
		"another length":     one("1,2,3"),
		"infinity":           one("1e999"),
		"NaN":                one("NaN"),
		"bad base64":         `{"data":[{"index":0,"embedding":"AAAA"}]}`,
		"base64 of NaN":      `{"data":[{"index":0,"embedding":"AADAfw=="}]}`,
		"no base64":          `{"data":[{"index":0,"embedding":"?"}]}`,
		"huge":               one("1") + strings.Repeat(" ", 40<<20),
		"deep":               strings.Repeat("[", 100_000),
		"an error with 200":  `{"error":{"message":"no"}}`,
		"strings":            one(`"1"`),
		"the error's echo":   `{"error":{"message":"cannot embed: secret wish"}}`,
		"numbers of objects": one(`{}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			var log bytes.Buffer
			r := open(t, e.settings(), &embeddings.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Backoff: 10 * time.Millisecond})
			r.Replace(catalog(office...))
			ready(t, r, "dm")
			e.says(http.StatusOK, body)
			if got := r.Rank(t.Context(), "secret wish", nil); got != nil {
				t.Errorf("ranked: %v", got)
			}
			e.answer.Store(nil)
			if got := ready(t, r, "cancel appointment"); got != "delete_event" {
				t.Errorf("after it: %s", got)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "embeddings endpoint fails") || strings.Contains(log.String(), "wish") || strings.Contains(log.String(), "hunter2") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// TestDown: an endpoint that is down costs a search nothing, and is found when it is back.
func TestDown(t *testing.T) {
	for name, fail := range map[string]func(e *endpoint){
		"500": func(e *endpoint) { e.says(500, `{"error":{"message":"broken"}}`) },
		"401": func(e *endpoint) { e.says(401, `{"error":"who are you"}`) },
		"hang up": func(e *endpoint) {
			f := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			e.answer.Store(&f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			r := open(t, e.settings(), nil)
			r.Replace(catalog(office...))
			ready(t, r, "dm")
			fail(e)
			if got := r.Rank(t.Context(), "file bug", nil); got != nil {
				t.Errorf("ranked: %v", got)
			}
			e.take()
			for i := range 50 {
				if got := r.Rank(t.Context(), fmt.Sprint("query ", i), nil); got != nil {
					t.Errorf("ranked: %v", got)
				}
			}
			if asked := e.take(); len(asked) > 0 {
				t.Errorf("while it rests it asks %q", asked)
			}
			if got := r.Rank(t.Context(), "dm", nil); len(got) == 0 {
				t.Error("what is remembered is not used")
			}
			e.answer.Store(nil)
			if name == "401" {
				return // it rests for a minute
			}
			if got := ready(t, r, "file bug"); got != "create_issue" {
				t.Errorf("when it is back: %s", got)
			}
		})
	}
}

// TestSlow: a search waits no longer than it may, and what comes later is remembered.
func TestSlow(t *testing.T) {
	e := newEndpoint(t)
	s := e.settings()
	s.Timeout = 50 * time.Millisecond
	r := open(t, s, nil)
	r.Replace(catalog(office...))
	ready(t, r, "dm")
	e.slow.Store(int64(600 * time.Millisecond))
	e.take()
	for range 20 { // only the first waits, and only it is asked
		if got := r.Rank(t.Context(), "file bug", nil); got != nil {
			t.Errorf("ranked in time: %v", got)
		}
		if got := r.Rank(t.Context(), "users", nil); got != nil {
			t.Errorf("ranked in time: %v", got)
		}
	}
	if asked := e.take(); !slices.Equal(asked, []string{"file bug"}) {
		t.Errorf("it asks %q", asked)
	}
	if got := ready(t, r, "file bug"); got != "create_issue" {
		t.Errorf("later: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.Rank(ctx, "nobody waits", nil); got != nil {
		t.Errorf("ranked: %v", got)
	}
}

// TestRefusedText: a text that the endpoint does not take keeps no other from being found.
func TestRefusedText(t *testing.T) {
	e := newEndpoint(t)
	e.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var buf bytes.Buffer
		_, _ = buf.ReadFrom(r.Body)
		if strings.Contains(buf.String(), "poison") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"maximum context length"}}`))
			return
		}
		r.Body = http.NoBody
		req := r.Clone(r.Context())
		req.Body = readCloser{&buf}
		e.ServeHTTP(w, req)
	})
	r := open(t, e.settings(), nil)
	var texts []string
	for i := range 70 {
		texts = append(texts, fmt.Sprint("record number ", i))
		if i%14 == 0 {
			texts = append(texts, fmt.Sprint("poison ", i), fmt.Sprint("more poison ", i))
		}
	}
	r.Replace(catalog(append(texts, office...)...))
	if got := ready(t, r, "cancel appointment"); got != "delete_event" {
		t.Errorf("got %s", got)
	}
	if asked := e.take(); len(slices.Compact(asked)) != 70+len(office)+2 { // the query, and a harmless text
		t.Errorf("%d texts were embedded", len(asked))
	}
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// TestAnotherModelUnderTheName: vectors of another length are refused at first, and believed when they stay.
func TestAnotherModelUnderTheName(t *testing.T) {
	e, opts := newEndpoint(t), &embeddings.Options{Dir: t.TempDir(), Backoff: 10 * time.Millisecond}
	r := open(t, e.settings(), opts)
	r.Replace(catalog(office...))
	ready(t, r, "dm")
	e.dims.Store(2 * dims)
	if got := r.Rank(t.Context(), "file bug", nil); got != nil {
		t.Errorf("ranked: %v", got)
	}
	if got := ready(t, r, "file bug"); got != "create_issue" {
		t.Errorf("in the end: %s", got)
	}
}

// TestRedirect: neither keys nor texts go to another host.
func TestRedirect(t *testing.T) {
	thief := newEndpoint(t)
	for _, status := range []int{301, 302, 307, 308} {
		e := newEndpoint(t)
		f := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.web.URL+"/v1/embeddings", status)
		})
		e.answer.Store(&f)
		_, _, err := embeddings.Check(t.Context(), e.settings())
		if err == nil || !strings.Contains(err.Error(), "redirects to another host") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if asked := thief.take(); len(asked) > 0 {
		t.Errorf("the other host got %q", asked)
	}
	e := newEndpoint(t)
	s := e.settings()
	e.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old/embeddings" {
			http.Redirect(w, r, "/v1/embeddings", http.StatusTemporaryRedirect)
			return
		}
		e.ServeHTTP(w, r)
	})
	s.URL = e.web.URL + "/old/"
	if n, _, err := embeddings.Check(t.Context(), s); err != nil || n != dims {
		t.Errorf("on the same host: %d, %v", n, err)
	}
}

// TestCheck is what the doctor says.
func TestCheck(t *testing.T) {
	e := newEndpoint(t)
	if n, took, err := embeddings.Check(t.Context(), e.settings()); err != nil || n != dims || took <= 0 {
		t.Errorf("%d, %v, %v", n, took, err)
	}
	whole := e.settings()
	whole.URL += "/embeddings?api-version=1"
	if _, _, err := embeddings.Check(t.Context(), whole); err != nil {
		t.Errorf("with the whole URL: %v", err)
	}
	e.says(http.StatusUnauthorized, `{"error":{"message":"Incorrect key \u001b[2J sk-hunter2"}}`)
	if _, _, err := embeddings.Check(t.Context(), e.settings()); err == nil || err.Error() != "HTTP 401: Incorrect key [secret]" {
		t.Errorf("a wrong key: %v", err)
	}
	gone := e.settings()
	gone.URL = "http://me:hunter2@127.0.0.1:1/v1?key=hunter2"
	if _, _, err := embeddings.Check(t.Context(), gone); err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody there: %v", err)
	}
	for _, url := range []string{"", "file:///etc/passwd", "example.com/v1", "http://", "http://[::1"} {
		if _, err := embeddings.New(embeddings.Settings{URL: url, Model: "m", Timeout: time.Second}, nil); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}

// TestCloseDoesNotWait: an endpoint that hangs holds up no end.
func TestCloseDoesNotWait(t *testing.T) {
	e := newEndpoint(t)
	e.slow.Store(int64(time.Hour))
	r := open(t, e.settings(), nil)
	r.Replace(catalog(office...))
	testutil.Eventually(t, "it asks", 10*time.Second, func() bool { return e.requests() == 1 })
	begin := time.Now()
	if err := r.Close(); err != nil || time.Since(begin) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// TestManyTools: requests are bounded, and the order of an answer does not count.
func TestManyTools(t *testing.T) {
	e := newEndpoint(t)
	r := open(t, e.settings(), nil)
	var texts []string
	for i := range 400 {
		texts = append(texts, fmt.Sprintf("record %d %s", i, strings.Repeat("x", i*20)))
	}
	texts = append(texts, "delete event", "broken \xff\x00 text", "", "delete  event")
	r.Replace(catalog(texts...))
	testutil.Eventually(t, "the last is found", 10*time.Second, func() bool { return strings.HasPrefix(ready(t, r, "cancel appointment"), "delete_") })
	if ids := r.Rank(t.Context(), "cancel appointment", nil); len(ids) != 50 {
		t.Errorf("%d are ranked", len(ids))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, batch := range e.asked {
		size := 0
		for _, text := range batch {
			size += len(text)
			if len(text) > 2000 {
				t.Errorf("a text of %d bytes", len(text))
			}
		}
		if len(batch) > 64 || size > 64<<10 {
			t.Errorf("%d texts of %d bytes in one request", len(batch), size)
		}
	}
}

func BenchmarkRank(b *testing.B) {
	e := newEndpoint(b)
	e.dims.Store(768)
	r := open(b, e.settings(), nil)
	var texts []string
	for i := range 2000 {
		texts = append(texts, fmt.Sprint("record ", i))
	}
	r.Replace(catalog(texts...))
	ready(b, r, "dm")
	testutil.Measure(b, func() error { r.Rank(b.Context(), "dm", nil); return nil })
}
