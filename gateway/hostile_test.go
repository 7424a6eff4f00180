package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
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
	lock   string
}

func short(up *config.Upstream)       { up.Timeout = time.Second }
func patient(up *config.Upstream)     { up.Timeout = time.Minute }
func lenient(up *config.Upstream)     { up.MaxMessage = 128 << 20; up.Timeout = time.Minute }
func echoes(parts ...string) []string { return append(parts, `{"say":"hello"}`) }

const hello = `{"say":"hello"}`

// overStdio are the traps of a process.
var overStdio = []trap{
	{mode: upstreamtest.Good, args: hello, says: echoes()},
	{mode: "junk-first", args: hello, says: echoes()},
	{mode: "junk-between", args: hello, says: echoes()},
	{mode: "partial-junk", args: hello, says: echoes()},
	{mode: "partial-frames", args: hello, says: echoes()},
	{mode: "partial-end", kind: tool.Upstream, says: []string{"bad"}},
	{mode: "frame-17m", set: patient, check: wantLength(17 << 20)},
	{mode: "frame-65m", set: patient, kind: tool.Upstream, says: []string{"more than"}},
	{mode: "frame-65m", set: lenient, check: wantLength(65 << 20)},
	{mode: "frame-no-end", set: patient, kind: tool.Upstream, says: []string{"more than"}},
	{mode: "invalid-utf8", says: []string{"a", "b"}},
	{mode: "deep", set: short, check: wantNoCrash},
	{mode: "duplicate-member", set: short, check: wantNoCrash},
	{mode: "answers-unknown-ids", args: hello, says: echoes()},
	{mode: "answers-twice", says: []string{"first"}, check: wantSame("first")},
	{mode: "result-and-error", set: short, check: wantNoCrash},
	{mode: "batch", set: short, check: wantNoCrash},

	{mode: "hang-start", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"bad"}},
	{mode: "silent-discover", args: hello, says: echoes()},
	{mode: "hang-discover", args: hello, patience: 20 * time.Second, says: echoes()},
	{mode: "hang-initialize", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"bad"}},
	{mode: "hang-list", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"bad"}},
	{mode: "hang-call", set: short, kind: tool.Timeout, says: []string{"bad.echo gave no answer within 1"}},
	{mode: "never-answers", set: short, kind: tool.Timeout, says: []string{"bad.echo gave no answer within 1"}},
	{mode: "slow-drip", set: short, kind: tool.Timeout, says: []string{"bad.echo gave no answer within 1"}},

	{mode: "exit-start", kind: tool.Upstream, says: []string{"no licence"}},
	{mode: "exit-initialize", kind: tool.Upstream, says: []string{"no licence"}},
	{mode: "exit-list", kind: tool.Upstream, says: []string{"no licence"}},
	{mode: "exit-call", kind: tool.Upstream, says: []string{"no licence"}},
	{mode: "crash-loop", kind: tool.Upstream, says: []string{"no licence"}, check: wantParked},
	{mode: "ignore-term", args: hello, says: echoes()},
	{mode: "grandchild", args: hello, says: echoes()},
	{mode: "grandchildren-stay", args: hello, says: echoes()},
	{mode: "exit-leaves-grandchild", set: short, check: wantOneOf(tool.Upstream, tool.Timeout)},
	{mode: "closes-stdout", set: short, check: wantOneOf(tool.Upstream, tool.Timeout)},

	{mode: "flood-stderr", args: hello, set: patient, says: echoes()},
	{mode: "flood-notifications", args: hello, set: patient, says: echoes()},
	{mode: "flood-list-changed", args: hello, set: patient, says: echoes()},
	{mode: "flood-unknown", args: hello, set: patient, says: echoes()},
	{mode: "flood-pings", args: hello, set: patient, check: wantNoCrash},
	{mode: "flood-progress", args: hello, set: patient, says: echoes()},
	{mode: "changes-for-ever", args: hello, says: echoes()},

	{mode: "asks-without-call", args: hello, says: echoes()},
	{mode: "asks-for-ever", args: hello, set: patient, check: wantNoCrash},
	{mode: "input-required", check: wantFailure("a person's answer")},
}

