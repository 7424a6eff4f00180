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

// upload configures the export of one signal to one endpoint.
type upload struct {
	signal, url string
	headers     map[string]string
	timeout     time.Duration
	zip         bool
	log         *slog.Logger
	client      *http.Client
	failing     atomic.Bool // the last export failed
}

const (
	// firstPause is the delay before the first retry, doubled for each further one; longestPause is the maximum.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// maxElapsed is the total time of all attempts.
	maxElapsed = time.Minute
)

// open creates the client; authorities is a file with the trusted certificates, "" for the system's.
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

// login converts the user in the address to a header; the exporters would ignore it.
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
		otlptracehttp.WithCompression(squeeze), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longestPause, MaxElapsedTime: maxElapsed}))
	return spanSender{to, u}, err
}

// metrics sends metrics, as sums since the start.
func (u *upload) metrics() (sdkmetric.Exporter, error) {
	squeeze := otlpmetrichttp.NoCompression
	if u.zip {
		squeeze = otlpmetrichttp.GzipCompression
	}
	to, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(u.url), otlpmetrichttp.WithHeaders(u.headers), otlpmetrichttp.WithHTTPClient(u.client),
		otlpmetrichttp.WithCompression(squeeze), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longestPause, MaxElapsedTime: maxElapsed}))
	return metricsSender{to, u}, err
}

// logOutcome logs when exports start and stop to fail. Data that was not delivered is lost; the SDK would print each error
// on stderr, so it gets none.
func (u *upload) logOutcome(err error) {
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
	s.to.logOutcome(s.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

type metricsSender struct {
	sdkmetric.Exporter
	to *upload
}

// Export implements sdkmetric.Exporter.
func (s metricsSender) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	s.to.logOutcome(s.Exporter.Export(ctx, all))
	return nil
}
