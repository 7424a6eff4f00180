package trigger_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/trigger"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// starter notes what is to be started.
type starter struct {
	mu      sync.Mutex
	started []workflow.Start
	err     error
}

func (s *starter) Start(_ context.Context, start workflow.Start) (workflow.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, start)
	return workflow.Run{ID: "r-" + start.Workflow}, s.err
}

// take returns what was started since it was asked last, each as workflow, trigger and inputs, and the keys.
func (s *starter) take() (found, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, start := range s.started {
		labels := ""
		for _, origin := range start.Read {
			labels += ", " + origin.Label
		}
		found = append(found, fmt.Sprintf("%s by %s with %s%s", start.Workflow, start.Trigger, start.Inputs, labels))
		keys = append(keys, start.Key)
	}
	s.started = nil
	return found, keys
}

func text(s string) spec.Text { return spec.Text{Text: s} }

func object(name, expression string) spec.Value {
	return spec.Value{Kind: spec.Map, Members: []spec.Member{{Name: text(name), Value: spec.Value{Kind: spec.String, Text: text(expression)}}}}
}

func options(t *testing.T, s *starter, definitions func() []*spec.Definition) trigger.Options {
	t.Helper()
	return trigger.Options{
		Definitions: definitions, Starter: s, Logger: testutil.Logger(t),
		Secrets: map[string]string{"std": standardSecret, "hub": gitHubSecret},
		Env:     func(name string) (string, bool) { return "of " + name, name == "SET" },
	}
}

// run has a clock go for a while.
func run(t *testing.T, clock *trigger.Scheduler, while time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	if err := clock.Run(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("the clock has stopped: %v", err)
	}
}

// TestClock: runs start by the schedules as they are now, what was due meanwhile starts once, and each time has a key of its own.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, s := store.Memory(), &starter{}
		hourly := spec.Schedule{Cron: text("0 * * * *"), With: object("dir", "${{ env.SET + '!' }}")}
		daily := spec.Schedule{Cron: text("30 6 * * *"), Zone: text("Asia/Tokyo")} // 21:30 in UTC
		mu, definitions := sync.Mutex{}, []*spec.Definition{
			{Name: "digest", Env: []spec.Text{text("SET"), text("NOT_SET")}, On: spec.Triggers{Schedules: []spec.Schedule{hourly, daily}}},
			{Name: "wrong", On: spec.Triggers{Schedules: []spec.Schedule{{Cron: text("99 * * * *")}, {Every: 90 * time.Minute, With: object("a", "${{ nope }}")}}}},
		}
		opts := options(t, s, func() []*spec.Definition { mu.Lock(); defer mu.Unlock(); return slices.Clone(definitions) })
		begin := func() *trigger.Scheduler {
			clock, err := trigger.NewScheduler(records, opts)
			if err != nil {
				t.Fatal(err)
			}
			return clock
		}
		run(t, begin(), 2*time.Hour+time.Minute)
		byHour := `digest by schedule with {"dir":"of SET!"}`
		found, keys := s.take()
		if !slices.Equal(found, []string{byHour, byHour}) || keys[0] == keys[1] {
			t.Errorf("%q, %q", found, keys)
		}
		time.Sleep(22 * time.Hour) // nobody serves; it is 00:01
		run(t, begin(), time.Hour)
		if found, _ := s.take(); !slices.Equal(found, []string{byHour, "digest by schedule with {}", byHour}) {
			t.Errorf("after a day: %q", found)
		}
		mu.Lock()
		definitions[0].On.Schedules = []spec.Schedule{daily, {Every: 20 * time.Minute}}
		mu.Unlock()
		clock := begin()
		time.Sleep(5 * time.Minute)
		go func() {
			time.Sleep(50 * time.Minute)
			mu.Lock()
			definitions = nil
			mu.Unlock()
		}()
		run(t, clock, 3*time.Hour)
		if found, _ := s.take(); !slices.Equal(found, []string{"digest by schedule with {}", "digest by schedule with {}"}) {
			t.Errorf("after a change: %q", found)
		}
	})
}

// TestClosing: what is due while the gateway closes is for the next one.
func TestClosing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, s := store.Memory(), &starter{err: &tool.Error{Kind: tool.Canceled, Message: "the gateway is closed"}}
		opts := options(t, s, func() []*spec.Definition {
			return []*spec.Definition{{Name: "w", On: spec.Triggers{Schedules: []spec.Schedule{{Every: time.Hour}}}}}
		})
		clock, err := trigger.NewScheduler(records, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := clock.Run(t.Context()); tool.AsError(err).Kind != tool.Canceled {
			t.Error(err)
		}
		_, before := s.take()
		s.err = nil
		if clock, err = trigger.NewScheduler(records, opts); err != nil {
			t.Fatal(err)
		}
		run(t, clock, time.Minute)
		if _, after := s.take(); len(before) != 1 || !slices.Equal(before, after) {
			t.Errorf("started as %q, and then as %q", before, after)
		}
	})
}

