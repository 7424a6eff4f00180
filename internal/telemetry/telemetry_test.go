package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/telemetry"
	"sallyport/internal/telemetry/telemetrytest"
	"sallyport/internal/testutil/refpage"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.Index(pairs, name)
		if i < 0 || i%2 == 1 {
			return "", false
		}
		return pairs[i+1], true
	}
}

func open(t testing.TB, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	if o.Env == nil {
		o.Env = env()
	}
	opened, err := telemetry.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close(context.Background()) })
	return opened
}

// page is what is at /metrics.
func page(t testing.TB, m *telemetry.Telemetry, accept string) string {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	m.Metrics().ServeHTTP(w, r)
	return w.Body.String()
}

// everything counts something of each kind.
func everything(t testing.TB, m *telemetry.Telemetry) {
	t.Helper()
	ctx := t.Context()
	m.RecordExecution(ctx, telemetry.Execution{Language: "python", Status: "ok", Duration: time.Second, Queued: time.Millisecond})
	m.RecordCall(ctx, "github", "ok", time.Millisecond)
	m.RecordDecision(ctx, "allow")
	m.RecordApproval(ctx, "waiting")
	m.RecordSearch(ctx, false, time.Millisecond)
	m.RecordTokens(ctx, "execute", 10, 100)
	m.RecordRefusal(ctx, "busy")
	m.RecordAlert("approval", "sent", 3)
	m.RecordRequest(ctx, "tools/call", "", time.Millisecond)
	m.RecordRun(ctx, "ok", time.Second)
	m.Watch(func(context.Context) telemetry.State {
		return telemetry.State{Running: 1, Queued: 2, Places: 4, Sandboxes: map[string]int{"python": 1}, Upstreams: map[string]int{"ready": 1}, Tools: map[string]int{"github": 7}, Approvals: 1,
			Workers: []telemetry.Worker{{Name: "w1", Processes: 1, Seats: 8, Busy: 3, Running: 2, Age: time.Second, Programs: map[string]int64{"ended": 5}}}}
	})
	h := m.HTTP(http.NotFoundHandler(), func(*http.Request) string { return "/x" })
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x?secret", nil))
}

