// Package telemetry exports traces and metrics of OpenTelemetry, metrics for Prometheus, and trace ids in the log.
// Its main type is [Telemetry]. Metrics are always kept, in memory; data is sent only to the collector that the
// settings or the OTEL_ variables name. There is no global state, and a nil *Telemetry does nothing. The data
// contains no argument, result, secret or principal: only names of tools and upstreams, ids, outcomes, sizes and
// times.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"sallyport/internal/config"
)

// scope is the name of our instrumentation scope.
const scope = "sallyport"

// maxSeries bounds the series of one metric: those beyond it are merged, with otel_metric_overflow="true".
const maxSeries = 1000

// Options configure telemetry.
type Options struct {
	// Settings configure destinations and sampling.
	Settings config.Telemetry
	// Version is the gateway's version, as reported to collectors.
	Version string
	// Env looks OTEL_ variables up; nil is the process's environment.
	Env func(name string) (string, bool)
	// Logger receives export errors; nil discards them.
	Logger *slog.Logger
}

// Telemetry collects metrics and sends telemetry. It is safe for concurrent use; nil does nothing.
type Telemetry struct {
	*instruments
	registry *prometheus.Registry
	page     http.Handler
	tracer   trace.Tracer // nil: traces are off
	close    func(ctx context.Context) error
}

// Open starts to collect metrics, and to send telemetry as configured. It does not block. The caller must Close it.
// Invalid OTEL_ variables are logged, but not an error: they may be meant for other programs.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	about, err := newResource(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{registry: prometheus.NewRegistry()}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.page = promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 8, ErrorHandling: promhttp.ContinueOnError})
	reader, err := exporter.New(exporter.WithRegisterer(t.registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	plan := newPlan(o)
	readers, err := plan.readers()
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	meters := sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithReader(reader), sdkmetric.WithResource(about), sdkmetric.WithCardinalityLimit(maxSeries))...)
	closers := []func(context.Context) error{meters.Shutdown}
	traces, err := plan.traces(about)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open traces: %w", err), meters.Shutdown(ctx))
	}
	if traces != nil {
		t.tracer = traces.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
		closers = append(closers, traces.Shutdown)
	}
	t.close = closeAll(closers)
	if t.instruments, err = newInstruments(meters.Meter(scope, metric.WithInstrumentationVersion(o.Version))); err != nil {
		return nil, errors.Join(fmt.Errorf("open metrics: %w", err), t.Close(ctx))
	}
	return t, nil
}

// newResource returns the attributes of this process for collectors.
func newResource(ctx context.Context, o Options) (*resource.Resource, error) {
	own := []attribute.KeyValue{attribute.String("service.version", cmp.Or(o.Version, "dev"))}
	if name := o.Settings.Service; name != "" {
		own = append(own, attribute.String("service.name", name))
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", scope)), resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(own...))
	if errors.Is(err, resource.ErrPartialResource) {
		o.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be read")
		return about, nil
	}
	if err != nil {
		return nil, fmt.Errorf("describe the gateway to collectors: %w", err)
	}
	return about, nil
}

// closeAll returns a function that runs all closers concurrently, once.
func closeAll(closers []func(context.Context) error) func(context.Context) error {
	var once sync.Once
	return func(ctx context.Context) (err error) {
		once.Do(func() {
			errs := make([]error, len(closers))
			var work sync.WaitGroup
			for i, shut := range closers {
				work.Go(func() { errs[i] = shut(ctx) })
			}
			work.Wait()
			err = errors.Join(errs...)
		})
		return err
	}
}

// Close sends pending telemetry, until ctx ends. It is idempotent.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.close(ctx)
}

// Metrics returns a handler with all metrics in Prometheus format, or in OpenMetrics with trace ids if requested.
func (t *Telemetry) Metrics() http.Handler {
	if t == nil {
		return http.NotFoundHandler()
	}
	return t.page
}

// ExecutionID is the span attribute with the id of the program.
const ExecutionID = "sallyport.execution.id"
