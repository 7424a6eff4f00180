package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/trust"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// trap is one mode of the hostile upstream, and what whoever calls it gets.
type trap struct {
	mode string
	// args of the call of bad.echo; "{}" if empty.
	args string
	// set changes the settings of the hostile upstream.
	set func(up *config.Upstream)
	// patience is how long the caller waits; 0 is 30 s.
	patience time.Duration
	// waits says that the trap takes time; patience and a time limit say so too.
	waits bool
	// strays is how many processes outlive the upstream, as nothing of ours ends them.
	strays int
	// kind of the error, "" for a result; says are parts of the error or of the result's text.
	kind tool.Kind
	says []string
	// check looks at more.
	check func(t *testing.T, h *hostile, result tool.Result, err error)
}

// hostile is a gateway with a hostile upstream, "bad", and a healthy one, "good".
type hostile struct {
	*gateway.Gateway
	// canary counts the requests that reach the other origin.
	canary atomic.Int32
	// lock and cache are where the gateway pins definitions and keeps them.
	lock, cache string
	log         records
	requests    tally
}

// tally counts the requests of a web server by their method; it is safe for concurrent use.
type tally struct {
	mu sync.Mutex
	of map[string]int
}

func (c *tally) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var req struct{ Method string }
		_ = json.Unmarshal(body, &req)
		c.mu.Lock()
		c.of[req.Method]++
		c.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (c *tally) all() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, count := range c.of {
		n += count
	}
	return n
}

func (c *tally) get(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[method]
}

// TestHostileUpstream tries every trap that costs no time, one after the other. While the hostile upstream is called, a
// healthy one beside it must answer; after each trap goroutines, processes and
// file descriptors are back to where they were.
func TestHostileUpstream(t *testing.T) {
	testutil.Long(t)
	wantEveryMode(t, upstreamtest.Modes(), overStdio, onBoth)
	wantEveryMode(t, upstreamtest.HTTPModes(), overHTTP)
	for _, group := range []struct {
		name  string
		traps []trap
		web   bool
	}{{"stdio", overStdio, false}, {"both-stdio", onBoth, false}, {"both-http", onBoth, true}, {"http", overHTTP, true}} {
		t.Run(group.name, func(t *testing.T) {
			for _, tr := range group.traps {
				if !tr.isSlow() {
					t.Run(tr.mode, func(t *testing.T) { tr.run(t, group.web) })
				}
			}
		})
	}
}

// TestHostileUpstreamsThatWait tries the traps that cost time, concurrently.
func TestHostileUpstreamsThatWait(t *testing.T) {
	testutil.Long(t)
	before := takeStock(t)
	defer before.compare(t)
	var tries sync.WaitGroup
	defer tries.Wait()
	fall := func(traps []trap, web bool, where string) {
		for _, tr := range traps {
			if tr.isSlow() {
				tries.Go(func() { t.Run(where+"-"+tr.mode, func(t *testing.T) { tr.try(t, web) }) })
			}
		}
	}
	fall(overStdio, false, "stdio")
	fall(onBoth, false, "stdio")
	fall(onBoth, true, "http")
	fall(overHTTP, true, "http")
}

// wantEveryMode sees to it that no mode is forgotten.
func wantEveryMode(t *testing.T, modes []string, lists ...[]trap) {
	t.Helper()
	for _, mode := range modes {
		tried := func(tr trap) bool { return tr.mode == mode }
		if !strings.HasPrefix(mode, "_") && !slices.ContainsFunc(slices.Concat(lists...), tried) {
			t.Errorf("nobody tries %s", mode)
		}
	}
}

// isSlow reports whether the trap costs time rather than work. Such are fallen into
// together; file descriptors are then counted for all of them.
func (tr trap) isSlow() bool { return tr.waits || tr.patience > 0 || tr.kind == tool.Timeout }

func (tr trap) run(t *testing.T, web bool) {
	t.Helper()
	before := takeStock(t)
	defer before.compare(t)
	tr.try(t, web)
}

// try falls into the trap, and sees to it that no goroutine and no process is left of it.
func (tr trap) try(t *testing.T, web bool) {
	t.Helper()
	defer wantNothingLeft(t, t.Name())
	defer endStrays(t, t.Name(), tr.strays)
	pprof.Do(t.Context(), pprof.Labels(stockLabel, t.Name()), func(context.Context) { tr.open(t, web) })
}