// Vectors of the schemes' own documentation: https://docs.github.com/webhooks/securing, and the tests of Standard Webhooks'
// libraries. Both can be had from openssl: printf 'Hello, World!' | openssl dgst -sha256 -hmac "It's a Secret to Everybody".
const (
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standardBody   = `{"test": 2432232314}`
	standardID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	standardTime   = 1614265330
	standardSum    = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	gitHubSecret   = "It's a Secret to Everybody"
	gitHubSum      = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	header := http.Header{"Webhook-Id": {standardID}, "Webhook-Timestamp": {fmt.Sprint(standardTime)}, "Webhook-Signature": {"v1,AAAA v1a,x " + standardSum}}
	for off, ok := range map[time.Duration]bool{0: true, 5 * time.Minute: true, -5 * time.Minute: true, 301 * time.Second: false, -301 * time.Second: false} {
		id, err := trigger.Verify("standard", standardSecret, header, []byte(standardBody), time.Unix(standardTime, 0).Add(off))
		if (err == nil && id == standardID) != ok {
			t.Errorf("%v off: %q, %v", off, id, err)
		}
	}
	id, err := trigger.Verify("github", gitHubSecret, http.Header{"X-Hub-Signature-256": {gitHubSum}, "X-Github-Delivery": {"72d3162e"}}, []byte("Hello, World!"), time.Now())
	if err != nil || id != "72d3162e" {
		t.Errorf("%q, %v", id, err)
	}
}

func sum(key, message string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

// signedRequest is a request with a body, signed by a secret that is text.
func signedRequest(scheme, name, secret, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hooks/"+name, strings.NewReader(body))
	if scheme == "github" {
		r.Header.Set("X-Github-Delivery", "d-1")
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum(secret, body)))
		return r
	}
	stamp := fmt.Sprint(time.Now().Unix())
	r.Header.Set("Webhook-Id", "m-1")
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum(secret, "m-1."+stamp+"."+body)))
	return r
}

func hooks(t *testing.T) (*trigger.Hooks, *starter) {
	t.Helper()
	with, s := object("ref", "${{ request.body.ref + ' ' + request.headers['x-event'] + text('x-hub-signature-256' in request.headers) }}"), &starter{}
	definitions := []*spec.Definition{
		{Name: "plain", On: spec.Triggers{Webhook: &spec.Webhook{Secret: text("raw"), Scheme: "standard"}}},
		{Name: "build", On: spec.Triggers{Webhook: &spec.Webhook{Secret: text("hub"), Scheme: "github", With: &with}}},
		{Name: "unset", On: spec.Triggers{Webhook: &spec.Webhook{Secret: text("unset")}}},
		{Name: "by_hand"},
	}
	opts := options(t, s, func() []*spec.Definition { return definitions })
	opts.Secrets["raw"] = "a text of its own"
	return trigger.NewHooks(opts), s
}

func serve(h http.Handler, r *http.Request) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestHooks(t *testing.T) {
	t.Parallel()
	h, s := hooks(t)
	r := signedRequest("github", "build", gitHubSecret, `{"ref": "main"}`)
	r.Header.Set("X-Event", "push")
	for _, r := range []*http.Request{r, signedRequest("standard", "plain", "a text of its own", `{"a": 1}`)} {
		if status, body := serve(h, r); status != http.StatusAccepted || !strings.HasPrefix(body, `{"run":"r-`) {
			t.Errorf("%d %s", status, body)
		}
	}
	found, keys := s.take()
	if !slices.Equal(found, []string{`build by webhook with {"ref":"main pushfalse"}, untrusted`, `plain by webhook with {"a": 1}, untrusted`}) || !slices.Equal(keys, []string{"webhook d-1", "webhook m-1"}) {
		t.Errorf("%q, %q", found, keys)
	}
}

