package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"sallyport/internal/retry"
	"sallyport/internal/sanitize"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

const (
	// maxAnswer bounds an answer, in bytes: no model writes as much in one.
	maxAnswer = 8 << 20
	// maxTries is how often one request is made, maxWait the longest wait between two.
	maxTries = 5
	maxWait  = 2 * time.Minute
	// maxText is how much of what an endpoint says is shown, in characters, maxName how much of a model's name.
	maxText, maxName = 200, 80
)

// wire sends requests to one endpoint.
type wire struct {
	place
	api     API
	key     string
	backoff time.Duration
	listing time.Duration
	http    *http.Client
}

func newWire(where place, s Settings) *wire {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
	}
	// Redirects are not followed: the request contains a key.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &wire{
		place: where, api: s.API, key: s.Key, backoff: cmp.Or(s.Backoff, time.Second), listing: cmp.Or(s.Listing, 15*time.Second),
		http: &http.Client{Transport: transport, CheckRedirect: stay},
	}
}

// ask sends a request until it is answered or a retry is pointless. waited is the time between tries.
func (w *wire) ask(ctx context.Context, body []byte) (data []byte, waited time.Duration, err error) {
	for try := 1; ; try++ {
		data, after, err := w.once(ctx, http.MethodPost, w.turns, body)
		if err == nil || after < 0 || try == maxTries {
			return data, waited, err
		}
		if after == 0 {
			after = min(w.backoff<<(try-1), maxWait)
		}
		if after > maxWait {
			return nil, waited, err
		}
		start := time.Now()
		stopped := sleep.For(ctx, after)
		waited += time.Since(start)
		if stopped != nil {
			return nil, waited, fmt.Errorf("ask %s: %w, after %w", w.Host, stopped, err)
		}
	}
}

// once sends one request. after is when a retry may help: never, or 0 if unknown.
func (w *wire) once(ctx context.Context, method, to string, body []byte) (data []byte, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, retry.Never, fmt.Errorf("ask %s: %w", w.Host, err)
	}
	w.sign(req)
	resp, err := w.http.Do(req)
	if err != nil {
		return w.transportError(ctx, err)
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return w.transportError(ctx, err)
	case len(data) > maxAnswer:
		return nil, retry.Never, w.faultf(tool.Upstream, "", "%s sent an answer of more than %d MiB", w.Host, maxAnswer>>20)
	case resp.StatusCode != http.StatusOK:
		return nil, retry.Delay(resp), w.statusError(resp, to, data)
	case eventStreamPattern.Match(data):
		return nil, retry.Never, w.faultf(tool.Upstream, "it must answer in one piece: see its settings, or those of a proxy before it", "%s streams its answer, which it was not asked to", withoutQuery(to))
	case !json.Valid(data):
		return nil, retry.Never, w.faultf(tool.Upstream, w.base(), "%s answered with text, not with JSON: %s", withoutQuery(to), w.displayText(string(data)))
	}
	return data, 0, nil
}

// eventStreamPattern is how a stream of events begins.
var eventStreamPattern = regexp.MustCompile(`^\s*(data|event):`)

func (w *wire) sign(req *http.Request) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if w.api == Anthropic {
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if w.key != "" {
			req.Header.Set("X-Api-Key", w.key)
		}
		return
	}
	if w.key != "" {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
}

// transportError returns the error for a request without a response.
func (w *wire) transportError(ctx context.Context, err error) ([]byte, time.Duration, error) {
	if ctx.Err() != nil {
		return nil, retry.Never, fmt.Errorf("ask %s: %w", w.Host, ctx.Err())
	}
	for {
		outer, ok := err.(*url.Error) //nolint:errorlint // it is taken off, whatever it wraps
		if !ok {
			break
		}
		err = outer.Err
	}
	hint, after := w.connectionHint(err)
	return nil, after, w.faultf(tool.Upstream, hint, "no answer from %s: %s", w.Host, w.displayText(err.Error()))
}

// logHint is a hint for errors that only the endpoint can explain.
const logHint = "its log may say why"

// connectionHint returns a hint for a request without a response, and when a retry may help.
func (w *wire) connectionHint(err error) (hint string, after time.Duration) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "see that it runs; " + w.base(), retry.Never
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate must be one that this machine trusts; SSL_CERT_FILE names others", retry.Never
	}
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case noTLS, errors.Is(err, http.ErrSchemeMismatch):
		return "is it http://?", retry.Never
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // an alert of TLS
		return "is it https://?", retry.Never
	}
	return logHint, 0
}

// base says what an address should look like.
func (w *wire) base() string {
	if w.api == Anthropic {
		return "the URL is that of the API, to which /v1/messages is added; see --api for others"
	}
	return "the URL is that of the API, such as http://localhost:11434/v1, to which /chat/completions is added; see --api for others"
}