// open opens a gateway, falls into the trap, and closes the gateway again.
func (tr trap) open(t *testing.T, web bool) {
	t.Helper()
	h := &hostile{lock: filepath.Join(t.TempDir(), trust.FileName), cache: t.TempDir(), requests: tally{of: map[string]int{}}}
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.canary.Add(1)
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer stop(elsewhere)
	good := serve(t, handler(t, upstreamtest.Good, ""))
	defer stop(good)
	bad := process(t, "bad", "")
	bad.Env = config.Secrets{upstreamtest.Var: tr.mode, "GORACE": "atexit_sleep_ms=0", stockVar: mark(t.Name())}
	if web {
		site := serve(t, h.requests.count(handler(t, tr.mode, elsewhere.URL)))
		defer stop(site)
		bad = upstreamOf("bad", site.URL)
	}
	if tr.set != nil {
		tr.set(&bad)
	}
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{bad, upstreamOf("good", good.URL)}
	g, err := gateway.Open(&cfg, &gateway.Options{LockFile: h.lock, CacheDir: h.cache, Logger: slog.New(&h.log), PeerRequests: true})
	if err != nil {
		t.Fatal(err)
	}
	h.Gateway = g
	defer h.end(t)
	defer h.beside(t)()
	tr.fall(t, h)
}

func (h *hostile) end(t *testing.T) {
	t.Helper()
	begin := time.Now()
	if err := h.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("closing took %v", took)
	}
}

// fall makes the call and looks at what comes of it.
func (tr trap) fall(t *testing.T, h *hostile) {
	t.Helper()
	patience := tr.patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := tr.args
	if args == "" {
		args = "{}"
	}
	begin := time.Now()
	result, err := h.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "bad", Name: "echo"}, Args: json.RawMessage(args), Execution: "e", Peer: deafPeer{}})
	if took := time.Since(begin); took > patience+5*time.Second {
		t.Errorf("the call took %v", took)
	}
	wantReadable(t, err)
	switch {
	case tr.kind != "":
		wantError(t, err, tr.kind, tr.says...)
	case tr.check == nil || tr.says != nil:
		if err != nil {
			t.Fatalf("call: %v", err)
		}
		for _, part := range tr.says {
			if !strings.Contains(result.Text(), part) {
				t.Errorf("result %.200q does not say %q", result.Text(), part)
			}
		}
	}
	if tr.check != nil {
		tr.check(t, h, result, err)
	}
}

// wantReadable checks that an error is one for a model: a kind, one that is short and clean.
func wantReadable(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e := tool.AsError(err)
	if e.Kind == tool.Internal || e.Message == "" || len(e.Message) > 6000 || strings.ContainsAny(e.Error(), "\x1b\x00") {
		t.Errorf("error of kind %s is not for a model: %.500q", e.Kind, e)
	}
}

// deafPeer is somebody who does not answer.
type deafPeer struct{}

func (deafPeer) Notify(string, json.RawMessage) {}
func (deafPeer) Ask(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, &tool.Error{Kind: tool.Denied, Message: "nobody is here"}
}

// beside calls the healthy upstream again and again until the returned function
// is called: every call must be answered.
func (h *hostile) beside(t *testing.T) (end func()) {
	t.Helper()
	quit := make(chan struct{})
	var caller sync.WaitGroup
	caller.Go(func() {
		for n := 0; ; n++ {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the first call waits for many processes to start
			said := fmt.Sprintf(`{"n":%d}`, n)
			result, err := h.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "good", Name: "echo"}, Args: json.RawMessage(said)})
			cancel()
			if err != nil || result.Text() != said {
				t.Errorf("the healthy upstream answered %.100q, %v", result.Text(), err)
				return
			}
			select {
			case <-quit:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() {
		close(quit)
		caller.Wait()
	}
}

func handler(t *testing.T, mode, other string) http.Handler {
	t.Helper()
	handler, err := upstreamtest.Handler(mode, other)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = nil
	tlstest.StartHTTP1(t, server)
	return server
}

func stop(server *httptest.Server) {
	_ = server.Config.Close() // open connections too, which Close alone would wait for
	server.Close()
}
