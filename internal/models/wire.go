package models

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sallyport/internal/retry"
	"sallyport/internal/sanitize"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

const (
	// maxAnswer bounds the text of an answer, in bytes, maxResponse a response with its events.
	maxAnswer, maxResponse = 1 << 20, 16 << 20
	// maxTries is how often one request is made, maxWait the longest wait between two.
	maxTries = 5
	maxWait  = 2 * time.Minute
	// maxSaid is how much of an endpoint's error is shown, in characters, maxName how much of a model's name.
	maxSaid, maxName = 200, 80
)

// wire sends requests to one endpoint.
type wire struct {
	host, url        string
	sign             func(http.Header)
	secrets          []string
	backoff, silence time.Duration
	keyed            bool
	http             *http.Client
}

func newWire(address *url.URL, s Settings) *wire {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
	}
	// Redirects are not followed: the request has a key.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w := &wire{
		host: address.Host, url: address.String(), sign: s.setKey, backoff: cmp.Or(s.Backoff, time.Second), silence: s.Silence, keyed: s.Key != "",
		http: &http.Client{Transport: transport, CheckRedirect: stay},
	}
	for _, secret := range append(slices.Collect(maps.Values(s.Headers)), s.Key, address.Query().Get("api-key")) {
		if len(secret) >= minSecret {
			w.secrets = append(w.secrets, secret)
		}
	}
	return w
}

// minSecret is the shortest value that is hidden: a shorter one would hide words.
const minSecret = 6

// ask sends a request until it is answered or a retry is pointless. waited is the time between tries.
func (w *wire) ask(ctx context.Context, body any, into *Answer, d dialect, progress func(int)) (waited time.Duration, err error) {
	data, err := sanitize.JSON(body)
	if err != nil {
		return 0, fmt.Errorf("ask %s: %w", w.host, err)
	}
	for try := 1; ; try++ {
		*into = Answer{}
		after, err := w.once(ctx, data, into, d, progress)
		if err == nil || after < 0 || try == maxTries {
			return waited, err
		}
		if after == 0 {
			after = min(w.backoff<<(try-1), maxWait)
		}
		if after > maxWait {
			return waited, err
		}
		start := time.Now()
		stopped := sleep.For(ctx, after)
		waited += time.Since(start)
		if stopped != nil {
			return waited, fmt.Errorf("ask %s: %w, after %w", w.host, stopped, err)
		}
	}
}

// once sends one request. after is when a retry may help: never, or 0 if unknown.
func (w *wire) once(ctx context.Context, body []byte, into *Answer, d dialect, progress func(int)) (after time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(w.silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return retry.Never, w.errorf(tool.Invalid, "", "the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	w.sign(req.Header)
	resp, err := w.http.Do(req)
	if err != nil {
		return w.unanswered(ctx, err)
	}
	defer resp.Body.Close()
	in := &livelyReader{in: io.LimitReader(resp.Body, maxResponse+1), each: func() { quiet.Reset(w.silence) }}
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(in, 64<<10)) // what came is shown
		return retry.Delay(resp), w.statusError(resp, said)
	}
	return w.read(ctx, resp, in, into, d, progress)
}

// errSilent is the cause of the end of a request if the answer pauses for too long.
var errSilent = errors.New("no more of the answer came")

// livelyReader calls each after every read.
type livelyReader struct {
	in    io.Reader
	each  func()
	total int
}

// Read implements io.Reader.
func (r *livelyReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.total += n; n > 0 {
		r.each()
	}
	return n, err
}

// read reads an answer, streamed or in one piece.
func (w *wire) read(ctx context.Context, resp *http.Response, in *livelyReader, into *Answer, d dialect, progress func(int)) (time.Duration, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var err error
	if kind == "text/event-stream" {
		err = w.stream(in, into, d, progress)
	} else {
		err = w.piece(in, into, d)
	}
	large := in.total > maxResponse || len(into.Text) > maxAnswer || errors.Is(err, errTooLong) || errors.Is(err, bufio.ErrTooLong)
	said, known := err.(*tool.Error) //nolint:errorlint // ours, unwrapped
	switch {
	case large:
		return retry.Never, w.errorf(tool.Limit, "", "%s sent an answer of more than %d MiB", w.host, maxAnswer>>20)
	case known:
		return retry.Never, said
	case err != nil:
		return w.unanswered(ctx, err)
	}
	return 0, nil
}

func (w *wire) piece(in io.Reader, into *Answer, d dialect) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if d.whole(data, into) != nil {
		return w.unreadable(data)
	}
	return nil
}

