// Package httpserver is the HTTP server of serve --http: it listens, checks each request (host name, origin, token, size,
// time) and passes it to MCP, the API or the dashboard, with the caller in the context. [New] connects these handlers;
// [Front.Serve] serves until it is stopped, and then lets running requests finish.
package httpserver

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/signin"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/seal"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// MCP is the MCP server.
type MCP interface {
	// Handler serves /mcp, Direct /mcp/direct, and Subset the endpoints of the settings, by their names in place of a
	// wildcard in the path.
	Handler() http.Handler
	Direct() http.Handler
	Subset(wildcard string) http.Handler
	// CloseStreams ends the streams that never end by themselves. Drain waits for running calls and cancels them when ctx
	// ends. Close ends all sessions.
	CloseStreams()
	Drain(ctx context.Context)
	Close()
}

// Compat is the HTTP API of another server.
type Compat interface {
	http.Handler
	// Paths are patterns of [http.ServeMux].
	Paths() []string
}

// Options configure a server.
type Options struct {
	// MCP is served at /mcp, /mcp/direct and /mcp/NAME; nil for none.
	MCP MCP
	// API is served at / and at /api/; nil for none.
	API http.Handler
	// Compat is served at its paths, in place of the API; nil for none.
	Compat Compat
	// Dashboard is served at / and below /ui/, with /login and /logout; with nil, / serves a line of text.
	Dashboard Pages
	// Hooks is served at /hooks/, without authentication: it verifies requests itself; nil for none.
	Hooks http.Handler
	// Replies is served at POST /api/approvals/{id}/reply, without authentication: it verifies requests itself; nil for none.
	Replies http.Handler
	// Telemetry records metrics of requests; nil records nothing.
	Telemetry *telemetry.Telemetry
	// Settings are the HTTP settings, such as tokens and limits.
	Settings config.HTTP
	// Tokens are the tokens of sallyport token; nil for none.
	Tokens *access.Tokens
	// Sessions are the browser sessions; nil creates a new store.
	Sessions *access.Sessions
	// Directory gets the groups of principals of OpenID providers; nil for none.
	Directory *access.Directory
	// Subjects gets the tokens of principals of identity providers; nil for none.
	Subjects *access.Subjects
	// Seal seals what other gateways with the same key can read, such as a sign-in that has begun; nil: only this process can.
	Seal *seal.Key
	// Site is the address of the pages, without a path, for the redirect of a provider; "" for none.
	Site string
	// Auditor records logins; nil for none.
	Auditor Auditor
	// Logger gets messages for the operator; nil discards them.
	Logger *slog.Logger
}

// Server is the server on one listener.
type Server struct {
	listener      net.Listener
	opts          Options
	log           *slog.Logger
	auth          *authenticator
	provider      *signin.Provider // nil: people do not sign in at a provider
	guard         guard
	clientTimeout time.Duration
	inflight      *inflight // requests for the API and for pages
	streams       *inflight // requests for MCP, which drains itself
	handler       http.Handler
}

// New returns the server of a listener. Requests without a token are allowed if only this machine can reach the
// listener and the settings require no token.
func New(listener net.Listener, opts *Options) *Server {
	return newServer(listener, opts, clientTimeout)
}

func newServer(listener net.Listener, opts *Options, patience time.Duration) *Server {
	f := &Server{listener: listener, opts: *opts, log: opts.Logger, clientTimeout: patience}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	open := !RequiresToken(listener, opts.Settings)
	f.auth = newAuthenticator(opts, open, f.log)
	f.provider = f.openProvider()
	f.guard = guard{hosts: opts.Settings.Hosts, origins: opts.Settings.Origins, local: listener.Addr().Network() == "unix"}
	f.inflight, f.streams = newInflight(f.log), newInflight(f.log)
	paths := f.paths()
	f.handler = withWriteDeadline(f.clientTimeout, opts.Telemetry.HTTP(f.guard.checkHost(paths), func(r *http.Request) string { return routeOf(paths, r) }))
	return f
}

// routeOf returns the route of a request for metrics; the API has its own routes.
func routeOf(paths *http.ServeMux, r *http.Request) string {
	switch _, pattern := paths.Handler(r); pattern {
	case "", "/", "/api/":
		return "_OTHER"
	default:
		return strings.TrimPrefix(pattern, "GET ")
	}
}

// isLocal reports whether only this machine can reach an address.
func isLocal(addr net.Addr) bool {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return addr.Network() == "unix"
}

