package webtools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/gateway/upstream/inprocess"
	"sallyport/internal/config"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

const token = "k7-secret-of-the-edge"

// zone resolves names of tests.
func zone(names map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, name string) ([]netip.Addr, error) {
		if text, ok := names[name]; ok {
			return []netip.Addr{netip.MustParseAddr(text)}, nil
		}
		return nil, fmt.Errorf("no host %s", name)
	}
}

// api is an HTTP server that records its requests.
type api struct {
	server *httptest.Server
	mu     sync.Mutex
	seen   []string
}

func newAPI(t *testing.T, names ...string) *api {
	t.Helper()
	a := &api{}
	a.server = httptest.NewUnstartedServer(a)
	tlstest.StartAs(t, a.server, names...)
	t.Cleanup(a.server.Close)
	return a
}

func (a *api) port() string {
	_, port, _ := net.SplitHostPort(a.server.Listener.Addr().String())
	return port
}

func (a *api) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.seen = append(a.seen, strings.TrimSpace(fmt.Sprintf("%s %s %s [%s] %s %s", r.Method, r.Host, r.URL, r.Header.Get("Authorization"), r.Header.Get("X-Own"), body)))
	a.mu.Unlock()
	switch r.URL.Path {
	case "/json":
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		_, _ = io.WriteString(w, `{"id": 12345678901234567890, "name": "<b>"}`)
	case "/broken":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id": `)
	case "/binary":
		_, _ = w.Write([]byte{0xff, 0xfe, 0})
	case "/missing":
		http.Error(w, "no such page", http.StatusNotFound)
	case "/large":
		_, _ = w.Write(make([]byte, 200_000))
	case "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	case "/to":
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusTemporaryRedirect)
	default:
		_, _ = io.WriteString(w, "hello")
	}
}

