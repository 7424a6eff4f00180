package embeddings

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/sanitize"
)

const (
	// maxDim is the maximum length of a vector, maxPerVector that of its JSON in bytes,
	// maxResponse that of a response.
	maxDim       = 8192
	maxPerVector = 256 << 10
	maxResponse  = 32 << 20
	// maxObjects is how many objects a response may have in addition to four for each
	// text: decoded empty objects take much more memory than their JSON.
	maxObjects = 100
	// maxErrorBody bounds what is read of an error response, in bytes.
	maxErrorBody = 64 << 10
	// maxErrorText is how much of an endpoint's error message is shown, in characters.
	maxErrorText = 200
	// maxRetryAfter bounds the Retry-After of an endpoint.
	maxRetryAfter = time.Hour
)

// Settings configure an endpoint.
type Settings struct {
	// URL is the API's URL; "/embeddings" is added unless its path ends with it.
	URL string
	// Model is the endpoint's name for the model.
	Model string
	// QueryPrefix is put before each query, DocumentPrefix before each document.
	QueryPrefix, DocumentPrefix string
	// Headers are sent with every request, to no other host.
	Headers map[string]string
	// Timeout bounds the wait for the vector of a query.
	Timeout time.Duration
}

// fault is why an endpoint returned no vectors. Its text has nothing of the request.
type fault struct {
	reason string
	// status is the HTTP status, 0 if there was no response.
	status int
	// message is the endpoint's own message, sanitized; it may repeat the request.
	message string
	// retryAfter is the endpoint's Retry-After.
	retryAfter time.Duration
}

func (f *fault) Error() string { return f.reason }

func faultf(format string, args ...any) *fault { return &fault{reason: fmt.Sprintf(format, args...)} }

// rejectsInput reports whether the endpoint rejects the request's texts.
func (f *fault) rejectsInput() bool {
	return f.status == http.StatusBadRequest || f.status == http.StatusRequestEntityTooLarge || f.status == http.StatusUnprocessableEntity
}

// needsOperator reports whether only an operator can fix it.
func (f *fault) needsOperator() bool {
	return f.status == http.StatusUnauthorized || f.status == http.StatusForbidden || f.status == http.StatusNotFound
}

// client sends requests to one endpoint. It is safe for concurrent use.
type client struct {
	settings Settings
	endpoint string
	http     *http.Client
}

func newClient(s Settings) (*client, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("open embeddings: the url must begin with http:// or https:// and name a host")
	}
	if !strings.HasSuffix(u.Path, "/embeddings") {
		u = u.JoinPath("embeddings")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second,
	}
	return &client{settings: s, endpoint: u.String(), http: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// checkRedirect rejects redirects to another host: the body has queries, and the headers have
// keys.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case req.URL.Scheme != first.URL.Scheme || !strings.EqualFold(req.URL.Host, first.URL.Host):
		return faultf("it redirects to another host")
	case req.Method != first.Method:
		return faultf("it redirects and drops the request")
	case len(via) > 5:
		return faultf("it redirects too often")
	}
	return nil
}

type request struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

// response has the fields that are read of an endpoint's response.
type response struct {
	Data []struct {
		Index     *int    `json:"index"`
		Embedding numbers `json:"embedding"`
	} `json:"data"`
}

// numbers is a vector of a response: a list, or base64 of little-endian 32-bit floats, which some endpoints send whatever
// format was requested.
type numbers []float64

// UnmarshalJSON implements [json.Unmarshaler].
func (v *numbers) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]float64)(v))
	}
	var raw []byte
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw)%4 != 0 || len(raw)/4 > maxDim {
		return fmt.Errorf("%d bytes are no vector", len(raw))
	}
	*v = make(numbers, len(raw)/4)
	for i := range *v {
		(*v)[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return nil
}

// embed returns a vector for each text. Errors are *fault.
func (c *client) embed(ctx context.Context, texts []string) ([]vector, error) {
	body, err := json.Marshal(request{c.settings.Model, texts, "float"})
	if err != nil {
		return nil, faultf("the texts cannot be sent")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, faultf("the url cannot be used")
	}
	for name, value := range c.settings.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.requestError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.statusError(resp)
	}
	limit := min(int64(len(texts)+1)*maxPerVector, maxResponse)
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, c.requestError(err)
	case int64(len(data)) > limit:
		return nil, faultf("its response is larger than %d KiB", limit>>10)
	}
	return vectors(data, len(texts))
}

// requestError returns the fault for a request without a response. Its text does not have the URL, which may hold a key.
func (c *client) requestError(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return faultf("it does not answer in time")
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return faultf("%s", c.redact(err.Error()))
}

// statusError returns the fault for an error response: {"error": {"message": ...}}, or {"error": ...}.
func (c *client) statusError(resp *http.Response) *fault {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is fine
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(data, &outer)
	if json.Unmarshal(outer.Error, &inner) != nil {
		_ = json.Unmarshal(outer.Error, &inner.Message) // no message then
	}
	return &fault{
		reason: fmt.Sprintf("HTTP %d", resp.StatusCode), status: resp.StatusCode, message: c.redact(inner.Message),
		retryAfter: retryAfter(resp.Header.Get("Retry-After")),
	}
}

// retryAfter parses seconds or a date; it returns 0 for anything else.
func retryAfter(text string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// redact sanitizes a message of the endpoint and replaces secrets of the headers and the URL.
func (c *client) redact(text string) string {
	for _, secret := range c.secrets() {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return sanitize.Line(text, maxErrorText)
}

// secrets returns all values that may be a key, plain and URL-encoded, longest first.
func (c *client) secrets() (all []string) {
	for _, value := range c.settings.Headers {
		_, key, _ := strings.Cut(value, " ") // Bearer KEY
		all = append(all, value, key)
	}
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return all
	}
	password, _ := u.User.Password()
	all = append(all, password, u.RawQuery)
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		_, written, _ := strings.Cut(part, "=")
		if value, err := url.QueryUnescape(written); err == nil {
			all = append(all, value)
		}
		all = append(all, written)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// vectors decodes a response that must have n vectors of the same length.
func vectors(data []byte, n int) ([]vector, error) {
	if bytes.Count(data, []byte("{")) > 4*n+maxObjects {
		return nil, faultf("its response is not an embeddings response")
	}
	var a response
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, faultf("its response is not an embeddings response")
	}
	if len(a.Data) != n {
		return nil, faultf("it sent %d vectors for %d texts", len(a.Data), n)
	}
	all := make([]vector, n)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || all[at].values != nil {
			return nil, faultf("it sent vectors for texts that were not asked for")
		}
		v, err := newVector(d.Embedding)
		if err != nil {
			return nil, err
		}
		if len(v.values) != len(a.Data[0].Embedding) {
			return nil, faultf("it sent vectors of different lengths")
		}
		all[at] = v
	}
	return all, nil
}
