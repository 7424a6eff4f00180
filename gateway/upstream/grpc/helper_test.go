package grpc_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/upstream/grpc"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/testutil/grpcserver"
)

// plain returns a transport for HTTP/2, without encryption for http.
func plain(tb testing.TB) *http.Transport {
	tb.Helper()
	t := &http.Transport{Protocols: grpc.Protocols()}
	tb.Cleanup(t.CloseIdleConnections)
	return t
}

func optionsOf(tb testing.TB, s *grpcserver.Server) grpc.Options {
	tb.Helper()
	return grpc.Options{Endpoint: s.URL(), Transport: plain(tb), Credentials: webapi.Credentials{Headers: map[string]string{"X-Key": grpcserver.Key}}}
}

func load(tb testing.TB, opts grpc.Options) *grpc.API {
	tb.Helper()
	api, err := grpc.Load(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// start returns the tools of a server of the tests.
func start(tb testing.TB) (*grpcserver.Server, *grpc.API) {
	tb.Helper()
	s := grpcserver.Start(tb, grpcserver.Options{})
	return s, load(tb, optionsOf(tb, s))
}

// descriptorFile returns the path of a descriptor set of the services.
func descriptorFile(tb testing.TB, data []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "shop.binpb")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// call returns the structured result of a call, or its text if it has none, with "error: " if it is one.
func call(tb testing.TB, api *grpc.API, name, args string) string {
	tb.Helper()
	raw, err := api.Call(tb.Context(), name, json.RawMessage(args))
	if err != nil {
		return "refused: " + err.Error()
	}
	var r struct {
		StructuredContent json.RawMessage
		IsError           bool
		Content           []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		tb.Fatal(err)
	}
	switch {
	case r.IsError:
		return "error: " + r.Content[0].Text
	case len(r.StructuredContent) > 0:
		return string(r.StructuredContent)
	}
	return r.Content[0].Text
}

// definition returns the definition of a tool.
func definition(tb testing.TB, api *grpc.API, name string) string {
	tb.Helper()
	for _, d := range api.Definitions() {
		if strings.HasPrefix(string(d), `{"name":"`+name+`"`) {
			return string(d)
		}
	}
	tb.Fatalf("there is no tool %s in %q", name, api.Names())
	return ""
}
