package grpc

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

// transport sends the requests of a server, with the credentials of the settings.
type transport struct {
	client      http.Client
	credentials *webapi.Credentials
}

func newTransport(opts *Options) *transport {
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &transport{http.Client{Transport: opts.Transport, CheckRedirect: refuse}, &opts.Credentials}
}

// Protocols are those of a transport for gRPC: HTTP/2, for http without encryption.
func Protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// A transportError is an error of a request without a response.
type transportError struct{ cause error }

func (e *transportError) Error() string { return e.cause.Error() }
func (e *transportError) Unwrap() error { return e.cause }

// A refusal is a response that is not one of gRPC.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// Do implements [connect.HTTPClient].
func (t *transport) Do(req *http.Request) (*http.Response, error) {
	t.credentials.Authorize(req)
	req.Header.Set("User-Agent", "sallyport")
	if body := req.Body; body != nil {
		// While HTTP/2 waits for the next message of a request, it does not notice that the context ends.
		context.AfterFunc(req.Context(), func() { _ = body.Close() })
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, &transportError{webapi.WithoutURL(err)}
	}
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc") {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil, &refusal{fmt.Sprintf("the server does not speak gRPC: its response is %q", sanitize.Line(resp.Header.Get("Content-Type"), 80))}
	}
	return nil, &refusal{webapi.FailureText(resp)}
}
