package embeddings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// maxDim is the longest vector that is taken, maxPerVector how many bytes it may
	// take to write one, maxAnswer bounds an answer.
	maxDim       = 8192
	maxPerVector = 256 << 10
	maxAnswer    = 32 << 20
	// maxObjects is how many objects an answer may have besides four for each text:
	// millions of empty ones would take much more memory than they have bytes.
	maxObjects = 100
	// maxErrorBody bounds what is read of an answer that is an error, in bytes.
	maxErrorBody = 64 << 10
	// maxSaid is how much of what an endpoint says is shown, in characters.
	maxSaid = 200
	// maxRetryAfter is the longest that an endpoint may ask to be left alone.
	maxRetryAfter = time.Hour
)

// Settings say which endpoint is asked.
type Settings struct {
	// URL is that of the API, to which "/embeddings" is added unless its path ends so.
	URL string
	// Model is the name that the endpoint knows it by.
	Model string
	// Headers go out with every request, and to no other host.
	Headers map[string]string
	// Timeout bounds the wait for the vector of a query.
	Timeout time.Duration
}

// fault is why an endpoint gave no vectors. Its text has nothing of what was sent.
type fault struct {
	reason string
	// status is that of HTTP, 0 if there was none.
	status int
	// said is the endpoint's own message, cleaned; it may repeat what was sent.
	said string
	// after is how long it asks to be left alone.
	after time.Duration
}

func (f *fault) Error() string { return f.reason }

func faultf(format string, args ...any) *fault { return &fault{reason: fmt.Sprintf(format, args...)} }

// refuses reports whether it is what was sent that the endpoint does not take.
func (f *fault) refuses() bool {
	return f.status == http.StatusBadRequest || f.status == http.StatusRequestEntityTooLarge || f.status == http.StatusUnprocessableEntity
}

// denies reports whether only a person can mend it.
func (f *fault) denies() bool {
	return f.status == http.StatusUnauthorized || f.status == http.StatusForbidden || f.status == http.StatusNotFound
}

// client asks one endpoint. It is safe for concurrent use.
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
	return &client{settings: s, endpoint: u.String(), http: &http.Client{Transport: transport, CheckRedirect: stay}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// stay lets only those redirects be followed that lead to the same host: the body
// holds queries, and the headers keys.
func stay(req *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case req.URL.Scheme != first.URL.Scheme || !strings.EqualFold(req.URL.Host, first.URL.Host):
		return faultf("it redirects to another host")
	case req.Method != first.Method:
		return faultf("it redirects and drops the request")
	case len(via) > 5:
		return faultf("it redirects without end")
	}
	return nil
}

type request struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

// answer is what an endpoint sends, as far as we read it.
type answer struct {
	Data []struct {
		Index     *int      `json:"index"`
		Embedding []float64 `json:"embedding"`
	} `json:"data"`
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
		return nil, c.lost(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.refused(resp)
	}
	limit := min(int64(len(texts)+1)*maxPerVector, maxAnswer)
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, c.lost(err)
	case int64(len(data)) > limit:
		return nil, faultf("its answer is larger than %d KiB", limit>>10)
	}
	return vectors(data, len(texts))
}

// lost says why there was no answer. The URL, which may hold a key, is not in it.
func (c *client) lost(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return faultf("it does not answer in time")
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return faultf("%s", c.shown(err.Error()))
}

// refused reads an answer that is an error: {"error": {"message": ...}}, or {"error": ...}.
func (c *client) refused(resp *http.Response) *fault {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part says as much as nothing
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(data, &outer)
	if json.Unmarshal(outer.Error, &inner) != nil {
		_ = json.Unmarshal(outer.Error, &inner.Message) // nothing is known then
	}
	return &fault{
		reason: fmt.Sprintf("HTTP %d", resp.StatusCode), status: resp.StatusCode, said: c.shown(inner.Message),
		after: retryAfter(resp.Header.Get("Retry-After")),
	}
}

// retryAfter reads seconds or a date, 0 if it is neither.
func retryAfter(text string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// shown cleans what the endpoint says and hides what headers and address say.
func (c *client) shown(text string) string {
	for _, secret := range c.secrets() {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return sanitize.Line(text, maxSaid)
}

// secrets are what may be a key, as it is and as it is written in an address, the longest first.
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

// vectors reads an answer that must have n vectors, each of the same length.
func vectors(data []byte, n int) ([]vector, error) {
	if bytes.Count(data, []byte("{")) > 4*n+maxObjects {
		return nil, faultf("its answer is not what an embeddings endpoint sends")
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, faultf("its answer is not what an embeddings endpoint sends")
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
