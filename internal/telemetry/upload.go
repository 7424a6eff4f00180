package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// OTLP over HTTP is a POST of a protobuf message. The exporters of OpenTelemetry for it would bring gRPC with them, 5 MB of
// it, for the types of a service that is not called.

// upload sends messages to one endpoint.
type upload struct {
	signal, url string
	headers     map[string]string
	timeout     time.Duration
	zip         bool
	log         *slog.Logger
	client      *http.Client
	life        context.Context //nolint:containedctx // ends what is still being sent when all is closed: the SDK does not wait for it
	failing     atomic.Bool     // what was last sent did not arrive
}

const (
	// firstPause is how long is waited before something is sent again, doubled each time; longestPause is the most, also of
	// what a collector asks for.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// patience is how long something is tried altogether.
	patience = time.Minute
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
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
	u.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return nil
}

// send sends a message, again where that may help. What could not be sent is lost: it returns nothing, since the SDK would
// print it on stderr by itself.
func (u *upload) send(ctx context.Context, message proto.Message) {
	body, err := u.encode(message)
	if err != nil {
		u.went(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(u.life, cancel)()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		wait, err := u.post(ctx, body)
		u.went(err)
		if err == nil || wait < 0 {
			return
		}
		select {
		case <-time.After(min(max(wait, pause), longestPause)):
		case <-ctx.Done():
			return
		}
	}
}

// went says in the log when sending begins and ceases to fail.
func (u *upload) went(err error) {
	switch was := u.failing.Swap(err != nil); {
	case err != nil && !was:
		u.log.Warn("telemetry cannot be sent", "signal", u.signal, "error", err)
	case err == nil && was:
		u.log.Info("telemetry is sent again", "signal", u.signal)
	}
}

func (u *upload) encode(message proto.Message) ([]byte, error) {
	data, err := proto.Marshal(message)
	if err != nil || !u.zip {
		return data, err
	}
	var short bytes.Buffer
	w := gzip.NewWriter(&short)
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return short.Bytes(), err
}

// post sends once. After an error wait is how long the collector wants to be left alone, less than 0 where it is not to be
// tried again.
func (u *upload) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return -1, errors.New("the address of the collector is no URL")
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if u.zip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	for name, value := range u.headers {
		r.Header.Set(name, value)
	}
	answer, err := u.client.Do(r)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // without the address, which may have a password in it
	}
	if err != nil {
		return 0, fmt.Errorf("reach the collector: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode < 300 {
		return 0, nil
	}
	return waitFor(answer), fmt.Errorf("the collector answered %d", answer.StatusCode)
}

// waitFor is how long a collector that refused wants to be left alone, less than 0 for good.
func waitFor(answer *http.Response) time.Duration {
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if err != nil || seconds < 0 || seconds > int(longestPause/time.Second) {
			seconds = 0
		}
		return time.Duration(seconds) * time.Second
	}
	return -1
}

// spanSender sends spans. It implements otlptrace.Client.
type spanSender struct{ *upload }

// Start has nothing to do.
func (spanSender) Start(context.Context) error { return nil }

// Stop lets go of the connections.
func (s spanSender) Stop(context.Context) error { s.client.CloseIdleConnections(); return nil }

// UploadTraces sends them. The message has the same bytes as that of the service, whose types come with gRPC.
func (s spanSender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	s.send(ctx, &tracepb.TracesData{ResourceSpans: spans})
	return nil
}
