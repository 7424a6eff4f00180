package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/telemetry/telemetrytest"
	"sallyport/internal/testutil"
)

const (
	inMeta   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	inHeader = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

const tracing = `from servers.odd import odd_tool
from servers.shy import odd_tool as other
from sallyport import parallel
parallel([lambda: odd_tool(z=4711), lambda: other(z=4711)])
print("hush")
`

// TestOneTrace follows a request of a client through its program to the upstreams, who are told where they stand in it,
// but for the one that must not know.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	collector := telemetrytest.New(t)
	watched, flush := collector.Open(t)
	odd, shy := newRawServer(t, oddAnswers()), newRawServer(t, oddAnswers())
	cfg := config.Default()
	cfg.Trust, cfg.Sandbox.Runsc, cfg.Sandbox.Pool = config.TrustAllow, testutil.Runsc(t), config.Pool{}
	cfg.Upstreams = []config.Upstream{upstream("odd", odd.url, ""), upstream("shy", shy.url, "")}
	cfg.Upstreams[1].NoTraceContext = true
	g, err := gateway.Open(&cfg, &gateway.Options{Telemetry: watched})
	if err != nil {
		t.Fatal(err)
	}
	tools := mcpserver.New(g.Service(), &mcpserver.Options{Telemetry: watched})
	face := mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{Telemetry: watched})
	t.Cleanup(func() {
		tools.Close()
		face.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	url := serve(t, face, &siteOptions{Tools: tools}) + "/mcp"
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearing{inHeader}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, params := range []*mcp.CallToolParams{
		{Name: "execute_code", Arguments: map[string]any{"code": tracing}, Meta: mcp.Meta{"traceparent": inMeta}},
		{Name: "search_tools", Arguments: map[string]any{"query": "odd"}},
	} {
		if result, err := session.CallTool(t.Context(), params); err != nil || result.IsError {
			t.Fatal(err, result)
		}
	}
	_ = session.Close()
	flush()

	traceID, spanID := parts(inMeta)
	spans := map[string]telemetrytest.Span{}
	for _, s := range collector.Spans() {
		if s.Trace == traceID {
			spans[s.Name+s.Attributes["sallyport.upstream"]] = s
		}
	}
	for name, want := range map[string]struct{ parent, kind string }{
		"tools/call execute_code":   {spanID, "SPAN_KIND_SERVER"},
		"execute_code python":       {spans["tools/call execute_code"].ID, "SPAN_KIND_INTERNAL"},
		"execute_tool odd.odd_tool": {spans["execute_code python"].ID, "SPAN_KIND_INTERNAL"},
		"execute_tool shy.odd_tool": {spans["execute_code python"].ID, "SPAN_KIND_INTERNAL"},
		"tools/call odd_toolodd":    {spans["execute_tool odd.odd_tool"].ID, "SPAN_KIND_CLIENT"},
		"tools/call odd_toolshy":    {spans["execute_tool shy.odd_tool"].ID, "SPAN_KIND_CLIENT"},
	} {
		if got, ok := spans[name]; !ok || got.Parent != want.parent || got.Kind != want.kind || got.Failed {
			t.Errorf("%s is %+v, want a child of %s", name, got, want.parent)
		}
	}
	if traceID, spanID := parts(inHeader); collector.Span("tools/call search_tools").Trace != traceID || collector.Span("tools/call search_tools").Parent != spanID {
		t.Errorf("the trace of the header is not gone on with: %+v", collector.Span("tools/call search_tools"))
	}
	if got := spans["execute_code python"].Attributes; !strings.HasPrefix(got["sallyport.execution.id"], "e-") || got["sallyport.calls"] != "2" {
		t.Errorf("the execution says %v", got)
	}
	want := "00-" + traceID + "-" + spans["tools/call odd_toolodd"].ID + "-01"
	if meta, header := told(odd); meta != want || header != want {
		t.Errorf("the upstream was told %q and, in the header, %q; want %q", meta, header, want)
	}
	if meta, header := told(shy); meta != "" || header != "" {
		t.Errorf("the upstream that must not know was told %q and, in the header, %q", meta, header)
	}
	for _, private := range []string{"4711", "hush", "hologram"} {
		if collector.Contains(private) {
			t.Errorf("%s was sent to the collector", private)
		}
	}
}

// told is which trace the last call of an upstream said that it is of.
func told(s *rawServer) (meta, header string) {
	params, headers := s.last("tools/call")
	var of struct {
		Meta struct{ Traceparent string } `json:"_meta"`
	}
	_ = json.Unmarshal(params, &of)
	return of.Meta.Traceparent, headers.Get("Traceparent")
}

// parts are the ids in a traceparent.
func parts(traceparent string) (traceID, spanID string) {
	p := strings.Split(traceparent, "-")
	return p[1], p[2]
}

// bearing puts its traceparent into each request.
type bearing struct{ traceparent string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", b.traceparent)
	return http.DefaultTransport.RoundTrip(r)
}
