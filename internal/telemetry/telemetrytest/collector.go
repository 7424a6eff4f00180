// Package telemetrytest has an OpenTelemetry collector for tests: a [Collector] records what is sent to it over OTLP.
package telemetrytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"sallyport/internal/config"
	"sallyport/internal/telemetry"
	"sallyport/internal/testutil/tlstest"
)

// Span is a received span; ids are in hex.
type Span struct {
	Name, Trace, ID, Parent, Kind string
	// Failed means that its status is an error.
	Failed     bool
	Attributes map[string]string
}

// Collector receives spans and metrics at its URL. It is safe for concurrent use.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	metrics map[string]*metricspb.Metric
	headers []http.Header
	bodies  []byte
	refuse  []int
}

// New starts a collector that ends with the test. Its first responses have the given statuses.
func New(tb testing.TB, refuse ...int) *Collector {
	tb.Helper()
	c := &Collector{metrics: map[string]*metricspb.Metric{}, refuse: refuse}
	web := tlstest.NewServer(tb, c)
	tb.Cleanup(web.Close)
	c.URL = web.URL
	return c
}

// Open opens telemetry that sends everything to the collector; flush sends what is pending and closes it.
func (c *Collector) Open(tb testing.TB) (t *telemetry.Telemetry, flush func()) {
	tb.Helper()
	t, err := telemetry.Open(tb.Context(), telemetry.Options{Settings: config.Telemetry{OTLP: &config.OTLP{URL: c.URL}}, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		tb.Fatal(err)
	}
	flush = func() {
		tb.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			tb.Error(err)
		}
	}
	tb.Cleanup(flush)
	return t, flush
}

// ServeHTTP implements [http.Handler].
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := read(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header)
	if len(c.refuse) > 0 {
		w.WriteHeader(c.refuse[0])
		c.refuse = c.refuse[1:]
		return
	}
	if err == nil {
		err = c.take(r.URL.Path, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func read(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	short, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(short)
}

// take is called with mu held.
func (c *Collector) take(path string, body []byte) error {
	c.bodies = append(c.bodies, body...)
	switch path {
	case "/v1/traces":
		var all tracepb.TracesData
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, of := range all.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				c.note(scope.Spans)
			}
		}
	case "/v1/metrics":
		var all metricspb.MetricsData
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, of := range all.ResourceMetrics {
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.metrics[m.Name] = m
				}
			}
		}
	default:
		return fmt.Errorf("nothing is sent to %s", path)
	}
	return nil
}

func (c *Collector) note(spans []*tracepb.Span) {
	for _, s := range spans {
		c.spans = append(c.spans, Span{
			Name: s.Name, Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
			Kind: s.Kind.String(), Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attributes: texts(s.Attributes),
		})
	}
}

func texts(all []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[a.Key] = fmt.Sprint(v.IntValue)
		default:
			m[a.Key] = fmt.Sprint(v)
		}
	}
	return m
}

// Spans returns the received spans.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Span returns a span by its name; the zero Span if there is none.
func (c *Collector) Span(name string) Span {
	for _, s := range c.Spans() {
		if s.Name == name {
			return s
		}
	}
	return Span{}
}

// Metric returns the last received value of a metric; nil if there is none.
func (c *Collector) Metric(name string) *metricspb.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[name]
}

// Header returns the header of the last request.
func (c *Collector) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.headers) == 0 {
		return nil
	}
	return c.headers[len(c.headers)-1]
}

// Requests returns the number of requests, including refused ones.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.headers)
}

// Contains reports whether the received data contains a text.
func (c *Collector) Contains(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.bodies, []byte(text))
}
