package alerts_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/alerts"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

// settings are settings that a test may change.
type settings struct{ atomic.Pointer[config.Config] }

func withAlerts(all ...config.Alert) *settings {
	s, c := &settings{}, config.Default()
	c.Alerts = all
	s.Store(&c)
	return s
}

var key = []byte("0123456789abcdef0123456789abcdef")

// secret is the key as settings have it.
var secret = config.Secret("whsec_" + base64.StdEncoding.EncodeToString(key))

// signature is an independent implementation of Standard Webhooks.
func signature(key []byte, id, timestamp, body string) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// message is what a receiver gets.
type message struct {
	id, path string
	signed   bool
	Text     string // of Slack
	Type     string
	Data     struct {
		Text, Link string
		Events     []struct{ Approval, Tool, Reply, Text, Title string }
	}
}

func read(r *http.Request) (m message) {
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	m.id, m.path = r.Header.Get("webhook-id"), r.URL.Path
	m.signed = r.Header.Get("webhook-signature") == signature(key, m.id, r.Header.Get("webhook-timestamp"), string(body))
	return m
}

// receivers is a transport, which keeps what is sent.
type receivers struct {
	mu     sync.Mutex
	got    []message
	at     []time.Time
	answer func(m message, n int) int // the status of the nth message; nil is 204
}

func (f *receivers) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := read(r)
	f.got, f.at = append(f.got, m), append(f.at, time.Now())
	status := http.StatusNoContent
	if f.answer != nil {
		status = f.answer(m, len(f.got))
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (f *receivers) take() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.got
	f.got = nil
	return got
}

func open(t *testing.T, o alerts.Options) *alerts.Alerts {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a, err := alerts.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func question(n int) approval.Approval {
	return approval.Approval{ID: fmt.Sprintf("a-%d", n), State: approval.Waiting, Request: approval.Request{Tool: "notes.create", Principal: "token:ada", Arguments: `{"title":"<!channel>&"}`}}
}

// TestDelivery sends over TLS: a passing error is retried with the same id, a lasting one and a redirect are not.
func TestDelivery(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string][]message{}
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := read(r)
		mu.Lock()
		got[m.path] = append(got[m.path], m)
		n := len(got[m.path])
		mu.Unlock()
		switch {
		case m.path == "/busy" && n < 3:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		case m.path == "/T0/secret-path-of-slack":
			http.Error(w, "no "+r.URL.String()+" \x1b[31m here", http.StatusGone)
		case m.path == "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	var log strings.Builder
	var counts sync.Map
	a := open(t, alerts.Options{
		Settings: withAlerts(
			config.Alert{Name: "busy", URL: config.Secret(server.URL + "/busy"), Secret: secret},
			config.Alert{Name: "slack", URL: config.Secret(server.URL + "/T0/secret-path-of-slack"), Format: config.AlertSlack},
			config.Alert{Name: "moved", URL: config.Secret(server.URL + "/moved"), Secret: secret},
			config.Alert{Name: "broken", URL: "https://localhost:1/", Problem: "the variable A is not set"},
			config.Alert{Name: "screen", Desktop: true}),
		Site: "https://gate.example", Logger: slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil)), Title: func(string) string { return "tidy <up>" },
		Count: func(_, outcome string, _ int) {
			n, _ := counts.LoadOrStore(outcome, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		},
		Notify: func(context.Context, string, string) error { return nil },
	})
	a.Approval(question(1))
	total := func(outcome string) int64 {
		n, _ := counts.LoadOrStore(outcome, new(atomic.Int64))
		return n.(*atomic.Int64).Load()
	}
	testutil.Eventually(t, "all receivers are done", time.Minute, func() bool { return total("sent")+total("failed") == 5 })
	a.Close()
	if total("sent") != 2 || len(got["/busy"]) != 3 || len(got["/T0/secret-path-of-slack"]) != 1 || len(got["/moved"]) != 1 || len(got["/elsewhere"]) != 0 {
		t.Errorf("%d alerts were sent: %v", total("sent"), got)
	}
	for _, m := range got["/busy"] {
		if !m.signed || m.id != got["/busy"][0].id || m.Type != "approval.pending" || m.Data.Link != "https://gate.example/ui/approvals" {
			t.Errorf("the message is %+v", m)
		}
	}
	if e := got["/busy"][0].Data.Events[0]; e.Approval != "a-1" || e.Title != "tidy <up>" || e.Reply != "https://gate.example/api/approvals/a-1/reply" {
		t.Errorf("the event is %+v", e)
	}
	want := "notes.create needs approval, for token:ada, in the program \"tidy &lt;up&gt;\"\n{\"title\":\"&lt;!channel&gt;&amp;\"}\n<https://gate.example/ui/approvals|Open Sallyport>"
	if text := got["/T0/secret-path-of-slack"][0].Text; text != want {
		t.Errorf("Slack got %q", text)
	}
	if text := log.String(); strings.Contains(text, "secret-path-of-slack") || strings.Contains(text, string(secret)) || strings.Contains(text, `\x1b`) || !strings.Contains(text, "HTTP 410") || !strings.Contains(text, "the variable A is not set") {
		t.Errorf("the log is %s", text)
	}
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	sync.Mutex
	w io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	return w.w.Write(p)
}