// onBoth are traps in what is said; they are tried over both transports.
var onBoth = []trap{
	{mode: "cursor-loop", args: hello, says: echoes()},
	{mode: "endless-pages", args: hello, says: echoes()},
	{mode: "many-tools", args: hello, set: patient, patience: time.Minute, check: wantNoCrash},
	{mode: "duplicate-names", args: hello, check: wantTools(1)},
	{mode: "hostile-names", args: hello, says: echoes(), check: wantCleanNames},
	{mode: "list-is-object", kind: tool.Upstream, says: []string{"bad"}},
	{mode: "list-is-null", check: wantNoCrash},
	{mode: "list-fails", kind: tool.Upstream, says: []string{"out of"}},
	{mode: "version-unknown", check: wantNoCrash},
	{mode: "version-number", kind: tool.Upstream},
	{mode: "version-huge", check: wantNoCrash},
	{mode: "initialize-fails", kind: tool.Upstream, says: []string{"go away"}},
	{mode: "hidden-text", args: hello, says: echoes(), check: wantNothingHidden},
	{mode: "changes-each-time", args: hello, says: echoes()},

	{mode: "schema-deep-ref", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-self-ref", args: `{}`, says: []string{`{}`}},
	{mode: "schema-doubling", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-remote-ref", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-lookahead", args: `{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}`, says: []string{`aaa!`}},
	{mode: "schema-enum", args: `{"a":"value 7"}`, kind: tool.NotFound, says: []string{"bad.echo"}}, // left out: its definition is too large
	{mode: "schema-no-type", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-true", args: hello, says: echoes()},
	{mode: "schema-missing", args: hello, says: echoes()},
	{mode: "schema-nonsense", args: hello, check: wantNoCrash},
	{mode: "schema-nested", patience: 3 * time.Second, check: wantOneOf(tool.Upstream, tool.Timeout)}, // deeper than the SDK reads

	{mode: "result-unknown-types", check: wantRaw(`"depth":9007199254740993`)},
	{mode: "result-big-integers", check: wantRaw(`{"n":9007199254740993,"m":-18446744073709551617}`)},
	{mode: "result-big-error", check: wantNoCrash},
	{mode: "result-no-object", kind: tool.Upstream, says: []string{"no result"}},
	{mode: "result-null", kind: tool.Upstream, says: []string{"no result"}},
	{mode: "result-odd-members", check: wantNoCrash},
	{mode: "result-many-blocks", check: wantNoCrash},
	{mode: "error-odd", set: short, check: wantNoCrash},
	{mode: "error-big", check: wantFailure("e")},
}

// overHTTP are the traps of a web server.
var overHTTP = []trap{
	{mode: upstreamtest.Good, args: hello, says: echoes()},
	{mode: "http-500", kind: tool.Upstream, says: []string{"500"}},
	{mode: "http-429", kind: tool.Upstream, says: []string{"429"}},
	{mode: "http-html", kind: tool.Upstream, says: []string{"text/html"}},
	{mode: "http-empty", set: short, check: wantOneOf(tool.Upstream, tool.Timeout)},
	{mode: "http-truncated", set: short, check: wantOneOf(tool.Upstream, tool.Timeout)},
	{mode: "http-500-huge", kind: tool.Upstream, says: []string{"500"}},
	{mode: "http-huge-header", kind: tool.Upstream},
	{mode: "http-redirect-away", kind: tool.Upstream, check: wantNoCanary},
	{mode: "http-redirect-loop", kind: tool.Upstream},
	{mode: "http-gzip-bomb", set: patient, kind: tool.Upstream},
	{mode: "http-hang", set: short, kind: tool.Timeout, says: []string{"gave no answer within 1"}},
	{mode: "http-body-hangs", set: short, kind: tool.Timeout, says: []string{"gave no answer within 1"}},
	{mode: "http-drip", set: short, kind: tool.Timeout, says: []string{"gave no answer within 1"}},
	{mode: "http-endless-event", set: patient, kind: tool.Upstream},
	{mode: "http-stream-ends", set: short, check: wantOneOf(tool.Upstream, tool.Timeout)},
	{mode: "http-reset", kind: tool.Upstream},
	{mode: "http-session-missing", args: hello, check: wantSecond},
	{mode: "http-session-always-missing", kind: tool.Upstream},
	{mode: "http-sse-elsewhere", patience: 10 * time.Second, check: wantNoCanary},
	{mode: "http-all-hang", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"bad"}},
	{mode: "http-unauthorized", kind: tool.Upstream, says: []string{"authoriz"}, check: wantNoCanary},
}

// TestHostileUpstream tries every trap. While the hostile upstream is called, a
// healthy one beside it must answer; after each trap goroutines, processes and
// file descriptors are back to where they were.
func TestHostileUpstream(t *testing.T) {
	wantEveryMode(t, upstreamtest.Modes(), overStdio, onBoth)
	wantEveryMode(t, upstreamtest.HTTPModes(), overHTTP)
	for _, group := range []struct {
		name  string
		traps []trap
		web   bool
	}{{"stdio", overStdio, false}, {"both-stdio", onBoth, false}, {"both-http", onBoth, true}, {"http", overHTTP, true}} {
		t.Run(group.name, func(t *testing.T) {
			var waiting []trap
			for _, trap := range group.traps {
				if trap.waits() {
					waiting = append(waiting, trap)
					continue
				}
				t.Run(trap.mode, func(t *testing.T) { trap.run(t, group.web) })
			}
			runTogether(t, waiting, group.web)
		})
	}
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

// waits reports whether the trap costs time rather than work.
func (tr trap) waits() bool {
	return tr.patience > 0 && tr.patience < time.Minute || tr.kind == tool.Timeout ||
		slices.Contains(strings.Fields("silent-discover crash-loop deep exit-leaves-grandchild closes-stdout http-empty http-truncated http-stream-ends"), tr.mode)
}

// runTogether falls into all traps at once, each with a gateway of its own, and
// counts what is left when all are over.
func runTogether(t *testing.T, traps []trap, web bool) {
	t.Helper()
	before := takeStock(t)
	defer before.compare(t)
	var tries sync.WaitGroup
	defer tries.Wait()
	for _, tr := range traps {
		tries.Go(func() { t.Run(tr.mode, func(t *testing.T) { tr.try(t, web) }) })
	}
}

func (tr trap) run(t *testing.T, web bool) {
	t.Helper()
	before := takeStock(t)
	defer before.compare(t)
	tr.try(t, web)
}

// try opens a gateway, falls into the trap, and closes the gateway again.
func (tr trap) try(t *testing.T, web bool) {
	t.Helper()
	h := &hostile{lock: filepath.Join(t.TempDir(), "sallyport.lock")}
	elsewhere := serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.canary.Add(1)
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer stop(elsewhere)
	good := serve(handler(t, upstreamtest.Good, ""))
	defer stop(good)
	bad := process(t, "bad", "")
	bad.Env = config.Secrets{upstreamtest.Var: tr.mode, "GORACE": "atexit_sleep_ms=0", stockVar: strconv.Itoa(os.Getpid())}
	if web {
		site := serve(handler(t, tr.mode, elsewhere.URL))
		defer stop(site)
		bad = upstreamOf("bad", site.URL)
	}
	if tr.set != nil {
		tr.set(&bad)
	}
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{bad, upstreamOf("good", good.URL)}
	g, err := gateway.Open(&cfg, &gateway.Options{LockFile: h.lock})
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
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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

func serve(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = nil
	server.Start()
	return server
}

func stop(server *httptest.Server) {
	_ = server.Config.Close() // open connections too, which Close alone would wait for
	server.Close()
}
