package config

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"

	"sallyport/internal/redact"
	"sallyport/internal/reference"

	"gopkg.in/yaml.v3"
)

// Telemetry configures the export of traces and metrics. Metrics are always at /metrics.
type Telemetry struct {
	// Service is the service name of the gateway; default OTEL_SERVICE_NAME, or sallyport.
	Service string
	// OTLP is a collector for OTLP over HTTP, as protobuf; default the one of the OTEL_ variables, if any.
	OTLP *OTLP
	// Sample is the ratio of sampled traces, 0 to 1, unless the caller has decided; default OTEL_TRACES_SAMPLER, or all.
	Sample *float64
	// Problem describes references without a value, "" if all have one. Unless it is "", nothing may be sent.
	Problem string
}

func (d *decoder) telemetry(at path, n *yaml.Node, t *Telemetry) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { t.Problem = withProblem(t.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"service", d.Text(&t.Service)},
		{"otlp", func(at path, n *yaml.Node) {
			t.OTLP = &OTLP{}
			d.Fields(at, n, []key{{"url", d.Text(&t.OTLP.URL)}, {"headers", d.secrets(&t.OTLP.Headers)}})
		}},
		{"traces", func(at path, n *yaml.Node) {
			d.Fields(at, n, []key{{"sample", func(at path, n *yaml.Node) {
				t.Sample = new(float64)
				scalar(d, t.Sample, parsePart)(at, n)
			}}})
		}},
	})
}

// parsePart reads a number from 0 to 1.
func parsePart(n *yaml.Node) (float64, string) {
	part, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(part) || part < 0 || part > 1 {
		return 0, "must be a number from 0 to 1, as in 0.1 for every tenth"
	}
	return part, ""
}

func (t Telemetry) problems(at path) (all []problem) {
	if len(t.Service) > 200 {
		all = append(all, problem{at: at.To("service"), message: "a service has a short name, at most 200 bytes"})
	}
	if t.Sample != nil && (math.IsNaN(*t.Sample) || *t.Sample < 0 || *t.Sample > 1) {
		all = append(all, problem{at: at.To("traces").To("sample"), message: "sample must be from 0 to 1"})
	}
	if t.OTLP == nil || t.Problem != "" {
		return all // its values mean nothing
	}
	otlp := at.To("otlp")
	return slices.Concat(all, neededURL(otlp, t.OTLP.URL), headerProblems(otlp.To("headers"), t.OTLP.Headers), ownHeaderProblems(otlp.To("headers"), t.OTLP.Headers))
}

// SecretValues returns the credentials of the collector.
func (t Telemetry) SecretValues() []string {
	if t.OTLP == nil {
		return nil
	}
	return slices.Concat(redact.Values(t.OTLP.Headers), redact.OfURL(t.OTLP.URL))
}

// String shows the names of headers only, as the address and values may be secret.
func (t Telemetry) String() string {
	if t.OTLP == nil {
		return "telemetry"
	}
	return fmt.Sprintf("telemetry (otlp, headers %v)", t.OTLP.Headers)
}

// Format writes String for every verb.
func (t Telemetry) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// MarshalText returns String.
func (t Telemetry) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue returns String.
func (t Telemetry) LogValue() slog.Value { return slog.StringValue(t.String()) }