// statusError returns the error of an error response.
func (w *wire) statusError(resp *http.Response, to string, data []byte) error {
	kind, hint := tool.Failed, ""
	said := w.displayText(message(data))
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		kind, hint = tool.Denied, "the key comes from the environment: --key-env names the variable"
		if w.key == "" {
			hint = "no key was sent: --key-env names the variable of the environment that has it"
		}
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		kind, hint = tool.NotFound, "--name must be a model that it has; "+w.base()
	case code >= 300 && code < 400:
		kind, hint = tool.NotFound, "a redirect is not followed: give the address that is meant"
		said = "it leads to " + w.displayText(target(resp))
	case code == http.StatusTooManyRequests:
		kind, hint = tool.Limit, "it wants fewer requests, or more credit"
	case code >= 500:
		kind, hint = tool.Upstream, logHint
		if to == w.names {
			hint = modelHint
		}
	case code >= 400:
		kind, hint = tool.Invalid, w.requestHint(said)
	}
	if after := retry.Delay(resp); after > maxWait {
		hint = "try again in " + after.Round(time.Second).String()
	}
	return w.faultf(kind, hint, "%s answered %d: %s", withoutQuery(to), resp.StatusCode, said)
}

// wantsTLS is what servers say to one that speaks without TLS.
var wantsTLS = regexp.MustCompile(`to an? (https|ssl)|to https port`)

// requestHint returns a hint for a rejected request.
func (w *wire) requestHint(said string) string {
	said = strings.ToLower(said)
	switch {
	case strings.Contains(said, "context") || strings.Contains(said, "too long"):
		return "" // a task that is too large for the model, which is a result
	case strings.HasPrefix(w.turns, "http:") && wantsTLS.MatchString(said):
		return "is it https://?"
	case strings.Contains(said, "tool") || strings.Contains(said, "function"):
		return "the model must be able to call tools, and the server be set up for it"
	}
	return ""
}

// target is where a redirect leads.
func target(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil {
		return "nowhere"
	}
	return withoutQuery(u.String())
}

// withoutQuery returns an address without its query, which may contain a key.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// message is what an error says: {"error": {"message": ...}}, {"error": ...}, {"message": ...}, {"detail": ...}, or the body.
func message(data []byte) string {
	var outer struct {
		Error           json.RawMessage
		Message, Detail string
	}
	var inner struct{ Message string }
	_ = json.Unmarshal(data, &outer) // what is no JSON is shown as it is
	if json.Unmarshal(outer.Error, &inner) != nil {
		_ = json.Unmarshal(outer.Error, &inner.Message)
	}
	for _, said := range []string{inner.Message, outer.Message, outer.Detail} {
		if said != "" {
			return said
		}
	}
	return string(data)
}

func (w *wire) faultf(kind tool.Kind, hint, format string, args ...any) error {
	return &tool.Error{Kind: kind, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// unreadable is the part of an answer that is missing, or is not as the API has it.
type unreadable string

// Error implements error.
func (u unreadable) Error() string { return "no " + string(u) }

// unexpectedResponse returns the error for a JSON response that does not match the API: some servers send errors with status
// 200.
func (w *wire) unexpectedResponse(data []byte, missing unreadable) error {
	said := w.displayText(message(data))
	var inside struct{ Error any }
	if json.Unmarshal(data, &inside) == nil && inside.Error != nil {
		return w.faultf(tool.Upstream, "--key-env names the variable with the key, --name the model", "%s answered with an error: %s", withoutQuery(w.turns), said)
	}
	return w.faultf(tool.Upstream, "see --api: openai or anthropic", "the endpoint's answer has %s that can be read: %s", missing, said)
}

// displayText sanitizes the endpoint's text, and hides the key in it.
func (w *wire) displayText(text string) string {
	if text = sanitize.Line(w.hide(text), maxText); text == "" {
		return "nothing"
	}
	return text
}

// hide replaces the key by [key].
func (w *wire) hide(text string) string {
	if w.key == "" {
		return text
	}
	return strings.ReplaceAll(text, w.key, "[key]")
}

// modelHint is a hint for an unknown model.
const modelHint = "--name MODEL says which model"

// onlyModel is the model of the endpoint, if it has just one, and it has a name that can be shown as it is.
func (w *wire) onlyModel(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, w.listing)
	defer cancel()
	var list struct{ Data []struct{ ID string } }
	data, _, err := w.once(limited, http.MethodGet, w.names, nil)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if len(list.Data) == 1 && err == nil && w.displayText(list.Data[0].ID) == list.Data[0].ID {
		return list.Data[0].ID, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return "", w.faultf(tool.Timeout, modelHint, "%s does not say within %s which models it has", w.Host, w.listing)
	}
	if e, ok := err.(*tool.Error); ok && e.Kind != tool.NotFound || ctx.Err() != nil { //nolint:errorlint // once wraps none
		return "", err
	}
	hint := modelHint
	if len(list.Data) > 0 {
		var names []string
		for _, m := range list.Data[:min(len(list.Data), 8)] {
			names = append(names, sanitize.Line(w.hide(m.ID), maxName))
		}
		hint += fmt.Sprintf("; %s has %d: %s", w.Host, len(list.Data), strings.Join(names, ", "))
		if len(list.Data) > len(names) {
			hint += ", …"
		}
	}
	return "", &tool.Error{Kind: tool.Invalid, Message: "no model is named", Hint: hint}
}