// paths returns the handlers of all paths.
func (f *Server) paths() *http.ServeMux {
	mux := http.NewServeMux()
	if f.opts.MCP != nil {
		mux.Handle("/mcp", f.mcpHandler(f.opts.MCP.Handler()))
		mux.Handle("/mcp/direct", f.mcpHandler(f.opts.MCP.Direct()))
		mux.Handle("/mcp/{"+endpointValue+"}", f.mcpHandler(f.opts.MCP.Subset(endpointValue)))
	}
	if issuer := f.auth.issuer; issuer != nil {
		mux.Handle(metadataPath, issuer.metadata())
		mux.Handle(metadataPath+"/", issuer.metadata())
	}
	if f.opts.Hooks != nil {
		mux.Handle("/hooks/", f.guard.forMCP(f.opts.Hooks))
	}
	if f.opts.Replies != nil {
		mux.Handle("POST /api/approvals/{id}/reply", f.guard.forMCP(f.opts.Replies))
	}
	if f.opts.API != nil {
		mux.Handle("/", f.apiHandler(f.opts.API))
		mux.Handle("/api/", f.apiHandler(http.StripPrefix("/api", f.opts.API)))
	} else {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, refusal{status: http.StatusNotFound, detail: "not found; MCP is served at /mcp", kind: tool.NotFound})
		})
	}
	if f.opts.Compat != nil {
		for _, path := range f.opts.Compat.Paths() {
			mux.Handle(path, f.apiHandler(f.opts.Compat))
		}
	}
	f.pages(mux)
	return mux
}

// endpointValue is the wildcard for the name of an endpoint of the settings in the path of a request.
const endpointValue = "endpoint"

// mcpHandler wraps the MCP handlers with all checks.
func (f *Server) mcpHandler(next http.Handler) http.Handler {
	return f.guard.forMCP(f.limitBody(int64(f.opts.Settings.Body), f.auth.forMCP(f.streams.track(next))))
}

// apiHandler wraps the API with all checks.
func (f *Server) apiHandler(next http.Handler) http.Handler {
	return f.guard.forAPI(f.limitBody(int64(f.opts.Settings.Body), f.auth.forAPI(f.inflight.track(next))))
}

// pages adds the handlers of the dashboard.
func (f *Server) pages(mux *http.ServeMux) {
	if f.opts.Dashboard == nil {
		mux.Handle("GET /{$}", f.guard.forMCP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "This is Sallyport. MCP is spoken at /mcp.\n")
		})))
		return
	}
	pages := func(next http.Handler) http.Handler { return f.guard.forPages(f.limitBody(maxForm, next)) }
	shown := pages(f.auth.forPages(f.opts.Dashboard.Public, f.inflight.track(f.opts.Dashboard)))
	mux.Handle("/{$}", shown)
	mux.Handle("/ui/", shown)
	mux.Handle("/login", pages(http.HandlerFunc(f.login)))
	if f.provider != nil {
		mux.Handle("GET "+startPath, pages(http.HandlerFunc(f.startSignIn)))
		mux.Handle("GET "+signin.CallbackPath, pages(http.HandlerFunc(f.signInCallback)))
		mux.Handle("GET "+finishPath, pages(http.HandlerFunc(f.finishSignIn)))
	}
	mux.Handle("/logout", pages(http.HandlerFunc(f.logout)))
}

// maxForm is the maximum size of the dashboard's forms, in bytes.
const maxForm = 1 << 20

// Serve serves until ctx ends. Then it closes the listener, lets running requests finish within the grace period of the
// settings, cancels the others, and returns.
func (f *Server) Serve(ctx context.Context) error {
	web := &http.Server{
		Handler: f.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { failed <- web.Serve(newLimitedListener(f.listener, maxConnections)) })
	watching, enough := context.WithCancel(context.Background())
	defer work.Wait()
	defer enough()
	work.Go(func() { f.watch(watching) })
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		f.log.Info("stopping, running calls may end", "grace", f.opts.Settings.Grace)
	}
	f.stop(web)
	return err
}

// watchInterval is the interval at which requests with revoked tokens are canceled.
const watchInterval = 2 * time.Second

// watch cancels requests with revoked or expired tokens, and stores when tokens were used, until ctx ends.
func (f *Server) watch(ctx context.Context) {
	step := time.NewTicker(watchInterval)
	defer step.Stop()
	kept := time.Now()
	for {
		select {
		case <-ctx.Done():
			f.opts.Tokens.SaveUsage(context.WithoutCancel(ctx))
			return
		case <-step.C:
		}
		f.inflight.revoke(ctx, f.opts.Tokens)
		f.streams.revoke(ctx, f.opts.Tokens)
		if time.Since(kept) > time.Minute {
			f.opts.Tokens.SaveUsage(ctx)
			kept = time.Now()
		}
	}
}

// stop shuts down: gracefully within the grace period, then immediately.
func (f *Server) stop(web *http.Server) {
	grace, cancel := context.WithTimeout(context.Background(), f.opts.Settings.Grace)
	defer cancel()
	var work, calls sync.WaitGroup
	if f.opts.MCP != nil {
		f.opts.MCP.CloseStreams()
		calls.Go(func() { f.opts.MCP.Drain(grace) })
		defer f.opts.MCP.Close()
	}
	f.inflight.cancelReads()
	closing, closed := context.WithCancel(context.Background())
	work.Go(func() { _ = web.Shutdown(closing) }) // closes the listener at once
	calls.Go(func() { f.inflight.drain(grace) })
	calls.Wait()
	time.AfterFunc(time.Second, closed) // time to send the last responses
	work.Wait()
	closed()
	_ = web.Close()
}
