package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/graphql"
	"sallyport/gateway/upstream/grpc"
	"sallyport/gateway/upstream/openapi"
	"sallyport/gateway/upstream/webapi"
)

// maxSkippedLogged bounds the lines of the log about one API.
const maxSkippedLogged = 5

// dialAPI reads what describes an API and returns the connection to its tools, which are served in this process.
func (d *dialer) dialAPI(ctx context.Context) (*carrier, error) {
	base, sockets, err := d.newTransport("")
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	background := &backgroundTasks{life: life}
	release := func() {
		base.CloseIdleConnections()
		background.wait()
		sockets.Close()
	}
	conn, skipped, err := d.loadAPI(ctx, d.apiTransport(life, base, background), base)
	if err != nil {
		end()
		release()
		return nil, err
	}
	for _, reason := range skipped[:min(len(skipped), maxSkippedLogged)] {
		d.log.Warn("skip part of the API", "reason", d.redactor.line(reason, maxShownReason), "count", len(skipped))
	}
	stop := func() {
		_ = conn.Close()
		end()
	}
	return &carrier{conn: conn, stop: stop, release: release}, nil
}

func (d *dialer) apiTransport(life context.Context, base http.RoundTripper, background *backgroundTasks) *apiTransport {
	s := d.settings
	door := &apiTransport{base: base, join: contextJoiner(life)}
	if d.opts.Auth != nil && s.UsesOAuth() {
		door.guard = &guard{auth: d.opts.Auth, remedy: remedyFor(s, d.opts.Auth), redactor: d.redactor, spawn: background.run}
	}
	return door
}

// loadAPI returns the connection to the tools of an API, and what of it is no tool.
func (d *dialer) loadAPI(ctx context.Context, door *apiTransport, base *http.Transport) (mcp.Connection, []string, error) {
	s := d.settings
	credentials := webapi.Credentials{Headers: s.Headers, Query: s.Query, Username: s.Basic.Username, Password: string(s.Basic.Password)}
	if s.GraphQL != "" {
		return graphql.Connect(ctx, graphql.Options{
			Endpoint: s.URL, Schema: s.SchemaFile(), Credentials: credentials,
			Include: s.Include, Exclude: s.Exclude, Transport: door, MaxResponse: int64(s.MaxMessage),
		})
	}
	if s.GRPC != "" {
		base.Protocols = grpc.Protocols()
		return grpc.Connect(ctx, grpc.Options{
			Endpoint: s.URL, Descriptors: s.SchemaFile(), Credentials: credentials,
			Include: s.Include, Exclude: s.Exclude, Transport: door, MaxResponse: int64(s.MaxMessage),
		})
	}
	return openapi.Connect(ctx, openapi.Options{
		Document: s.OpenAPI, Server: s.URL, Variables: s.Variables, Credentials: credentials,
		Include: s.Include, Exclude: s.Exclude, Transport: door, Documents: base, MaxResponse: int64(s.MaxMessage),
	})
}

// apiTransport sends requests to an API, with the access token if there is one. The client sends it only requests to the
// server of the API. Its errors are those that a session expects of the connection to an upstream.
type apiTransport struct {
	base  http.RoundTripper
	guard *guard // nil without OAuth
	join  func(context.Context) (context.Context, context.CancelFunc)
}

// RoundTrip implements [http.RoundTripper].
func (t *apiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := t.join(req.Context())
	out := req.Clone(ctx)
	var resp *http.Response
	var err error
	if t.guard != nil {
		resp, err = t.guard.send(out, t.base)
	} else {
		resp, err = t.base.RoundTrip(out)
	}
	if err != nil {
		cancel()
		return nil, apiError(req.Context(), err)
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, limit: -1, done: cancel}
	return resp, nil
}

// apiError returns the error of a request without a response. One that was not sent, one that needs a login and one that was canceled stay
// as they are; any other is a bad gateway, and the connection stays.
func apiError(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*refusedError](err); ok {
		return &jsonrpc.Error{Code: e.code, Message: e.reason}
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" || needsLogin(err) || ctx.Err() != nil {
		return err
	}
	reason := err.Error()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		reason = "no answer in time"
	}
	return &jsonrpc.Error{Code: codeHTTP - http.StatusBadGateway, Message: strings.TrimSpace(reason)}
}