// settings returns an upstream with the key egress.
func settings(t *testing.T, egress string) config.Upstream {
	t.Helper()
	c, err := config.Parse("upstreams.yaml", []byte("upstreams:\n  web:\n    max_message: 64KiB\n    egress:\n"+egress), func(name string) (string, bool) { return token, name == "TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	return c.Upstreams[0]
}

// call returns the result of a tool in short: its structured content, its error, or that of the protocol.
func call(t *testing.T, s inprocess.Server, name, args string) string {
	t.Helper()
	raw, err := s.Call(t.Context(), name, json.RawMessage(args))
	if err != nil {
		return "refused: " + err.Error()
	}
	var r struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if r.IsError {
		return "error: " + r.Content[0].Text
	}
	return string(r.StructuredContent)
}

// TestRequests sends requests that are allowed, and that are not, to hosts that answer, redirect and fail.
func TestRequests(t *testing.T) {
	t.Parallel()
	good, other := newAPI(t, "api.test", "a.wild.test"), newAPI(t, "other.test")
	yaml := strings.NewReplacer("PORT", good.port(), "OTHER", other.port()).Replace(`
      hosts: [inside.test:PORT]
      private_hosts:
        - {name: api.test:PORT, methods: [GET, POST], header: {Authorization: "Bearer ${TOKEN}"}}
        - "*.wild.test:PORT"
        - other.test:OTHER
        - wrong.test:PORT
        - metadata.test:PORT
`)
	s := open(settings(t, yaml), "test", zone(map[string]string{
		"api.test": "127.0.0.1", "a.wild.test": "127.0.0.1", "other.test": "127.0.0.1", "wrong.test": "127.0.0.1", "inside.test": "127.0.0.1", "metadata.test": "169.254.169.254",
	}))
	defer s.Close()
	for _, test := range []struct{ name, tool, args, want string }{
		{"JSON", "get", `{"url": "https://api.test:PORT/json"}`, `"encoding":"json","body":{"id": 12345678901234567890, "name": "<b>"}}`},
		{"text", "get", `{"url": "https://API.test:PORT/x?a=b c"}`, `"encoding":"text","body":"hello"}`},
		{"a status and a URL", "get", `{"url": "https://api.test:PORT/x"}`, `{"status":200,"url":"https://api.test:PORT/x","headers":{`},
		{"broken JSON", "get", `{"url": "https://api.test:PORT/broken"}`, `"encoding":"text","body":"{\"id\": "}`},
		{"other data", "get", `{"url": "https://api.test:PORT/binary"}`, `"encoding":"base64","body":"//4A"}`},
		{"an error", "get", `{"url": "https://api.test:PORT/missing"}`, "error: HTTP 404 Not Found: no such page"},
		{"an error that is asked for", "get", `{"url": "https://api.test:PORT/missing", "any_status": true}`, `"status":404`},
		{"too much", "get", `{"url": "https://api.test:PORT/large"}`, "error: the response has more than 65536 bytes"},
		{"a wildcard", "get", `{"url": "https://a.wild.test:PORT/wild"}`, `"body":"hello"`},
		{"JSON is sent", "send", `{"url": "https://api.test:PORT/save", "method": "POST", "json": {"a": 1.50}, "headers": {"X-Own": "mine", "authorization": "mine"}}`, `"body":"hello"`},
		{"text is sent", "send", `{"url": "https://api.test:PORT/note", "method": "POST", "text": "plain"}`, `"body":"hello"`},
		{"a redirect", "get", `{"url": "https://api.test:PORT/to?url=https://other.test:OTHER/there"}`, `"url":"https://other.test:OTHER/there"`},
		{"a redirect to a host that is not allowed", "get", `{"url": "https://api.test:PORT/to?url=https://evil.test/"}`, "redirects to https://evil.test/, which is not followed"},
		{"a redirect of a change", "send", `{"url": "https://api.test:PORT/to?url=https://other.test:OTHER/changed", "method": "POST", "text": "x"}`, "which is not followed"},
		{"a redirect within a host", "send", `{"url": "https://api.test:PORT/to?url=/moved", "method": "POST", "text": "x"}`, `"body":"hello"`},
		{"a redirect without end", "get", `{"url": "https://api.test:PORT/loop"}`, "was not reached: too many redirects"},
		{"another host", "get", `{"url": "https://apis.test:PORT/"}`, "refused: host \"apis.test:PORT\" is not allowed; allowed are *.wild.test:PORT, api.test:PORT, inside.test:PORT"},
		{"another port", "get", `{"url": "https://api.test/"}`, "is not allowed"},
		{"an address", "get", `{"url": "https://127.0.0.1:PORT/"}`, "is not allowed"},
		{"no TLS", "get", `{"url": "http://api.test:PORT/"}`, "refused: write https:// for this host and port"},
		{"a file", "get", `{"url": "file:///etc/passwd"}`, "refused: url must start with https://"},
		{"a user", "get", `{"url": "https://me:pass@api.test:PORT/"}`, "refused: url must not have a user"},
		{"a method", "send", `{"url": "https://other.test:OTHER/", "method": "POST"}`, "refused: POST to other.test:OTHER is not allowed; allowed are GET"},
		{"DELETE", "send", `{"url": "https://api.test:PORT/", "method": "DELETE"}`, "refused: DELETE to api.test:PORT is not allowed"},
		{"a body of get", "get", `{"url": "https://api.test:PORT/", "method": "POST"}`, "refused: get sends no method"},
		{"two bodies", "send", `{"url": "https://api.test:PORT/", "method": "POST", "text": "x", "json": 1}`, "refused: json and text are both a body"},
		{"another Host", "get", `{"url": "https://api.test:PORT/", "headers": {"Host": "other.test"}}`, `refused: the header "Host" belongs to the connection`},
		{"a header with a line break", "get", `{"url": "https://api.test:PORT/smuggled", "headers": {"X-Own": "a\r\nX-Evil: 1"}}`, "error: "},
		{"a private address", "get", `{"url": "https://inside.test:PORT/"}`, "was not reached: it has an address of a private network"},
		{"metadata", "get", `{"url": "https://metadata.test:PORT/"}`, "was not reached: it has a link-local or metadata address"},
		{"another certificate", "get", `{"url": "https://wrong.test:PORT/"}`, "was not reached: tls: "},
		{"wrong types", "get", `{"url": 1}`, "refused: the arguments do not have the types"},
	} {
		ports := strings.NewReplacer("PORT", good.port(), "OTHER", other.port())
		if got := call(t, s, test.tool, ports.Replace(test.args)); !strings.Contains(got, ports.Replace(test.want)) {
			t.Errorf("%s: %s\nwant %s", test.name, got, ports.Replace(test.want))
		}
	}
	checkSeen(t, good, other)
}

// checkSeen checks that the secret went to its host only, with each request to it, and that no request was changed.
func checkSeen(t *testing.T, good, other *api) {
	t.Helper()
	for _, seen := range good.got() {
		if strings.HasPrefix(seen, "GET a.wild.test") == strings.Contains(seen, "[Bearer "+token+"]") || strings.Contains(seen, "smuggled") {
			t.Errorf("the host got %q", seen)
		}
	}
	for _, want := range []string{`POST api.test:PORT /save [Bearer TOKEN] mine {"a": 1.50}`, "POST api.test:PORT /note [Bearer TOKEN]  plain", "POST api.test:PORT /moved [Bearer TOKEN]  x"} {
		if want := strings.NewReplacer("PORT", good.port(), "TOKEN", token).Replace(want); !slices.Contains(good.got(), want) {
			t.Errorf("the host did not get %q: %q", want, good.got())
		}
	}
	if got := other.got(); !slices.Equal(got, []string{"GET other.test:" + other.port() + " /there []"}) {
		t.Errorf("the other host got %q", got)
	}
}

// TestTools checks which tools there are, by the methods that are allowed.
func TestTools(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"      hosts: [a.test, b.test]\n":                              "get: Fetches a URL by HTTP from a.test, b.test.",
		"      hosts: [{name: a.test, methods: [POST]}]\n":             "send: Sends an HTTP request that can change data to a.test.",
		"      hosts: [{name: a.test, methods: [PUT, GET]}, b.test]\n": "get: Fetches a URL by HTTP from a.test, b.test.|send: Sends an HTTP request that can change data to a.test.",
		"      hosts: [" + many(25) + "]\n":                            "x18.test, x19.test and 5 more.",
	} {
		var all []string
		for _, raw := range open(settings(t, yaml), "test", nil).Definitions {
			var d struct{ Name, Description string }
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			all = append(all, d.Name+": "+d.Description)
		}
		if got := strings.Join(all, "|"); !strings.HasSuffix(got, want) {
			t.Errorf("%s%s\nwant %s", yaml, got, want)
		}
	}
}

// many returns names of hosts.
func many(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("x%02d.test", i))
	}
	return strings.Join(names, ", ")
}

