package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/sanitize"
)

// NewSinks returns the sinks of the settings, by their names. version is that of sallyport.
func NewSinks(set config.AuditSinks, version string) (map[string]Sink, error) {
	sinks := map[string]Sink{}
	if set.Problem != "" {
		return nil, fmt.Errorf("make audit sinks: %s", set.Problem)
	}
	if s := set.Syslog; s != nil {
		sink, err := newSyslog(*s)
		if err != nil {
			return nil, fmt.Errorf("make audit sinks: %w", err)
		}
		sinks["syslog"] = sink
	}
	if o := set.OTLP; o != nil {
		sinks["otlp"] = newOTLP(*o, version)
	}
	if d := set.SurrealDB; d != nil {
		sinks["surrealdb"] = newSurreal(*d)
	}
	return sinks, nil
}

const (
	// requestTimeout bounds one request to a sink, maxResponse its response in bytes.
	requestTimeout = 20 * time.Second
	maxResponse    = 1 << 20
)

// httpClient is an HTTP client that follows no redirects, as requests have secrets. It removes
// these secrets from responses, as errors that quote responses are stored.
type httpClient struct {
	client *http.Client
	mask   *redact.Mask
}

func newHTTPClient(secrets []string) httpClient {
	return httpClient{
		client: &http.Client{Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		mask:   (&redact.Book{}).For("", secrets...),
	}
}

// do sends a request and returns the response body. The error is an ErrRefused if a retry cannot succeed.
func (w httpClient) do(r *http.Request) ([]byte, error) {
	response, err := w.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // it quotes the URL, which has the record and may have a key
			err = e.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	body = w.mask.Hide(body)
	switch code := response.StatusCode; {
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge || code == http.StatusRequestURITooLong || code == http.StatusUnprocessableEntity:
		return nil, fmt.Errorf("%w: HTTP %d: %s", ErrRefused, code, sanitize.Line(string(body), 200))
	case code < 200 || code > 299:
		return nil, fmt.Errorf("HTTP %d: %s", code, sanitize.Line(string(body), 200))
	}
	return body, err
}

// withoutTexts returns the line of a record without the program and its output, for transports with a size limit.
func (r Record) withoutTexts() []byte {
	r.Text, r.Output = "", ""
	line, err := json.Marshal(r)
	if err != nil { // cannot happen: strings and numbers only
		return []byte("{}")
	}
	return line
}

// Summary returns a summary of the event in one line.
func (e Event) Summary() string {
	return strings.Join(strings.Fields(strings.Join([]string{string(e.Kind), e.Tool, e.Decision, e.Outcome, e.Principal}, " ")), " ")
}

// hostName returns the name of this machine, "-" if it has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "-"
	}
	return cmp.Or(name, "-")
}

// post returns a POST request with a JSON body.
func post(ctx context.Context, url string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	return r, nil
}