func (w *wire) stream(in io.Reader, into *Answer, d dialect, progress func(int)) error {
	ended := false
	err := events(in, func(data []byte) error {
		if string(data) == "[DONE]" {
			ended = true
			return nil
		}
		if isError(data) || d.event(data, into) != nil {
			return w.unreadable(data)
		}
		ended = ended || bytes.Contains(data, []byte(`"message_stop"`)) || bytes.Contains(data, []byte(`"finish_reason":"`))
		if progress != nil {
			progress(len(into.Text))
		}
		if len(into.Text) > maxAnswer {
			return errTooLong
		}
		return nil
	})
	if err == nil && !ended {
		return io.ErrUnexpectedEOF
	}
	return err
}

// isError reports whether an event is an error: some servers send errors with status 200.
func isError(data []byte) bool {
	var e struct{ Error any }
	return json.Unmarshal(data, &e) == nil && e.Error != nil
}

// unreadable returns the error for a response that is none of the API.
func (w *wire) unreadable(data []byte) error {
	if isError(data) {
		_, said := message(data)
		return w.errorf(tool.Upstream, "", "%s answered with an error: %s", w.host, w.show(said))
	}
	return w.errorf(tool.Upstream, "api and url in the settings must be those of the server", "%s sent an answer that cannot be read: %s", w.host, w.show(string(data)))
}

// unanswered returns the error for a request without a whole response.
func (w *wire) unanswered(ctx context.Context, err error) (time.Duration, error) {
	if errors.Is(context.Cause(ctx), errSilent) {
		return 0, w.errorf(tool.Timeout, "", "%s sent nothing for %s", w.host, w.silence)
	}
	if ctx.Err() != nil {
		return retry.Never, fmt.Errorf("ask %s: %w", w.host, ctx.Err())
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the URL
	}
	hint, after := connectionHint(err)
	return after, w.errorf(tool.Upstream, hint, "no answer from %s: %s", w.host, w.show(err.Error()))
}

// connectionHint returns a hint for a request without a response, and when a retry may help.
func connectionHint(err error) (hint string, after time.Duration) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "see that it runs, and that url in the settings is its address", retry.Never
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate must be one that this machine trusts; SSL_CERT_FILE names others", retry.Never
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "is it http://?", retry.Never
	}
	return "its log may say why", 0
}

// statusError returns the error of an error response.
func (w *wire) statusError(resp *http.Response, data []byte) error {
	param, said := message(data)
	shown := w.show(said)
	kind, hint := tool.Failed, ""
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		kind, hint = tool.Denied, "the key of the model is in the settings"
		if !w.keyed {
			hint = "the model has no key in the settings"
		}
	case code >= 300 && code < 400:
		kind, hint, shown = tool.NotFound, "a redirect is not followed: url in the settings must be the address that is meant", "a redirect"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		kind, hint = tool.NotFound, "url and model in the settings must be those of the server"
	case code == http.StatusTooManyRequests:
		kind, hint = tool.Limit, "it wants fewer requests, or more credit"
	case code >= 500:
		kind, hint = tool.Upstream, "its log may say why"
	case code >= 400:
		kind = tool.Invalid
	}
	if after := retry.Delay(resp); after > maxWait {
		hint = "try again in " + after.Round(time.Second).String()
	}
	e := &tool.Error{Kind: kind, Message: fmt.Sprintf("%s answered %d: %s", w.host, resp.StatusCode, shown), Hint: hint}
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
		return &refusedError{e, param, said}
	}
	return e
}

// message returns the parameter that an error is about, and its text: {"error": {"message": ...}}, {"error": ...},
// {"message": ...}, {"detail": ...}, or the body.
func message(data []byte) (param, said string) {
	var outer struct {
		Error           json.RawMessage
		Message, Detail string
	}
	var inner struct{ Message, Param string }
	_ = json.Unmarshal(data, &outer) // what is no JSON is shown as it is
	if json.Unmarshal(outer.Error, &inner) != nil {
		_ = json.Unmarshal(outer.Error, &inner.Message)
	}
	return inner.Param, cmp.Or(inner.Message, outer.Message, outer.Detail, string(data))
}

func (w *wire) errorf(kind tool.Kind, hint, format string, args ...any) error {
	return &tool.Error{Kind: kind, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// show returns a text of the endpoint as one line, without the key.
func (w *wire) show(text string) string {
	return cmp.Or(sanitize.Line(w.hide(text), maxSaid), "nothing")
}

// hide replaces secrets by [hidden].
func (w *wire) hide(text string) string {
	for _, secret := range w.secrets {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return text
}
