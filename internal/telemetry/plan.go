package telemetry

import (
	"cmp"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sendTimeout bounds one attempt to send, unless OTEL_EXPORTER_OTLP_TIMEOUT is set.
const sendTimeout = 10 * time.Second

// plan says what is sent where, from the settings or else the OTEL_ variables.
type plan struct {
	sample            *float64
	spans, statistics *upload // nil: not sent
}

// signal is a kind of telemetry, with its names in variables and paths.
type signal struct{ word, path string }

var (
	traces  = signal{"TRACES", "/v1/traces"}
	metrics = signal{"METRICS", "/v1/metrics"}
)

func newPlan(o Options) plan {
	p := plan{sample: o.Settings.Sample}
	v := variables{env: o.Env, log: o.Logger}
	if strings.EqualFold(v.get("OTEL_SDK_DISABLED"), "true") || o.Settings.Problem != "" {
		return p
	}
	p.spans, p.statistics = v.upload(o, traces), v.upload(o, metrics)
	return p
}

// readers returns the readers that send metrics.
func (p plan) readers() (all []sdkmetric.Option, err error) {
	if p.statistics == nil {
		return nil, nil
	}
	sender, err := p.statistics.metrics()
	if err != nil {
		return nil, err
	}
	return append(all, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(sender))), nil
}

// traces returns a provider that sends spans; nil if they are not sent. The queue is bounded, and spans beyond it are
// dropped. The parent's sampling decision applies; without a parent the settings decide, or the variables, whose
// default is all.
func (p plan) traces(about *resource.Resource) (*sdktrace.TracerProvider, error) {
	if p.spans == nil {
		return nil, nil
	}
	sender, err := p.spans.spans()
	if err != nil {
		return nil, err
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithBatcher(sender), sdktrace.WithResource(about)}
	if p.sample != nil {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*p.sample))))
	}
	return sdktrace.NewTracerProvider(options...), nil
}

// variables reads the variables of the OpenTelemetry specification.
type variables struct {
	env func(string) (string, bool)
	log *slog.Logger
}

func (v variables) get(name string) string {
	value, _ := v.env(name)
	return strings.TrimSpace(value)
}

// exporter returns an exporter variable: the signal's own one precedes the general one.
func (v variables) exporter(s signal, name string) string {
	return cmp.Or(v.get("OTEL_EXPORTER_OTLP_"+s.word+"_"+name), v.get("OTEL_EXPORTER_OTLP_"+name))
}

// upload returns where a signal is sent; nil for nowhere. The settings precede the variables.
func (v variables) upload(o Options, s signal) *upload {
	u := &upload{signal: strings.ToLower(s.word), log: o.Logger, headers: map[string]string{}, timeout: v.timeout(s), zip: v.exporter(s, "COMPRESSION") == "gzip"}
	if set := o.Settings.OTLP; set != nil {
		u.url, u.headers = at(set.URL, s.path), set.Headers
	} else if u.url = v.endpoint(s); u.url != "" {
		u.headers = v.headers(s)
	}
	if u.url == "" {
		return nil
	}
	if err := u.open(v.exporter(s, "CERTIFICATE")); err != nil {
		v.log.Error("nothing is sent", "signal", u.signal, "error", err)
		return nil
	}
	return u
}

// at appends a signal's path to a collector's address, unless it ends so.
func at(address, path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(address, "/"), path) + path
}

// endpoint returns the endpoint of the variables, "" for none: a signal's own one is used unchanged.
func (v variables) endpoint(s signal) string {
	if to := v.get("OTEL_" + s.word + "_EXPORTER"); to != "" && to != "otlp" {
		return ""
	}
	address := v.get("OTEL_EXPORTER_OTLP_" + s.word + "_ENDPOINT")
	if general := v.get("OTEL_EXPORTER_OTLP_ENDPOINT"); address == "" && general != "" {
		address = at(general, s.path)
	}
	if address == "" {
		return ""
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		v.log.Warn("the address of a collector in OTEL_ variables must begin with http:// or https://, so nothing is sent there", "signal", s.word)
		return ""
	}
	if protocol := v.exporter(s, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		v.log.Warn("OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken, so nothing is sent", "signal", s.word, "protocol", protocol)
		return ""
	}
	return address
}

// headers parses "name=value,other=value" with URL-encoded values.
func (v variables) headers(s signal) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_" + s.word + "_HEADERS"} {
		for pair := range strings.SplitSeq(v.get(name), ",") {
			key, value, ok := strings.Cut(pair, "=")
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if key = strings.TrimSpace(key); ok && key != "" && err == nil {
				all[key] = value
			} else if pair != "" {
				v.log.Warn("a header in OTEL_ variables is no name=value", "variable", name)
			}
		}
	}
	return all
}

// timeout is in milliseconds.
func (v variables) timeout(s signal) time.Duration {
	ms, err := strconv.Atoi(cmp.Or(v.exporter(s, "TIMEOUT"), "0"))
	if err != nil || ms <= 0 {
		return sendTimeout
	}
	return time.Duration(ms) * time.Millisecond
}
