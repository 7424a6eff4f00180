package grpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/gateway/upstream/grpc"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/testutil/grpcserver"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

var allNames = []string{"Archive_getOrder", "Fail", "ListOrders", "Old", "Orders_GetOrder", "SaveOrder", "Version", "Wait"}

func TestTools(t *testing.T) {
	t.Parallel()
	_, api := start(t)
	if got := api.Names(); !slices.Equal(got, allNames) {
		t.Errorf("the tools are %q", got)
	}
	if got := fmt.Sprint(api.Skipped); got != "[method shop.v1.Orders/Upload: its requests are a stream method shop.v1.Orders/Talk: its requests are a stream]" {
		t.Errorf("skipped: %s", got)
	}
}

// compile fails the test if a schema of a tool is invalid, and returns the size of the largest definition.
func compile(tb testing.TB, api *grpc.API) (largest int) {
	tb.Helper()
	c := jsonschema.NewCompiler()
	for _, raw := range api.Definitions() {
		largest = max(largest, len(raw))
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			tb.Fatalf("%v in %s", err, raw)
		}
		tool := v.(map[string]any)
		for _, key := range []string{"inputSchema", "outputSchema"} {
			at := fmt.Sprintf("mem:///%v/%s.json", tool["name"], key)
			if err := c.AddResource(at, tool[key]); err != nil {
				tb.Fatal(err)
			}
			if _, err := c.Compile(at); err != nil {
				tb.Errorf("%s: %v", at, err)
			}
		}
	}
	return largest
}

