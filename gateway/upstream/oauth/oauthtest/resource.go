// Package oauthtest runs an MCP server of the SDK that requires access tokens of an
// authorization server, for tests of a login.
package oauthtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/tlstest"
)

// Options configure a [Resource]. The zero value is usable.
type Options struct {
	// Metadata may change the server's metadata; nil leaves it.
	Metadata func(m *oauthex.ProtectedResourceMetadata)
	// NoMetadata disables the metadata, as in servers of 2025-03-26.
	NoMetadata bool
	// SSE serves only the HTTP with SSE of 2024-11-05.
	SSE bool
	// Socket is the path of a Unix socket to listen on, in place of a port.
	Socket string
	// TLS replaces the certificate of tlstest's authority.
	TLS *tls.Config
}

// Resource is a running MCP server with the tools echo, which requires the scope
// read, whoami, which returns the user, note, which counts, and admin, which requires write. It is safe for concurrent use.
type Resource struct {
	// URL is the endpoint.
	URL string
	// Refused counts the requests that were answered 401 or 403.
	Refused atomic.Int64
	// Notes counts the calls of note.
	Notes atomic.Int64
	// Token is the last accepted token.
	Token atomic.Pointer[string]

	mu       sync.Mutex
	requests []Request
	server   *mcp.Server
}

// AddTool adds a tool that returns a text with its name.
func (r *Resource) AddTool(name string) {
	mcp.AddTool(r.server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " was here"}}}, nil, nil
	})
}

// Request is a request that the server received, also a refused one.
type Request struct {
	Method, Path, Authorization string
}

// Requests returns all requests so far.
func (r *Resource) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// New starts a server, which ends with the test and accepts only tokens that as
// issued for it.
func New(tb testing.TB, as *authserver.Server, opts *Options) *Resource {
	tb.Helper()
	if opts == nil {
		opts = &Options{}
	}
	r := &Resource{}
	mux := http.NewServeMux()
	origin := start(tb, r.note(mux), opts)
	r.URL = origin + "/mcp"
	metadata := &oauthex.ProtectedResourceMetadata{
		Resource: r.URL, AuthorizationServers: []string{as.URL}, ScopesSupported: []string{"read"},
	}
	if opts.Metadata != nil {
		opts.Metadata(metadata)
	}
	required := &auth.RequireBearerTokenOptions{Scopes: []string{"read"}}
	if !opts.NoMetadata {
		const wellKnown = "/.well-known/oauth-protected-resource/mcp"
		mux.Handle(wellKnown, auth.ProtectedResourceMetadataHandler(metadata))
		required.ResourceMetadataURL = origin + wellKnown
	}
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return r.verify(ctx, as, token)
	}
	mux.Handle("/mcp", r.count(auth.RequireBearerToken(verify, required)(stepUp(r.handler(opts.SSE)))))
	return r
}

// start serves on a port of loopback or on a socket and returns the origin.
func start(tb testing.TB, handler http.Handler, opts *Options) string {
	tb.Helper()
	web := httptest.NewUnstartedServer(handler)
	switch {
	case opts.Socket != "":
		listener, err := net.Listen("unix", opts.Socket)
		if err != nil {
			tb.Fatal(err)
		}
		_ = web.Listener.Close()
		web.Listener = listener
		web.Start()
	case opts.TLS != nil:
		web.TLS = opts.TLS
		web.StartTLS()
	default:
		tlstest.Start(tb, web)
	}
	tb.Cleanup(func() {
		_ = web.Config.Close() // also closes streams, which Close would wait for
		web.Close()
	})
	if opts.Socket != "" {
		return "http://localhost"
	}
	return web.URL
}

func (r *Resource) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, Request{req.Method, req.URL.Path, req.Header.Get("Authorization")})
		r.mu.Unlock()
		next.ServeHTTP(w, req)
	})
}

func (r *Resource) verify(ctx context.Context, as *authserver.Server, token string) (*auth.TokenInfo, error) {
	claims, err := as.Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
	}
	if !slices.Contains(claims.Audience, r.URL) {
		return nil, fmt.Errorf("%w: it is for %v", auth.ErrInvalidToken, claims.Audience)
	}
	r.Token.Store(&token)
	return &auth.TokenInfo{Scopes: claims.Scopes, Expiration: claims.Expires, UserID: claims.Subject}, nil
}

type refusalCounter struct {
	http.ResponseWriter
	refused *atomic.Int64
}

// Unwrap is for [http.ResponseController].
func (c *refusalCounter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush implements [http.Flusher].
func (c *refusalCounter) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

func (c *refusalCounter) WriteHeader(status int) {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		c.refused.Add(1)
	}
	c.ResponseWriter.WriteHeader(status)
}

func (r *Resource) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { next.ServeHTTP(&refusalCounter{w, &r.Refused}, req) })
}

// stepUp requires the scope write for the tool admin.
func stepUp(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		info := auth.TokenInfoFromContext(r.Context())
		if strings.Contains(string(body), `"name":"admin"`) && !slices.Contains(info.Scopes, "write") {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
			http.Error(w, "insufficient scope", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (r *Resource) handler(sse bool) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "guarded", Version: "1"}, nil)
	r.server = server
	r.AddTool("echo")
	r.AddTool("admin")
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.TokenInfo.UserID}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "note"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(r.Notes.Add(1))}}}, nil, nil
	})
	if sse {
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
}
