package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// upload says how one signal is sent to one endpoint.
type upload struct {
	signal, url string
	headers     map[string]string
	timeout     time.Duration
	zip         bool
	log         *slog.Logger
	client      *http.Client
	failing     atomic.Bool // what was last sent did not arrive
}

const (
	// firstPause is how long is waited before something is sent again, longer each time; longestPause is the most.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// patience is how long something is tried altogether.
	patience = time.Minute
)

// open makes the client; authorities is a file with the certificates to trust, "" for those of the system.
func (u *upload) open(authorities string) error {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true}
	if authorities != "" {
		data, err := os.ReadFile(authorities)
		if err != nil {
			return fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate is in %s", authorities)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	u.client = &http.Client{Transport: transport, Timeout: u.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return u.login()
}

// login makes a header of the user that is in the address, which the exporters would leave out.
func (u *upload) login() error {
	address, err := url.Parse(u.url)
	if err != nil {
		return errors.New("the address of the collector is no URL")
	}
	if user := address.User; user != nil && u.headers["Authorization"] == "" {
		password, _ := user.Password()
		with := map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))}
		maps.Copy(with, u.headers)
		u.headers, address.User = with, nil
	}
	u.url = address.String()
	return nil
}

// spans sends spans.
func (u *upload) spans() (sdktrace.SpanExporter, error) {
	squeeze := otlptracehttp.NoCompression
	if u.zip {
		squeeze = otlptracehttp.GzipCompression
	}
	to, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(u.url), otlptracehttp.WithHeaders(u.headers), otlptracehttp.WithHTTPClient(u.client),
		otlptracehttp.WithCompression(squeeze), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longestPause, MaxElapsedTime: patience}))
	return spanSender{to, u}, err
}

// metrics sends metrics, as sums since the start.
func (u *upload) metrics() (sdkmetric.Exporter, error) {
	squeeze := otlpmetrichttp.NoCompression
	if u.zip {
		squeeze = otlpmetrichttp.GzipCompression
	}
	to, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(u.url), otlpmetrichttp.WithHeaders(u.headers), otlpmetrichttp.WithHTTPClient(u.client),
		otlpmetrichttp.WithCompression(squeeze), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longestPause, MaxElapsedTime: patience}))
	return metricsSender{to, u}, err
}

// went says in the log when sending begins and ceases to fail. What did not arrive is lost; the SDK would print each time
// on stderr by itself, so it gets none.
func (u *upload) went(err error) {
	switch was := u.failing.Swap(err != nil); {
	case err != nil && !was:
		u.log.Warn("telemetry cannot be sent", "signal", u.signal, "error", err)
	case err == nil && was:
		u.log.Info("telemetry is sent again", "signal", u.signal)
	}
}

type spanSender struct {
	sdktrace.SpanExporter
	to *upload
}

// ExportSpans implements sdktrace.SpanExporter.
func (s spanSender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.to.went(s.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

type metricsSender struct {
	sdkmetric.Exporter
	to *upload
}

// Export implements sdkmetric.Exporter.
func (s metricsSender) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	s.to.went(s.Exporter.Export(ctx, all))
	return nil
}