// TestNothing: nil measures nothing, and no door falls over it.
func TestNothing(t *testing.T) {
	t.Parallel()
	var m *telemetry.Telemetry
	everything(t, m)
	ctx, span := m.Start(t.Context(), telemetry.Server, "x", "y")
	span.Set("a", "b")
	span.SetInt("a", 1)
	span.End("failed")
	if ctx != t.Context() || telemetry.Traceparent(m.Parent(ctx, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")) != "" || m.Close(t.Context()) != nil {
		t.Error("it left something behind")
	}
	w := httptest.NewRecorder()
	m.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	m.Route("/x", false, http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	if w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}

// TestMetricsAreBounded: whatever upstreams there are, only so many have series of their own, and no path is a label.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	m := open(t, telemetry.Options{})
	everything(t, m)
	for i := range 1000 {
		m.RecordCall(t.Context(), "up"+strings.Repeat("x", i), "ok", 0)
	}
	said := page(t, m, "")
	if n := strings.Count(said, "\nsallyport_calls_total{"); n != 201 || !strings.Contains(said, `upstream="_other"`) {
		t.Errorf("%d upstreams have series of their own", n)
	}
	if strings.Contains(said, "secret") {
		t.Error("a query is told")
	}
	for _, want := range []string{`http_route="/x"`, `http_response_status_code="404"`, "sallyport_executions_running 1\n", "sallyport_tokens_saved_total 90\n", "go_goroutines ", `sallyport_tools{upstream="github"} 7`} {
		if !strings.Contains(said, want) {
			t.Errorf("without %s", want)
		}
	}
	m.Watch(func(context.Context) (s telemetry.State) {
		for i := range 1000 {
			s.Workers = append(s.Workers, telemetry.Worker{Name: fmt.Sprint("w", i), Processes: 1, Seats: 1, Draining: i == 0, Programs: map[string]int64{"lost": 1}})
		}
		s.Workers = append(s.Workers, telemetry.Worker{Name: "left", Programs: map[string]int64{"lost": 1}})
		return s
	})
	said = page(t, m, "")
	for _, want := range []string{`sallyport_worker_seats{worker="_other"} 800` + "\n", `sallyport_worker_executions_total{outcome="lost",worker="_other"} 801` + "\n", `sallyport_workers{state="ready"} 999` + "\n"} {
		if !strings.Contains(said, want) || strings.Count(said, "\nsallyport_worker_seats{") != 201 {
			t.Errorf("without %s", want)
		}
	}
}

// TestSending: spans and metrics arrive, again after a refusal, with the headers of the settings; those of variables count only without settings.
func TestSending(t *testing.T) {
	t.Parallel()
	one, two := telemetrytest.New(t, http.StatusServiceUnavailable), telemetrytest.New(t)
	sample := 1.0
	for _, test := range []struct {
		to *telemetrytest.Collector
		o  telemetry.Options
	}{
		{one, telemetry.Options{Settings: config.Telemetry{OTLP: &config.OTLP{URL: one.URL + "/", Headers: config.Secrets{"Authorization": "Bearer k"}}, Sample: &sample},
			Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS", "authorization=no")}},
		{two, telemetry.Options{Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", two.URL, "OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20k,bad", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")}},
	} {
		m := open(t, test.o)
		ctx, span := m.Start(m.Parent(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), telemetry.Client, "call", "it\x1b[31m"+strings.Repeat("x", 999))
		span.SetInt("n", 3)
		m.RecordCall(ctx, "github", "ok", time.Second)
		span.End("timeout")
		if said := page(t, m, "application/openmetrics-text; version=1.0.0"); !strings.Contains(said, `trace_id="0af7651916cd43dd8448eb211c80319c"`) {
			t.Error("there is no exemplar in OpenMetrics")
		}
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		spans := test.to.Spans()
		if len(spans) != 1 || spans[0].Trace != "0af7651916cd43dd8448eb211c80319c" || !spans[0].Failed || spans[0].Attributes["error.type"] != "timeout" || spans[0].Attributes["n"] != "3" ||
			len(spans[0].Name) > 250 || strings.Contains(spans[0].Name, "\x1b") {
			t.Errorf("%+v", spans)
		}
		duration := test.to.Metric("sallyport.call.duration").GetHistogram()
		if duration == nil || duration.DataPoints[0].Count != 1 || duration.DataPoints[0].GetSum() != 1 || len(duration.DataPoints[0].Exemplars) != 1 {
			t.Errorf("the duration is %v", duration)
		}
		if got := test.to.Header().Get("Authorization"); got != "Bearer k" {
			t.Errorf("Authorization is %q", got)
		}
	}
}

// TestNotSending: what is not to be sent is not, and variables that are meant for others are said once.
func TestNotSending(t *testing.T) {
	t.Parallel()
	none := 0.0
	for name, o := range map[string]telemetry.Options{
		"":                               {},
		"only http/protobuf":             {Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")},
		"must begin with":                {Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")},
		"OTEL_EXPORTER_OTLP_CERTIFICATE": {Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/does/not/exist")},
		" ":                              {Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_SDK_DISABLED", "true")},
		"  ":                             {Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none")},
		"   ":                            {Settings: config.Telemetry{OTLP: &config.OTLP{URL: "http://127.0.0.1:1"}, Problem: "the variable K is not set"}},
		"    ":                           {Settings: config.Telemetry{Sample: &none}},
	} {
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		m := open(t, o)
		ctx, span := m.Start(t.Context(), telemetry.Internal, "x", "")
		span.End("")
		if telemetry.Traceparent(ctx) != "" {
			t.Errorf("%q: there is a span", name)
		}
		if name = strings.TrimSpace(name); !strings.Contains(log.String(), name) || name == "" && log.Len() > 0 {
			t.Errorf("%q: the log has %q", name, log.String())
		}
	}
}

// TestUnreachable: a collector that is away costs a line in the log, without its address, and holds up nobody for long.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := open(t, telemetry.Options{Settings: config.Telemetry{OTLP: &config.OTLP{URL: "http://user:hunter2@127.0.0.1:1"}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		_, span := m.Start(t.Context(), telemetry.Internal, "x", "")
		span.End("")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		_ = m.Close(ctx)
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("closing took %v", took)
		}
		if said := log.String(); !strings.Contains(said, "telemetry cannot be sent") || strings.Contains(said, "hunter2") || strings.Count(said, "signal=traces") != 1 {
			t.Errorf("the log has %s", said)
		}
	})
}

// TestLog: what is logged within a span says which, and nothing else changes.
func TestLog(t *testing.T) {
	t.Parallel()
	collector := telemetrytest.New(t)
	m, _ := collector.Open(t)
	var out bytes.Buffer
	log := slog.New(telemetry.LogHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	ctx, span := m.Start(t.Context(), telemetry.Internal, "x", "")
	log.With("a", 1).InfoContext(ctx, "in")
	log.InfoContext(t.Context(), "out")
	traceID, spanID := telemetry.IDs(ctx)
	span.End("")
	if want := "level=INFO msg=in a=1 trace_id=" + traceID + " span_id=" + spanID + "\nlevel=INFO msg=out\n"; out.String() != want || traceID == "" {
		t.Errorf("got\n%s want\n%s", out.String(), want)
	}
}

// TestRoute: a request is measured under the name of its route, in the trace of its client, and streams are flushed.
func TestRoute(t *testing.T) {
	t.Parallel()
	collector := telemetrytest.New(t)
	m, flush := collector.Open(t)
	mux := http.NewServeMux()
	mux.Handle("/things/{id}", m.Route("/things/{id}", false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
	})))
	mux.Handle("/health", m.Route("/health", true, http.NotFoundHandler()))
	h := m.HTTP(mux, func(*http.Request) string { return "_OTHER" })
	for _, path := range []string{"/things/4711", "/health", "/else"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("BREW", path, nil)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		h.ServeHTTP(w, r)
		if w.Flushed != (path == "/things/4711") {
			t.Errorf("%s: flushed %v", path, w.Flushed)
		}
	}
	said := page(t, m, "")
	flush()
	spans := collector.Spans()
	if len(spans) != 1 || spans[0].Name != "_OTHER /things/{id}" || spans[0].Parent != "b7ad6b7169203331" || !spans[0].Failed || spans[0].Attributes["http.response.status_code"] != "503" || collector.Contains("4711") {
		t.Errorf("%+v", spans)
	}
	for _, want := range []string{`http_response_status_code="503",http_route="/things/{id}"`, `http_response_status_code="404",http_route="/health"`, `http_route="_OTHER"`} {
		if !strings.Contains(said, want) {
			t.Errorf("without %s", want)
		}
	}
}

// TestReference holds docs/reference/metrics.md to the metrics.
func TestReference(t *testing.T) {
	t.Parallel()
	m := open(t, telemetry.Options{})
	everything(t, m)
	m.RecordRequest(t.Context(), "tools/call", "failed", time.Millisecond)
	said := page(t, m, "")
	kinds := kindsOf(said)
	labels := regexp.MustCompile(`(\w+)="`)
	var rows [][]string
	for _, match := range regexp.MustCompile(`(?m)^# HELP ((?:sallyport|http|mcp)_\S+) (.*)$`).FindAllStringSubmatch(said, -1) {
		name := match[1]
		lines := strings.Join(regexp.MustCompile(`(?m)^`+name+`(?:_count)?\{.*\} \S+$`).FindAllString(said, -1), "")
		var of []string
		for _, label := range labels.FindAllStringSubmatch(lines, -1) {
			of = append(of, label[1])
		}
		slices.Sort(of)
		of = slices.Compact(of)
		rows = append(rows, []string{refpage.Quote(name), kinds[name], refpage.QuoteAll(of), refpage.Escape(match[2])})
	}
	if len(rows) < 20 {
		t.Errorf("%d metrics", len(rows))
	}
	p := refpage.New("metrics.md", "Metrics", "internal/telemetry", "TestReference")
	p.Text("The metrics of the gateway at `GET /metrics`, under their names for Prometheus. Metrics of Go (`go_*`), of the process " +
		"(`process_*`) and `target_info` are there too. [Telemetry](../how-to/telemetry.md) explains how to collect them.")
	p.Table([]string{"Metric", "Type", "Labels", "Meaning"}, rows)
	p.Check(t)
}

// kindsOf returns the types of metrics by name.
func kindsOf(said string) map[string]string {
	kinds := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(said, -1) {
		kinds[match[1]] = match[2]
	}
	return kinds
}

// TestDashboard checks that the dashboard names metrics that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	m := open(t, telemetry.Options{})
	everything(t, m)
	said := page(t, m, "")
	kinds := kindsOf(said)
	board := read(t, "../../docs/grafana.json")
	named := regexp.MustCompile(`\b(?:sallyport|http|mcp|go|process)_[a-z_]+\b`).FindAllString(board, -1)
	for _, name := range named {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if kinds[name] == "" && kinds[base] != "histogram" && !strings.Contains(said, name+"=") {
			t.Errorf("docs/grafana.json names %s, which is no metric", name)
		}
	}
	if len(named) < 15 {
		t.Errorf("docs/grafana.json names %d metrics", len(named))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// BenchmarkCalled is what a call costs where only /metrics reads it.
func BenchmarkCalled(b *testing.B) {
	m := open(b, telemetry.Options{})
	b.ReportAllocs()
	for b.Loop() {
		ctx, span := m.Start(b.Context(), telemetry.Internal, "execute_tool", "a.b")
		m.RecordCall(ctx, "a", "ok", time.Second)
		span.End("")
	}
}
