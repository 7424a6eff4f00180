package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/session"
	"sallyport/gateway/mcpserver/stream"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

const (
	// modern is the first revision of the protocol without sessions.
	modern = "2026-07-28"
	// versionHeader names a request's revision.
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = session.Header
	// workspaceHeader names the workspace of requests that name none in their arguments.
	workspaceHeader = "Sallyport-Workspace"
	// sessionIdle is how long a session of an older client is kept without a request.
	sessionIdle = time.Hour
	// maxReplay is how many bytes of responses are kept for clients that reconnect.
	maxReplay = 16 << 20
)

// Endpoints serve MCP over HTTP: the tools, and direct mode, of all upstreams and of each endpoint of the settings. The context
// of each request has the caller ([tool.Principal]): the HTTP server has checked the token.
type Endpoints struct {
	maxBody      int64
	calls        *calls
	whole        *site          // of all upstreams
	sessions     *session.Store // nil if no other gateway shares them
	log          *slog.Logger
	subsets      subsets
	leaving      context.Context    //nolint:containedctx // ends the open-ended streams
	closeStreams context.CancelFunc // cancels it
}

// EndpointOptions configure endpoints.
type EndpointOptions struct {
	// Tools is the server returned by New; nil serves direct mode in its place.
	Tools *Tools
	// Mode returns the mode of a client whose URL names none; nil is code.
	Mode ModeOf
	// Body is the largest request body, in bytes.
	Body config.Size
	// Subsets are the endpoints of the settings; nil serves none.
	Subsets Subsets
	// Sessions has the sessions of all gateways of a store; nil is for one gateway.
	Sessions *session.Store
	// Logger gets what an operator should know; nil discards.
	Logger *slog.Logger
}

// NewEndpoints returns the endpoints of direct mode and of the tools in opts. Close them.
func NewEndpoints(direct *Direct, opts *EndpointOptions) *Endpoints {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	leaving, leave := context.WithCancel(context.Background())
	e := &Endpoints{maxBody: int64(opts.Body), calls: newCalls(log), sessions: opts.Sessions, log: log, leaving: leaving, closeStreams: leave}
	e.whole = e.newSite("", Servers{Direct: direct, Tools: opts.Tools, Mode: opts.Mode})
	e.subsets = subsets{settings: opts.Subsets, open: map[string]*site{}}
	return e
}

// Handler serves each client in its mode, or all in direct mode where there are no tools.
func (e *Endpoints) Handler() http.Handler { return e.whole }

// Direct serves direct mode, unless the URL names another one.
func (e *Endpoints) Direct() http.Handler { return e.serve(e.whole.route(config.ModeDirect)) }

func (e *Endpoints) serve(next http.Handler) http.Handler {
	return bufferBody(e.maxBody, bindPrincipal(next))
}

// CloseStreams ends the open-ended streams: those of notifications.
func (e *Endpoints) CloseStreams() { e.closeStreams() }

// Drain waits until no call runs or ctx ends; then it cancels the remaining calls and waits for them.
func (e *Endpoints) Drain(ctx context.Context) { e.calls.drain(ctx) }

// Close ends all sessions.
func (e *Endpoints) Close() {
	e.closeStreams()
	for _, s := range append(e.subsets.close(), e.whole) {
		s.close()
	}
	e.calls.close()
}

// bindPrincipal passes the principal of a request to the SDK, which binds sessions to their principals. The token was verified by the
// code that put the principal into the context.
func bindPrincipal(next http.Handler) http.Handler {
	known := auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: tool.Principal(ctx), Expiration: time.Now().Add(time.Hour)}, nil // valid for this request
	}, nil)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tool.Principal(r.Context()) == "" {
			next.ServeHTTP(w, r)
			return
		}
		known.ServeHTTP(w, r)
	})
}

// endpoint serves one server of a site to clients of both kinds: requests of revision 2026-07-28
// are stateless, those of older revisions belong to a session.
func (e *Endpoints) endpoint(s *site, server *mcp.Server, ids *session.IDs, raw bool) http.Handler {
	s.servers = append(s.servers, server)
	server.AddReceivingMiddleware(e.calls.track(s.name))
	pick := func(*http.Request) *mcp.Server { return server }
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(maxReplay)
	limit := 4*e.maxBody + 1<<16 // an annotated message contains its bytes twice; the original size has been checked
	alone := mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: limit, DisableLocalhostProtection: true,
	})
	sessions := &session.Server{Options: session.Options{
		Endpoint: s.name, IDs: ids, Store: e.sessions, Logger: e.log, Server: server,
		Sessions: mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
			EventStore: events, SessionTimeout: sessionIdle, MaxRequestBodyBytes: limit, DisableLocalhostProtection: true,
		}),
	}}
	if raw {
		sessions.Prepare = annotate
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lone, endless := isModern(r), isStreaming(r)
		if b, ok := r.Body.(bufferedBody); ok && raw {
			replaceBody(r, annotate(b.data))
		}
		if endless {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(e.leaving, cancel)()
			r, w = r.WithContext(ctx), &stream.Tasks{ResponseWriter: w}
		}
		if lone {
			alone.ServeHTTP(w, r)
			return
		}
		e.serveSession(s, sessions, w, r)
	})
}

// serveSession serves a request of an older client, and detects a disconnect before the
// response: in those revisions a disconnect does not cancel the request.
func (e *Endpoints) serveSession(s *site, sessions http.Handler, w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id != "" {
		e.calls.onReconnect(sessionKey{s.name, id})
	}
	sessions.ServeHTTP(w, r)
	if id != "" && r.Method == http.MethodPost && r.Context().Err() != nil {
		e.calls.onDisconnect(sessionKey{s.name, id})
	}
}

// isModern reports whether a request is of a revision without sessions. A request that
// states its revision only in the body counts too, so that it gets the right error.
func isModern(r *http.Request) bool {
	if version := r.Header.Get(versionHeader); version != "" {
		return version >= modern
	}
	b, ok := r.Body.(bufferedBody)
	return ok && r.Header.Get(sessionHeader) == "" && bytes.Contains(b.data, []byte(`"io.modelcontextprotocol/protocolVersion"`))
}

// isStreaming reports whether the response to a request is an open-ended stream.
func isStreaming(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	b, ok := r.Body.(bufferedBody)
	if !ok || !bytes.Contains(b.data, []byte("subscriptions/listen")) {
		return false
	}
	var message struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(b.data, &message) == nil && message.Method == "subscriptions/listen"
}

// bufferBody reads the body of each request, up to limit bytes, before it calls next.
func bufferBody(limit int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			http.Error(w, "the body is larger than http.body allows", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "the body did not arrive", http.StatusBadRequest)
			return
		}
		if problem := batchProblem(body); problem != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(invalidRequest(nil, problem).marshal())
			return
		}
		replaceBody(r, body)
		next.ServeHTTP(w, r)
	})
}

func replaceBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = bufferedBody{bytes.NewReader(body), body}, int64(len(body))
}

// bufferedBody is a request body in memory.
type bufferedBody struct {
	*bytes.Reader
	data []byte
}

// Close implements [io.Closer].
func (bufferedBody) Close() error { return nil }
