package upstream_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/testutil/grpcserver"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// The methods of a gRPC server are tools of a session like any other's; secrets of the settings are hidden in what it answers.
func TestGRPC(t *testing.T) {
	t.Parallel()
	certificate := tlstest.Certificate(t)
	for _, opts := range []grpcserver.Options{{}, {Certificate: &certificate}} {
		server := grpcserver.Start(t, opts)
		url := server.URL()
		if opts.Certificate != nil {
			url = "https://" + server.Address
		}
		settings := upstream.Settings{
			ID: "shop", GRPC: url, URL: url, Headers: map[string]string{"X-Key": grpcserver.Key}, Include: []string{"service:*.Orders"}, Exclude: []string{"Wait"},
		}
		s := open(t, settings, nil)
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tools := s.Tools(); len(tools) != 6 || tools[1].ID.Name != "GetOrder" || !*tools[1].Annotations.ReadOnly || tools[0].Annotations.ReadOnly != nil {
			t.Fatalf("tools %+v", tools)
		}
		if r, err := callGRPC(t, s, "SaveOrder", `{"invoice":"`+grpcserver.Key+`"}`); err != nil || !strings.Contains(string(r.Structured), `"invoice":"[hidden]"`) {
			t.Errorf("%s: %s %v", url, r.Structured, err)
		}
		if r, err := callGRPC(t, s, "GetOrder", `{"id":404}`); err != nil || !r.IsError || r.Content[0].Text != "gRPC NOT_FOUND: there is no order 404" {
			t.Errorf("%s: %+v %v", url, r, err)
		}
		if _, err := callGRPC(t, s, "GetOrder", `{"idd":404}`); kindOfError(err) != tool.Invalid {
			t.Errorf("a wrong field: %v", err)
		}
		settings.Headers = nil
		if err := open(t, settings, nil).Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "UNAUTHENTICATED: the metadata x-key is wrong") {
			t.Errorf("without a key: %v", err)
		}
	}
}

func callGRPC(t *testing.T, s *upstream.Session, name, args string) (tool.Result, error) {
	t.Helper()
	return s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "shop", Name: name}, Args: json.RawMessage(args)})
}

// A call that takes too long, and one of a server that is gone, fail alone.
func TestGRPCFaults(t *testing.T) {
	t.Parallel()
	server := grpcserver.Start(t, grpcserver.Options{Reflection: []string{}})
	path := filepath.Join(t.TempDir(), "shop.binpb")
	if err := os.WriteFile(path, grpcserver.Descriptors, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := upstream.Settings{ID: "shop", GRPC: path, URL: server.URL(), Headers: map[string]string{"X-Key": grpcserver.Key}, Timeout: 300 * time.Millisecond}
	s := open(t, settings, nil)
	r, err := callGRPC(t, s, "Wait", `{"request":"9s"}`)
	if late := err == nil && r.IsError && strings.Contains(r.Content[0].Text, "DEADLINE_EXCEEDED"); !late && kindOfError(err) != tool.Timeout {
		t.Errorf("hanging: %+v %v", r, err)
	}
	if s.State().Status != upstream.Ready {
		t.Errorf("state %+v", s.State())
	}
	settings.URL = "http://127.0.0.1:1"
	if _, err := callGRPC(t, open(t, settings, nil), "Version", `{}`); kindOfError(err) != tool.Upstream {
		t.Errorf("refused: %v", err)
	}
}

// With auth a server gets the token of the login.
func TestGRPCAuth(t *testing.T) {
	t.Parallel()
	server := grpcserver.Start(t, grpcserver.Options{})
	settings := upstream.Settings{ID: "shop", GRPC: server.URL(), URL: server.URL(), Headers: map[string]string{"X-Key": grpcserver.Key}, Auth: config.Auth{Type: "oauth"}}
	k := &keys{}
	k.got.Store(1)
	s := open(t, settings, &upstream.Options{Auth: k})
	if r, err := callGRPC(t, s, "Version", `{}`); err != nil || r.IsError {
		t.Errorf("result %+v, %v", r, err)
	}
	seen, _ := server.Requests()
	if got := seen[len(seen)-1].Get("authorization"); len(got) != 1 || !strings.HasPrefix(got[0], "Bearer token-") {
		t.Errorf("the server saw %q", got)
	}
}