// TestStrangers: whoever has no secret gets the same answer whatever there is, and starts nothing.
func TestStrangers(t *testing.T) {
	t.Parallel()
	h, s := hooks(t)
	change := func(r *http.Request, do func(*http.Request)) *http.Request { do(r); return r }
	signedPlain := func() *http.Request { return signedRequest("standard", "plain", "a text of its own", `{}`) }
	for i, r := range []*http.Request{
		signedRequest("standard", "plain", "another text", `{}`),
		signedRequest("standard", "nobody", "another text", `{}`),
		signedRequest("standard", "unset", "", `{}`),
		signedRequest("standard", "by_hand", "", `{}`),
		signedRequest("github", "plain", "a text of its own", `{}`),
		signedRequest("standard", "build", gitHubSecret, `{}`),
		change(signedPlain(), func(r *http.Request) { r.Header.Del("Webhook-Id") }),
		change(signedPlain(), func(r *http.Request) { r.Header.Set("Webhook-Id", "m-2") }),
		change(signedPlain(), func(r *http.Request) { r.Header.Set("Webhook-Timestamp", "x") }),
		change(signedPlain(), func(r *http.Request) { r.Header.Del("Webhook-Signature") }),
		change(signedPlain(), func(r *http.Request) { r.Header.Set("Webhook-Signature", "v1, v1,") }),
		change(signedPlain(), func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"b": 1}`)) }),
		change(signedRequest("github", "build", gitHubSecret, `{}`), func(r *http.Request) { r.Header.Del("X-Github-Delivery") }),
		change(signedRequest("github", "build", gitHubSecret, `{}`), func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256=") }),
	} {
		if status, body := serve(h, r); status != http.StatusUnauthorized || body != `{"detail":"the signature is missing or wrong","kind":"denied","status":401,"title":"Unauthorized"}` {
			t.Errorf("request %d: %d %s", i, status, body)
		}
	}
	if found, _ := s.take(); found != nil {
		t.Errorf("%q", found)
	}
}

// TestSlow: whoever does not send what was announced is not waited for long.
func TestSlow(t *testing.T) {
	t.Parallel()
	h, _ := hooks(t)
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(&single{here, make(chan struct{})}) }()
		began := time.Now()
		go func() {
			_, _ = io.WriteString(there, "POST /hooks/plain HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{")
		}()
		answer, err := http.ReadResponse(bufio.NewReader(there), nil)
		if err != nil || answer.StatusCode != http.StatusRequestTimeout || time.Since(began) != 10*time.Second {
			t.Fatalf("%+v after %v: %v", answer, time.Since(began), err)
		}
		_ = answer.Body.Close()
		_ = there.Close()
		_ = server.Close()
	})
}

// single is a listener with one connection.
type single struct {
	net.Conn

	closed chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if conn := s.Conn; conn != nil {
		s.Conn = nil
		return conn, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Addr() net.Addr { return &net.UnixAddr{} }
func (s *single) Close() error   { close(s.closed); return nil }

func TestRefused(t *testing.T) {
	t.Parallel()
	h, s := hooks(t)
	for _, row := range []struct {
		body   string
		err    error
		status int
		says   string
	}{
		{`[1]`, nil, 400, "not a JSON object"},
		{`{"a": 1`, nil, 400, "not JSON"},
		{`{"a": 1, "a": 2}`, nil, 400, "key twice"},
		{`{} {}`, nil, 400, "more than one"},
		{strings.Repeat(" ", 1<<20) + `{}`, nil, 413, "1 MiB"},
		{`{}`, &tool.Error{Kind: tool.Invalid, Message: "inputs.ref is missing", Hint: "give it"}, 422, `"hint":"give it"`},
		{`{}`, &tool.Error{Kind: tool.Limit, Message: "it runs"}, 429, "it runs"},
		{`{}`, &tool.Error{Kind: tool.Failed, Message: "it was refused"}, 409, "it was refused"},
		{`{}`, fmt.Errorf("start: %w", store.ErrFull), 503, "no run can be started"},
		{`{}`, &tool.Error{Kind: tool.Canceled, Message: "the gateway is closed"}, 503, "no run can be started"},
		{`{}`, io.ErrUnexpectedEOF, 500, "internal error"},
	} {
		s.err = row.err
		status, body := serve(h, signedRequest("standard", "plain", "a text of its own", row.body))
		if status != row.status || !strings.Contains(body, row.says) {
			t.Errorf("%.20q: %d %s", row.body, status, body)
		}
	}
	s.err = nil
	if status, body := serve(h, signedRequest("github", "build", gitHubSecret, `{}`)); status != 422 || !strings.Contains(body, "ref") {
		t.Errorf("an expression that cannot be evaluated: %d %s", status, body)
	}
	if status, _ := serve(h, httptest.NewRequest(http.MethodGet, "/hooks/plain", nil)); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	statuses := map[int]int{}
	for range 100 {
		status, _ := serve(h, signedRequest("standard", "plain", "a text of its own", `{}`))
		statuses[status]++
	}
	if statuses[202] < 30 || statuses[202] > 60 || statuses[202]+statuses[429] != 100 {
		t.Errorf("of 100 at once: %v", statuses)
	}
}

// FuzzVerify: no request that is not signed is taken, and none makes it panic.
func FuzzVerify(f *testing.F) {
	f.Add("standard", "v1,AAAA", "1614265330", "id", []byte("{}"))
	f.Add("github", "sha256=00", "", "id", []byte("{}"))
	f.Fuzz(func(t *testing.T, scheme, signature, stamp, id string, body []byte) {
		header := http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}, "X-Hub-Signature-256": {signature}, "X-Github-Delivery": {id},
		}
		if _, err := trigger.Verify(scheme, "a secret that nobody can guess", header, body, time.Unix(standardTime, 0)); err == nil {
			t.Errorf("%q was taken", signature)
		}
	})
}