// TestCanceled checks that a request ends with the call.
func TestCanceled(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(started); <-r.Context().Done() }))
	tlstest.StartAs(t, server, "api.test")
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s := open(settings(t, "      private_hosts: [api.test:"+port+"]\n"), "test", zone(map[string]string{"api.test": "127.0.0.1"}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := s.Call(ctx, "get", json.RawMessage(`{"url": "https://api.test:`+port+`/"}`)); err == nil || ctx.Err() == nil {
		t.Errorf("a canceled call: %v", err)
	}
}

// FuzzAllowed checks that no URL reaches a host that is not allowed.
func FuzzAllowed(f *testing.F) {
	for _, text := range []string{"https://api.test/", "https://api.test.evil.test/", "https://evil.test#@api.test", "https://api.test\\@evil.test/", "https://api.test:443@evil.test", "http://api.test:443/", "https://[::1]/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var dialed []string
		s := &server{access: *settings(t, "      hosts: [api.test]\n").Egress, limit: 1}
		s.client = &http.Client{Transport: edge{s.access, &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, io.EOF
		}}}}
		args, err := json.Marshal(map[string]string{"url": text})
		if err != nil {
			return
		}
		_, _ = s.call(t.Context(), "get", args)
		if len(dialed) > 0 && dialed[0] != "api.test:443" {
			t.Errorf("%q: dialed %q", text, dialed)
		}
	})
}