// TestGroups: a burst is two messages without those that were answered, an approval is sent once, and Close sends the rest.
func TestGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &receivers{}
		a := open(t, alerts.Options{Settings: withAlerts(config.Alert{Name: "team", URL: "https://x/", Secret: secret}), Transport: f})
		for n := range 50 {
			a.Approval(question(n))
			synctest.Wait()
		}
		answered := question(49)
		answered.State = approval.Allowed
		a.Approval(answered)
		time.Sleep(time.Minute)
		a.Approval(question(3)) // a program was resumed and waits again
		time.Sleep(time.Minute)
		got := f.take()
		seen := map[string]bool{}
		for _, m := range got {
			for _, e := range m.Data.Events {
				seen[e.Approval] = true
			}
		}
		if len(got) != 2 || len(seen) != 49 || seen["a-49"] {
			t.Errorf("%d messages with %d approvals", len(got), len(seen))
		}
		for n := range 3 {
			a.Approval(question(100 + n))
			synctest.Wait()
		}
		a.Close()
		a.Approval(question(200))
		if got := f.take(); len(got) != 2 || len(got[1].Data.Events) != 2 {
			t.Errorf("after Close there are %+v", got)
		}
	})
}

// TestRetries: a receiver that is down gets one message with the same id later, one that was removed from the settings none, and a flood is bounded.
func TestRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &receivers{answer: func(_ message, n int) int {
			if n < 5 {
				return http.StatusBadGateway
			}
			return http.StatusOK
		}}
		set := withAlerts(config.Alert{Name: "team", URL: "https://x/"})
		dropped := 0
		a := open(t, alerts.Options{Settings: set, Transport: f, Count: func(_, outcome string, n int) {
			if outcome == "dropped" {
				dropped += n
			}
		}})
		begun := time.Now()
		a.Approval(question(1))
		synctest.Wait()
		for n := range 600 {
			a.Approval(question(1000 + n))
		}
		if dropped != 100 {
			t.Errorf("%d events were dropped", dropped)
		}
		time.Sleep(time.Minute)
		f.mu.Lock()
		if took := f.at[4].Sub(begun); took < 7*time.Second || took > 25*time.Second || f.got[0].id != f.got[4].id {
			t.Errorf("the fifth attempt was after %s, with the ids %s and %s", took, f.got[0].id, f.got[4].id)
		}
		f.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if n := len(f.take()); n != 5+10 {
			t.Errorf("%d requests", n)
		}
		f.mu.Lock()
		f.answer = func(message, int) int { return http.StatusInternalServerError }
		f.mu.Unlock()
		a.Approval(question(2))
		synctest.Wait()
		set.Store(new(config.Default()))
		time.Sleep(2 * time.Hour)
		if n := len(f.take()); n != 1 {
			t.Errorf("a receiver that was removed got %d requests", n)
		}
	})
}

