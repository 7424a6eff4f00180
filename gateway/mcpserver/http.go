package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/config"
)

const (
	// modern is the first revision of the protocol without sessions.
	modern = "2026-07-28"
	// versionHeader names a request's revision.
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	// workspaceHeader names the workspace of requests that name none in their arguments.
	workspaceHeader = "Sallyport-Workspace"
	// sessionIdle is how long a session of an older client is kept without a request.
	sessionIdle = time.Hour
	// replayed is how many bytes of answers are kept for clients whose connection broke.
	replayed = 16 << 20
)

// Site serves MCP over HTTP: at /mcp, and direct mode at /mcp/direct too.
type Site struct {
	settings config.HTTP
	log      *slog.Logger
	calls    *calls
	servers  []*mcp.Server
	guarded  http.Handler
	leave    context.CancelFunc // ends the streams that never end themselves
}

// SiteOptions configure a site.
type SiteOptions struct {
	// Tools is what New made, for /mcp; nil: direct mode is there as well.
	Tools *Tools
	// API is served at /api/, to who has a token; nil: it is not there.
	API http.Handler
	// Hooks is served at /hooks/, to whoever comes: it knows by itself whom to believe; nil: it is not there.
	Hooks http.Handler
	// Settings say who may use the site, and how.
	Settings config.HTTP
	// Auditor puts on record who logs in; nil: nobody does.
	Auditor Auditor
	// Logger gets what an operator should know; nil discards.
	Logger *slog.Logger
}

// NewSite returns a site with direct mode, and what the options say.
func NewSite(direct *Direct, opts *SiteOptions) *Site {
	settings, log := opts.Settings, opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	leaving, leave := context.WithCancel(context.Background())
	s := &Site{settings: settings, log: log, calls: newCalls(log), leave: leave}
	protect := func(h http.Handler) http.Handler { return h }
	mux := http.NewServeMux()
	b := newBearer(settings, log, newLogins(opts.Auditor))
	if b != nil {
		protect = b.around
		if b.issuer != nil {
			mux.Handle(metadataPath, b.issuer.metadata())
			mux.Handle(metadataPath+"/", b.issuer.metadata())
		}
	}
	passing := protect(whole(int64(settings.Body), s.endpoint(leaving, direct.server, true)))
	mux.Handle("/mcp/direct", passing)
	if opts.Tools != nil {
		mux.Handle("/mcp", protect(whole(int64(settings.Body), s.endpoint(leaving, opts.Tools.Server, false))))
	} else {
		mux.Handle("/mcp", passing)
	}
	if opts.API != nil {
		mux.Handle(apiPath, s.api(b, opts.API))
	}
	if opts.Hooks != nil {
		mux.Handle("/hooks/", opts.Hooks)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "This is Sallyport. MCP is spoken at /mcp.\n")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is nothing here; MCP is spoken at /mcp", http.StatusNotFound)
	})
	s.guarded = mux
	return s
}

// endpoint serves one server in both eras: requests of revision 2026-07-28
// stand alone, those of older ones belong to a session.
func (s *Site) endpoint(leaving context.Context, server *mcp.Server, raw bool) http.Handler {
	s.servers = append(s.servers, server)
	server.AddReceivingMiddleware(s.calls.tracked)
	pick := func(*http.Request) *mcp.Server { return server }
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(replayed)
	limit := 4*int64(s.settings.Body) + 1<<16 // a message that carries its bytes; whole has counted those
	alone := mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: limit, DisableLocalhostProtection: true,
	})
	sessions := mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		EventStore: events, SessionTimeout: sessionIdle, MaxRequestBodyBytes: limit, DisableLocalhostProtection: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lone, endless := isModern(r), isEndless(r)
		if b, ok := r.Body.(held); ok && raw {
			replaceBody(r, annotate(b.all))
		}
		if endless {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(leaving, cancel)()
			r = r.WithContext(ctx)
		}
		if lone {
			alone.ServeHTTP(w, r)
			return
		}
		s.inSession(sessions, w, r)
	})
}

// inSession serves a request of an older client, and notices when it has gone
// before its answer: those revisions do not take that for a cancellation.
func (s *Site) inSession(sessions http.Handler, w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get(sessionHeader)
	if session != "" {
		s.calls.back(session)
	}
	sessions.ServeHTTP(w, r)
	if session != "" && r.Method == http.MethodPost && r.Context().Err() != nil {
		s.calls.broke(session)
	}
}

// isModern says whether a request is of a revision without sessions. One that
// says so in its body only is one too, wrong as it is: it gets the right error.
func isModern(r *http.Request) bool {
	if version := r.Header.Get(versionHeader); version != "" {
		return version >= modern
	}
	b, ok := r.Body.(held)
	return ok && r.Header.Get(sessionHeader) == "" && bytes.Contains(b.all, []byte(`"io.modelcontextprotocol/protocolVersion"`))
}

// isEndless says whether the answer to a request is a stream without an end of its own.
func isEndless(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	b, ok := r.Body.(held)
	if !ok || !bytes.Contains(b.all, []byte("subscriptions/listen")) {
		return false
	}
	var message struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(b.all, &message) == nil && message.Method == "subscriptions/listen"
}

// Serve answers on the listener until ctx ends. Then nothing new is accepted,
// calls may go on for as long as the settings grant, and are ended after that.
// It returns when all is over; the listener is closed then.
func (s *Site) Serve(ctx context.Context, listener net.Listener) error {
	g := guard{hosts: s.settings.Hosts, origins: s.settings.Origins, local: listener.Addr().Network() == "unix"}
	web := &http.Server{
		Handler: g.around(s.guarded), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { failed <- web.Serve(listener) })
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.log.Info("stopping, running calls may end", "grace", s.settings.Grace)
	}
	s.stop(web)
	work.Wait()
	return err
}

// stop ends the site: politely for as long as calls may go on, then at once.
func (s *Site) stop(web *http.Server) {
	grace, cancel := context.WithTimeout(context.Background(), s.settings.Grace)
	defer cancel()
	var work sync.WaitGroup
	s.leave()
	closing, closed := context.WithCancel(context.Background())
	work.Go(func() { _ = web.Shutdown(closing) }) // closes the listener at once
	s.calls.drain(grace)
	time.AfterFunc(time.Second, closed) // the last answers are on their way
	work.Wait()
	closed()
	for _, server := range s.servers {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	}
	_ = web.Close()
	s.calls.close()
}
