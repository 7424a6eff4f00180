package secretstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/weburl"
)

const (
	// requestTimeout bounds one read, with what is needed to authenticate.
	requestTimeout = 15 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 1 << 20
	// maxHeader bounds its headers.
	maxHeader = 64 << 10
)

// newTransport returns a transport over TCP, with TLS by the authorities in a file, or those of the system.
func newTransport(ca string) (http.RoundTripper, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
		MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConns: 4,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if ca == "" {
		return t, nil
	}
	data, err := os.ReadFile(ca)
	if err != nil {
		return nil, &Error{Kind: Refused, Message: "the authorities cannot be read: " + sanitize.Line(err.Error(), 160), Fix: `correct "ca"`}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, &Error{Kind: Refused, Message: "the file of authorities has no certificate", Fix: `correct "ca"`}
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// client sends requests to one server.
type client struct {
	what string // names the server in errors
	http *http.Client
}

func newClient(what string, transport http.RoundTripper) client {
	return client{what, &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// response is an answer, of any status.
type response struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and reads the whole answer.
func (c client) send(ctx context.Context, method, address string, header http.Header, body []byte) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return response{}, &Error{Kind: Refused, Message: "the address of " + c.what + " is not a URL"}
	}
	maps.Copy(req.Header, header)
	res, err := c.http.Do(req)
	if err != nil {
		return response{}, c.unreachable(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return response{}, c.unreachable(err)
	case len(data) > maxAnswer:
		return response{}, &Error{Kind: Invalid, Message: c.what + " answers with more than 1 MiB", Fix: "check its address"}
	}
	return response{res.StatusCode, res.Header, data}, nil
}

// unreachable is the error of a request that got no answer. It has no URL, only what the network says.
func (c client) unreachable(err error) *Error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	e := &Error{Kind: Unreachable, Message: c.what + " cannot be reached: " + sanitize.Line(err.Error(), 120), Fix: "check its address and the network"}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = c.what + " did not answer in time"
	case unknown:
		e.Message, e.Fix = "the certificate of "+c.what+" is not trusted", `name the file with its authority as "ca" under secret_managers`
	}
	return e
}

// decode reads a JSON answer.
func (c client) decode(r response, into any) error {
	if json.Unmarshal(r.body, into) != nil {
		return &Error{Kind: Invalid, Message: c.what + " answers something else than its API", Fix: "check its address"}
	}
	return nil
}

// checkAddress returns the error of an address that secrets must not be requested from: plain HTTP, unless it is allowed
// or leads to this machine.
func checkAddress(what, address string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &Error{Kind: Refused, Message: "the address of " + what + " must be https://HOST[:PORT]"}
	}
	if u.Scheme == "http" && !insecure && !weburl.IsLoopback(u.Hostname()) {
		return nil, &Error{Kind: Refused, Message: "secrets of " + what + " would go over the network as they are", Fix: "use https://, or set insecure: true"}
	}
	return u, nil
}

// environment looks up variables.
type environment func(name string) (string, bool)

// first returns the value of the first variable that is set, "" for none.
func (e environment) first(names ...string) string {
	for _, name := range names {
		if value, _ := e(name); value != "" {
			return value
		}
	}
	return ""
}

// maxCredentialFile bounds a file with a credential.
const maxCredentialFile = 64 << 10

// readCredential reads a file with a credential. The error has the path and no content.
func readCredential(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Kind: Refused, Message: sanitize.Line(err.Error(), 160), Fix: "check the path and who may read it"}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCredentialFile+1))
	if err != nil || len(data) > maxCredentialFile || len(bytes.TrimSpace(data)) == 0 {
		return nil, &Error{Kind: Refused, Message: fmt.Sprintf("the file %s has no credential", sanitize.Line(path, 120)), Fix: "check its content"}
	}
	return bytes.TrimSpace(data), nil
}