// TestWatch: an outage is sent once after a minute and once at its end, new tools by upstream, and budgets once a day.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, records := &receivers{}, store.Memory()
		defer records.Close()
		set := withAlerts(config.Alert{Name: "all", URL: "https://x/"}, config.Alert{Name: "none", URL: "https://y/", On: []string{config.OnApproval}})
		a := open(t, alerts.Options{Settings: set, Transport: f, Records: records})
		var problem atomic.Pointer[string]
		problem.Store(new(""))
		a.Watch(func() []alerts.Upstream { return []alerts.Upstream{{ID: "github", Problem: *problem.Load()}} },
			func() []alerts.Held {
				return []alerts.Held{{Upstream: "files", Tool: "files.read", Reason: "changed"}, {Upstream: "files", Tool: "files.write", Reason: "new"}}
			})
		wantTexts := func(want ...string) {
			t.Helper()
			var texts []string
			for _, m := range f.take() {
				texts = append(texts, m.Data.Text)
			}
			if !slices.Equal(texts, want) {
				t.Errorf("the alerts are %q, not %q", texts, want)
			}
		}
		time.Sleep(32 * time.Second) // between two looks
		wantTexts("2 tools of upstream files are held for review: files.read (changed), files.write (new)")
		problem.Store(new("no answer"))
		time.Sleep(30 * time.Second)
		problem.Store(new("")) // too short for an alert
		time.Sleep(time.Hour)
		wantTexts()
		problem.Store(new("no answer"))
		time.Sleep(time.Hour)
		wantTexts("upstream github is not available since 1m0s: no answer")
		problem.Store(new(""))
		time.Sleep(time.Hour)
		wantTexts("upstream github is available again, after 1h0m0s")
		for range 100 {
			a.Budget("day", "ada", "calls")
		}
		time.Sleep(time.Minute)
		wantTexts(`budget "day" is used up for today (calls), for ada`)
		again := open(t, alerts.Options{Settings: set, Transport: f, Records: records})
		again.Budget("day", "ada", "calls")
		time.Sleep(24 * time.Hour)
		wantTexts()
		again.Budget("day", "ada", "calls")
		time.Sleep(time.Minute)
		wantTexts(`budget "day" is used up for today (calls), for ada`)
		again.Close()
		a.Close()
	})
}

// TestReply checks who may answer an approval: only a receiver that got it, once, with a fresh signature over its id.
func TestReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		otherKey := []byte("another key of another receiver")
		f, set := &receivers{}, withAlerts(
			config.Alert{Name: "team", URL: "https://x/", Secret: secret, On: []string{config.OnApproval}},
			config.Alert{Name: "money", URL: "https://y/", Secret: config.Secret(otherKey), On: []string{config.OnBudget}})
		records := store.Memory()
		defer records.Close()
		answered := map[string]string{}
		a := open(t, alerts.Options{Settings: set, Transport: f, Records: records, Answer: func(ctx context.Context, id string, answer approval.Answer) (approval.Approval, error) {
			if answered[id] != "" {
				return approval.Approval{}, &tool.Error{Kind: tool.Invalid, Message: "no longer pending"}
			}
			answered[id] = fmt.Sprint(answer.By, " ", answer.Allow, " ", answer.Note, " ", tool.Operator(ctx))
			return approval.Approval{ID: id, State: approval.Allowed}, nil
		}})
		a.Approval(question(1))
		a.Approval(question(2))
		time.Sleep(time.Minute)
		mux := http.NewServeMux()
		mux.Handle("POST /api/approvals/{id}/reply", a)
		post := func(id string, key []byte, age time.Duration, body string) int {
			timestamp := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/approvals/"+id+"/reply", strings.NewReader(body))
			r.Header.Set("Webhook-Id", "reply-1")
			r.Header.Set("Webhook-Timestamp", timestamp)
			r.Header.Set("Webhook-Signature", signature(key, "reply-1", timestamp, body))
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			return w.Code
		}
		allow := `{"approval":"a-1","decision":"allow","note":"fine"}`
		for name, c := range map[string]struct {
			id     string
			key    []byte
			age    time.Duration
			body   string
			status int
		}{
			"wrong key":                  {"a-1", []byte("wrong"), 0, allow, 401},
			"old":                        {"a-1", key, 6 * time.Minute, allow, 401},
			"from the future":            {"a-1", key, -6 * time.Minute, allow, 401},
			"receiver of other alerts":   {"a-1", otherKey, 0, allow, 401},
			"for another approval":       {"a-2", key, 0, allow, 400},
			"approval that was not told": {"a-3", key, 0, strings.Replace(allow, "a-1", "a-3", 1), 404},
			"unknown member":             {"a-1", key, 0, `{"approval":"a-1","decision":"allow","by":"root"}`, 400},
			"two answers":                {"a-1", key, 0, allow + allow, 400},
			"no decision":                {"a-1", key, 0, `{"approval":"a-1"}`, 400},
			"large":                      {"a-1", key, 0, strings.Repeat(" ", 20<<10), 413},
		} {
			if status := post(c.id, c.key, c.age, c.body); status != c.status || len(answered) > 0 {
				t.Errorf("%s: status %d, not %d; answered: %v", name, status, c.status, answered)
			}
		}
		if status := post("a-1", key, time.Minute, allow); status != 200 || answered["a-1"] != "alert team true fine alert team" {
			t.Errorf("status %d, %v", status, answered)
		}
		if status := post("a-1", key, time.Minute, allow); status != 409 {
			t.Errorf("a replay has status %d", status)
		}
		a.Close()
	})
}
