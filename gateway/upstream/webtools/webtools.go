// Package webtools serves tools by which programs send HTTP requests to the hosts that the settings allow. Its main function is [Open].
//
// A request goes to an allowed host with an allowed method only, at an address that is neither private (unless the settings say so)
// nor one of the metadata of a cloud. The header fields of the settings are added after the request has left the program, and
// belong to one host: another one never gets them, not even by a redirect. What hosts answer is untrusted, and bounded.
package webtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/config"
	"sallyport/internal/hostdial"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
	"sallyport/internal/webaccess"
)

// The tools.
const (
	toolGet  = "get"
	toolSend = "send"
)

const (
	dialTimeout  = 10 * time.Second
	maxRedirects = 5
	// maxNamed bounds the hosts that a description names.
	maxNamed = 20
)

// server has the tools of one upstream.
type server struct {
	access webaccess.Access
	client *http.Client
	limit  int64
}

// Open returns the MCP server that has the tools of an upstream.
func Open(up config.Upstream, version string) inprocess.Server {
	return open(up, version, hostdial.Resolve)
}

func open(up config.Upstream, version string, lookup hostdial.Lookup) inprocess.Server {
	base := &http.Transport{
		DialContext: dialer{*up.Egress, lookup}.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 8,
	}
	own := &server{access: *up.Egress, limit: int64(up.MaxMessage)}
	own.client = &http.Client{Transport: edge{*up.Egress, base}, CheckRedirect: own.checkRedirect}
	return inprocess.Server{Name: up.Name, Version: version, Definitions: definitions(*up.Egress), Call: own.call, Close: base.CloseIdleConnections}
}

// dialer connects to allowed hosts.
type dialer struct {
	access webaccess.Access
	lookup hostdial.Lookup
}

func (d dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	_, private, ok := d.access.Find(name, port)
	if err != nil || !ok {
		return nil, hostdial.Failed
	}
	return hostdial.Host{Name: name, Port: uint16(number), Private: private}.Dial(ctx, d.lookup)
}

// edge adds the header fields of the settings to requests.
type edge struct {
	access webaccess.Access
	base   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (e edge) RoundTrip(req *http.Request) (*http.Response, error) {
	host, err := allowed(e.access, req)
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	for name, value := range host.Header {
		out.Header.Set(name, value)
	}
	return e.base.RoundTrip(out)
}

// checkRedirect follows redirects of requests that only read to allowed hosts, and others within a host.
func (s *server) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	if via[0].Method != webaccess.Get {
		return webapi.FollowRedirect(req, via)
	}
	if _, err := allowed(s.access, req); err != nil {
		return http.ErrUseLastResponse
	}
	return nil
}

// call calls a tool. A response that is an error is a result.
func (s *server) call(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	args, err := parse(name, arguments)
	if err != nil {
		return nil, invalidParams(err)
	}
	req, err := args.request(ctx)
	if err == nil {
		_, err = allowed(s.access, req)
	}
	if err != nil {
		return nil, invalidParams(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return failure(ctx, req, err)
	}
	defer resp.Body.Close()
	if !args.AnyStatus && (resp.StatusCode < 200 || resp.StatusCode > 299) {
		return webapi.Failure(resp), nil
	}
	data, tooLarge, err := webapi.ReadBody(resp, s.limit)
	switch {
	case err != nil:
		return failure(ctx, req, err)
	case tooLarge != nil:
		return tooLarge, nil
	}
	return result(resp, data), nil
}

func invalidParams(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
}

// failure returns the result of a request without a response, or the error of one that was canceled.
func failure(ctx context.Context, req *http.Request, err error) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	reason := sanitize.Line(webapi.WithoutURL(err).Error(), 300)
	if refusal, ok := errors.AsType[hostdial.Refusal](err); ok {
		reason = string(refusal)
	}
	return webapi.Failed(fmt.Sprintf("%s was not reached: %s", req.URL.Host, reason)), nil
}

// result returns the result of a response: its body as JSON if it says so, as text if it is one, else in Base64.
func result(resp *http.Response, data []byte) json.RawMessage {
	headers := jsonobject.Of()
	for name := range resp.Header {
		headers.Set(strings.ToLower(name), strings.Join(resp.Header[name], ", "))
	}
	body, encoding := decode(resp.Header.Get("Content-Type"), data)
	all := webapi.AppendJSON(nil, jsonobject.Of("status", resp.StatusCode, "url", resp.Request.URL.Redacted(), "headers", headers, "encoding", encoding, "body", body))
	return webapi.JSONResult(all, false)
}

// names returns the first of some hosts.
func names(all []string) string {
	if len(all) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
	}
	return strings.Join(all, ", ")
}

// definitions returns the tools for the methods that any host allows.
func definitions(access webaccess.Access) (all []json.RawMessage) {
	add := func(tool object) {
		data, _ := inprocess.Encode(tool) // texts and maps of them
		all = append(all, data)
	}
	methods := access.Methods()
	if slices.Contains(methods, webaccess.Get) {
		add(getTool(names(access.Names(webaccess.Get))))
	}
	if rest := slices.DeleteFunc(methods, func(m string) bool { return m == webaccess.Get }); len(rest) > 0 {
		add(sendTool(rest, names(access.Names(rest...))))
	}
	return all
}
