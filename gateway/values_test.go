package gateway_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/config"
	"sallyport/internal/testutil/tlstest"
)

// TestValues holds what programs get for a result against the table that the
// clients outside of a sandbox are held against, too (codegen/client).
func TestValues(t *testing.T) {
	data, err := os.ReadFile("../codegen/runtime/client/testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name          string
		Result, Value json.RawMessage
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	var result atomic.Pointer[json.RawMessage] // requests that are no call come whenever they like
	result.Store(new(json.RawMessage))
	web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerRaw(w, r, *result.Load()) }))
	defer web.Close()
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{upstreamOf("up", web.URL)}
	g := open(t, &cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	for _, c := range cases {
		result.Store(&c.Result)
		r, err := call(t, g, "up.f", `{}`)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got, _ := json.Marshal(r.Value())
		if diff := cmp.Diff(loose(t, c.Value), loose(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name, diff)
		}
	}
}

// loose decodes a value and drops what is empty in a blob.
func loose(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if blob, ok := v["blob"].(map[string]any); ok {
		for name, value := range blob {
			if value == "" {
				delete(blob, name)
			}
		}
	}
	return v
}

// answerRaw is a server of one tool "f" that sends the result byte for byte.
func answerRaw(w http.ResponseWriter, r *http.Request, result json.RawMessage) {
	body, _ := io.ReadAll(r.Body)
	var message struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &message)
	answers := map[string]json.RawMessage{
		"initialize": json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`),
		"tools/list": json.RawMessage(`{"tools":[{"name":"f","inputSchema":{"type":"object"}}]}`),
		"tools/call": result,
	}
	answer, known := answers[message.Method]
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case len(message.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case !known:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), message.ID, []byte(`,"error":{"code":-32601,"message":"no such method"}}`)}, nil))
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), message.ID, []byte(`,"result":`), answer, []byte("}")}, nil))
	}
}