// TestDefinitions: the definitions of a descriptor set with comments.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	api := load(t, grpc.Options{Endpoint: "http://unused.example", Descriptors: descriptorFile(t, grpcserver.Descriptors)})
	var b bytes.Buffer
	for _, d := range api.Definitions() {
		if err := json.Indent(&b, d, "", " "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	compile(t, api)
	golden.Check(t, "testdata/definitions.txt", b.String())
}

// TestReflection: the same tools, but for comments, whichever version of reflection the server has.
func TestReflection(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v1alpha"} {
		s := grpcserver.Start(t, grpcserver.Options{Reflection: []string{version}})
		if got := load(t, optionsOf(t, s)).Names(); !slices.Equal(got, allNames) {
			t.Errorf("%s: the tools are %q", version, got)
		}
	}
	s := grpcserver.Start(t, grpcserver.Options{Reflection: []string{}})
	_, err := grpc.Load(t.Context(), optionsOf(t, s))
	if want := `the server has no reflection: name the file of a descriptor set with "grpc" and the server with "url"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without reflection: %v", err)
	}
	opts := optionsOf(t, s)
	opts.Descriptors = descriptorFile(t, grpcserver.Descriptors)
	if got := call(t, load(t, opts), "Orders_GetOrder", `{"id":7}`); !strings.Contains(got, `"customerName":"ann"`) {
		t.Errorf("by a descriptor set: %s", got)
	}
}

// order is an Order with a value of each kind, as protojson writes it.
const order = `{"id":"9007199254740993","customerName":"bo","state":"STATE_OPEN","items":[{"name":"pen","count":4294967295}],` +
	`"stock":{"a":-1},"byId":{"5":{"name":"ink","count":0}},"card":{"number":"1"},"photo":"aGk=","created":"2026-01-02T03:04:05.500Z",` +
	`"delivery":"1.500s","mask":"customerName,card.number","extra":{"x":[1,null,"y"]},"value":[true],"any":{"@type":"type.googleapis.com/shop.v1.Item","name":"in","count":2},` +
	`"limit":"12","note":"","price":1.5,"big":"18446744073709551615","states":["STATE_CLOSED","STATE_UNSPECIFIED"],` +
	`"parent":{"id":"1","customerName":"","state":"STATE_UNSPECIFIED","items":[],"stock":{},"byId":{},"photo":"","price":0,"big":"0","states":[],"weight":0,"paid":false},` +
	`"tree":{"name":"r","children":[{"name":"c","children":[]}]},"list":[1,"two"],"weight":0.5,"paid":true}`

// TestValues: what is sent comes back as the same value, of each kind, and fits the declared types.
func TestValues(t *testing.T) {
	t.Parallel()
	s, api := start(t)
	got := call(t, api, "SaveOrder", order)
	if !sameJSON(t, got, order) {
		t.Errorf("saved\n%s\nwant\n%s", got, order)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	check := func(key string) {
		if err := schemaOf(t, api, "SaveOrder", key).Validate(value); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	check("outputSchema")
	delete(value.(map[string]any), "created") // only in results
	check("inputSchema")
	seen, deadline := s.Requests()
	if len(seen) != 1 || deadline || seen[0].Get("user-agent")[0] != "sallyport" {
		t.Errorf("the server saw %v, %v", seen, deadline)
	}
}

// schemaOf returns a schema of a tool.
func schemaOf(tb testing.TB, api *grpc.API, name, key string) *jsonschema.Schema {
	tb.Helper()
	tool, err := jsonschema.UnmarshalJSON(strings.NewReader(definition(tb, api, name)))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///schema", tool.(map[string]any)[key]); err != nil {
		tb.Fatal(err)
	}
	return c.MustCompile("mem:///schema")
}

func sameJSON(tb testing.TB, a, b string) bool {
	tb.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			tb.Fatalf("%v in %s", err, text)
		}
	}
	x, _ := json.Marshal(values[0])
	y, _ := json.Marshal(values[1])
	return bytes.Equal(x, y)
}

func TestCalls(t *testing.T) {
	t.Parallel()
	_, api := start(t)
	for _, c := range []struct{ name, args, want string }{
		{"Orders_GetOrder", `{"id":"404"}`, "error: gRPC NOT_FOUND: there is no order 404"},
		{"Orders_GetOrder", `{"id":404}`, "error: gRPC NOT_FOUND: there is no order 404"},
		{"Orders_GetOrder", `{"idd":1}`, `refused: (line 1:2): unknown field "idd"`},
		{"Orders_GetOrder", `[]`, "refused: the arguments must be a JSON object"},
		{"SaveOrder", `{"card":{},"invoice":"x"}`, `refused: (line 1:12): error parsing "invoice", oneof shop.v1.Order.payment is already set`},
		{"SaveOrder", `{"any":{"@type":"type.googleapis.com/none.Such"}}`, `refused: (line 1:17): unable to resolve "type.googleapis.com/none.Such": "not found"`},
		{"none", `{}`, `refused: there is no tool "none"`},
		{"Version", ``, `{"result":"1.2"}`},
		{"Old", `{}`, `{"old":true}`},
		{"Fail", `{"code":9,"message":"too\nlate","details":true}`, "error: gRPC FAILED_PRECONDITION: too\nlate\nshop.v1.Item {\"name\":\"pen\",\"count\":0}\ngoogle.protobuf.Value \"because\""},
		{"Fail", `{"code":99}`, "error: gRPC status 99"},
		{"Fail", `{}`, `{}`},
		{"Wait", `{"duration":"1s"}`, "refused: the arguments must be request"},
		{"ListOrders", `{"count":2,"max_messages":0}`, "refused: max_messages must be a number from 1 to 10000"},
	} {
		if got := call(t, api, c.name, c.args); got != c.want {
			t.Errorf("%s(%s) is %q, want %q", c.name, c.args, got, c.want)
		}
	}
}

// TestStream: a stream is the list of its messages, up to the number that was asked for, and to the limit of bytes.
func TestStream(t *testing.T) {
	t.Parallel()
	s := grpcserver.Start(t, grpcserver.Options{})
	opts := optionsOf(t, s)
	opts.MaxResponse = 100_000
	api := load(t, opts)
	for _, c := range []struct {
		args      string
		count     int
		truncated bool
	}{
		{`{"count":0}`, 0, false}, {`{"count":3}`, 3, false}, {`{"count":101}`, 100, true}, {`{"count":100}`, 100, false},
		{`{"count":2000000,"max_messages":2}`, 2, true}, {`{"count":5,"max_messages":5}`, 5, false},
		{`{"count":50,"size":30000}`, 3, true},
	} {
		var got struct {
			Messages  []struct{ ID string }
			Truncated bool
		}
		text := call(t, api, "ListOrders", c.args)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v in %.200s", c.args, err, text)
		}
		if len(got.Messages) != c.count || got.Truncated != c.truncated {
			t.Errorf("%s: %d messages, truncated: %v", c.args, len(got.Messages), got.Truncated)
		}
	}
	if got := call(t, api, "ListOrders", `{"count":1,"size":200000}`); got != "error: the response has more than 100000 bytes; ask for less: a page, a filter, fewer fields" {
		t.Errorf("one large message: %.200s", got)
	}
}

// TestDeadline: the server gets the deadline of a call, and the call ends at it.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s, api := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	result, err := api.Call(ctx, "Wait", json.RawMessage(`{"request":"1s"}`))
	if _, deadline := s.Requests(); !deadline {
		t.Error("the server got no deadline")
	}
	if err == nil && strings.Contains(string(result), "DEADLINE_EXCEEDED") { // the server was first
		return
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s, %v", result, err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certificate := tlstest.Certificate(t)
	s := grpcserver.Start(t, grpcserver.Options{Certificate: &certificate})
	opts := optionsOf(t, s)
	opts.Endpoint = "https://" + s.Address
	if got := call(t, load(t, opts), "Version", "{}"); got != `{"result":"1.2"}` {
		t.Errorf("with TLS: %s", got)
	}
	stranger := plain(t)
	stranger.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	opts.Transport = stranger
	if _, err := grpc.Load(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
}

// TestRefused: without the key, or of a server that does not speak gRPC, the reason is told.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := grpcserver.Start(t, grpcserver.Options{})
	opts := optionsOf(t, s)
	opts.Headers = nil
	if _, err := grpc.Load(t.Context(), opts); err == nil || err.Error() != "ask for the gRPC services: UNAUTHENTICATED: the metadata x-key is wrong" {
		t.Errorf("without a key: %v", err)
	}
	for path, want := range map[string]string{
		"/page": `the server does not speak gRPC: its response is "text/html"`, "/gone": "HTTP 410 Gone: it has moved",
		"/moved": "HTTP 307 Temporary Redirect: the server redirects to https://other.example/, which is not followed",
	} {
		server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/gone"):
				http.Error(w, "it has moved", http.StatusGone)
			case strings.HasPrefix(r.URL.Path, "/moved"):
				http.Redirect(w, r, "https://other.example/", http.StatusTemporaryRedirect)
			default:
				w.Header().Set("Content-Type", "text/html")
			}
		}))
		opts := grpc.Options{Endpoint: server.URL + path, Transport: plain(t)}
		if _, err := grpc.Load(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestChoice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		include, exclude []string
		want             string
	}{
		{[]string{"service:*.Archive"}, nil, "getOrder"},
		{[]string{"Get*", "Version"}, nil, "GetOrder Version"},
		{nil, []string{"service:shop.v1.Archive", "*O*", "Wait"}, "Fail Version"},
	} {
		api := load(t, grpc.Options{Endpoint: "http://unused.example", Descriptors: descriptorFile(t, grpcserver.Descriptors), Include: c.include, Exclude: c.exclude})
		if got := strings.Join(api.Names(), " "); got != c.want {
			t.Errorf("include %q, exclude %q: %s", c.include, c.exclude, got)
		}
	}
	_, err := grpc.Load(t.Context(), grpc.Options{Descriptors: descriptorFile(t, grpcserver.Descriptors), Include: []string{"none"}})
	if err == nil || !strings.Contains(err.Error(), "include and exclude leave none") {
		t.Errorf("none: %v", err)
	}
}

// TestWrongScheme: a URL with the wrong scheme, and a server of HTTP/1.1, fail with a reason.
func TestWrongScheme(t *testing.T) {
	t.Parallel()
	certificate := tlstest.Certificate(t)
	secure, open := grpcserver.Start(t, grpcserver.Options{Certificate: &certificate}), grpcserver.Start(t, grpcserver.Options{})
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	for url, want := range map[string]string{
		"http://" + secure.Address: "does the server speak HTTP/2 without TLS?", "https://" + open.Address: "does not look like a TLS handshake",
		old.URL: "does the server speak HTTP/2 without TLS?", "http://127.0.0.1:1": "connection refused",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := grpc.Load(ctx, grpc.Options{Endpoint: url, Transport: plain(t)})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
}
