// Package recognizer finds names and addresses in texts with an external service: a Presidio analyzer, or a service
// with the same POST /analyze. No text that was sent appears in an error or a log.
package recognizer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/internal/pii"
)

// Settings configure a [Client].
type Settings struct {
	// URL is the service's; "/analyze" is appended unless its path ends so.
	URL string
	// Headers are sent with every request.
	Headers map[string]string
	// Authorities is a file with the trusted certificates, "" for the system's.
	Authorities string
	// Language is the language of the texts, as the service names it.
	Language string
	// Threshold is the minimum score.
	Threshold float64
	// Entities are the requested entity types with their kinds.
	Entities map[string]pii.Kind
	// Single sends one text per request, for a service that does not accept a list of texts.
	Single bool
	// Timeout bounds all requests about one list of texts.
	Timeout time.Duration
}

const (
	// maxRequests bounds the concurrent requests of all callers.
	maxRequests = 4
	// maxAnswer bounds a response, in bytes.
	maxAnswer = 8 << 20
)

// Client is a client of one service. It is safe for concurrent use.
type Client struct {
	settings Settings
	endpoint string
	entities []string
	http     *http.Client
	slots    chan struct{}
	cache    *cache
}

// New returns a client. It sends no request.
func New(s Settings) (*Client, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("open recognizer: the url must begin with http:// or https:// and name a host")
	}
	if !strings.HasSuffix(u.Path, "/analyze") {
		u = u.JoinPath("analyze")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: maxRequests, IdleConnTimeout: 90 * time.Second,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if transport.TLSClientConfig.RootCAs, err = authorities(s.Authorities); err != nil {
		return nil, fmt.Errorf("open recognizer: %w", err)
	}
	c := &Client{settings: s, endpoint: u.String(), slots: make(chan struct{}, maxRequests), cache: newCache()}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for name := range s.Entities {
		c.entities = append(c.entities, name)
	}
	slices.Sort(c.entities)
	return c, nil
}

// authorities reads certificates; nil means the system's.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // crypto/tls uses the system's for nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("no certificate is in %s", file)
	}
	return pool, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Fault is the reason why a service gave no usable response. Its text contains nothing that was sent.
type Fault struct {
	reason string
	// retryable: an immediate retry of the request may succeed.
	retryable bool
}

func (f *Fault) Error() string { return f.reason }

func faultf(format string, args ...any) *Fault { return &Fault{reason: fmt.Sprintf(format, args...)} }

// request is the body of POST /analyze. The response for one text is a list of entities, for a list of texts a list
// of lists.
type request struct {
	Text      any      `json:"text"`
	Language  string   `json:"language"`
	Entities  []string `json:"entities"`
	Threshold float64  `json:"score_threshold"`
}

// analyze sends texts, with one retry if a connection was lost or the service was busy. Errors are *Fault.
func (c *Client) analyze(ctx context.Context, texts []string) ([][]pii.Finding, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, faultf("it does not answer in time")
	}
	found, err := c.post(ctx, texts)
	if f, ok := errors.AsType[*Fault](err); ok && f.retryable && ctx.Err() == nil {
		return c.post(ctx, texts)
	}
	return found, err
}

func (c *Client) post(ctx context.Context, texts []string) ([][]pii.Finding, error) {
	var text any = texts
	if c.settings.Single {
		text = texts[0]
	}
	body, err := json.Marshal(request{text, c.settings.Language, c.entities, c.settings.Threshold})
	if err != nil {
		return nil, faultf("the texts cannot be sent")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, faultf("its url cannot be used")
	}
	for name, value := range c.settings.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, connectionFault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusFault(resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, connectionFault(err)
	case len(data) > maxAnswer:
		return nil, faultf("its answer is larger than %d MiB", maxAnswer>>20)
	}
	return c.read(data, texts)
}

// statusFault returns the fault of an HTTP status; it omits the body, which may repeat what was sent.
func statusFault(status int) *Fault {
	f := faultf("it answered HTTP %d", status)
	f.retryable = status == http.StatusTooManyRequests || status == http.StatusBadGateway || status == http.StatusServiceUnavailable
	return f
}

// connectionFault returns the fault of a transport error. It omits the URL, which may hold a key.
func connectionFault(err error) *Fault {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return faultf("it does not answer in time")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return faultf("its certificate is not trusted")
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &Fault{reason: "it cannot be reached", retryable: true}
	}
	return &Fault{reason: "its connection was lost", retryable: true}
}
