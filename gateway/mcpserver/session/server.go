package session

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/stream"
	"sallyport/internal/tool"
)

// Header names the session of a request.
const Header = "Mcp-Session-Id"

const lastEvent = "Last-Event-ID"

// createTimeout bounds the wait for the store before a new session is answered: clients do not wait long for initialize.
const createTimeout = time.Second

// Options configure a [Server].
type Options struct {
	// Endpoint is the name of the endpoint, "" for that of all upstreams.
	Endpoint string
	// Sessions serves the sessions that this gateway has: a handler of the SDK.
	Sessions http.Handler
	// IDs are those of the server's sessions.
	IDs *IDs
	// Server has the sessions of this gateway.
	Server *mcp.Server
	// Prepare returns a message of a client as Sessions takes it; nil leaves it unchanged.
	Prepare func(message []byte) []byte
	// Store has the sessions of all gateways; with nil this gateway serves its own only.
	Store *Store
	// Logger is for the operator.
	Logger *slog.Logger
}

// Server serves the sessions of one server. A session of another gateway is opened here when a request for it arrives.
type Server struct {
	Options
	mu       sync.Mutex
	adopting map[string]*adoption // by the ID of the session
	silent   map[string]bool      // sessions of other gateways whose clients have not begun to listen here
}

// maxSilent is the number of silent sessions above which those that have ended are removed.
const maxSilent = 1000

// adoption is a session of another gateway that is being opened here.
type adoption struct {
	done   chan struct{} // is closed at the end
	opened bool
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(Header)
	w = &stream.NotFound{ResponseWriter: w}
	switch {
	case id == "" && r.Method == http.MethodPost:
		s.open(w, r)
	case id == "" || s.Store == nil:
		s.Sessions.ServeHTTP(w, r)
	default:
		s.serve(w, r, id)
	}
}

// open opens a session, and stores it before the client has its ID.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if s.Store != nil {
		if m := messageOf(r, "initialize"); m.Method == "initialize" {
			w = &watched{ResponseWriter: w, before: func(header http.Header, status int) {
				if id := header.Get(Header); id != "" && status == http.StatusOK {
					s.create(r.Context(), id, m.Params)
				}
			}}
		}
	}
	s.IDs.open("", func() { s.Sessions.ServeHTTP(w, r) })
}

// create stores a new session, for createTimeout or in the background.
func (s *Server) create(ctx context.Context, id string, initialize json.RawMessage) {
	ctx = context.WithoutCancel(ctx)
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		if err := s.Store.Create(ctx, s.Endpoint, id, Record{Principal: tool.Principal(ctx), Initialize: initialize}); err != nil {
			s.Logger.WarnContext(ctx, "a session of a client is known to this gateway only", "error", err)
		}
	}()
	select {
	case <-stored:
	case <-time.After(createTimeout):
	}
}

// serve serves a request for a session, which another gateway may have opened.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, id string) {
	change := changeOf(r)
	if change != nil || r.Method == http.MethodDelete { // the client's next request may arrive at another gateway
		delayed := &heldResponse{ResponseWriter: w, holds: func(int) bool { return true }}
		defer delayed.release()
		w = delayed
	}
	s.await(r.Context(), id)
	s.listen(r, id)
	held := &heldResponse{ResponseWriter: w, holds: func(status int) bool {
		return status == http.StatusNotFound || status == http.StatusBadRequest && strings.HasPrefix(r.Header.Get(lastEvent), "_")
	}}
	s.Sessions.ServeHTTP(held, r)
	switch {
	case held.status == http.StatusBadRequest: // the events of the stream of notifications were sent by another gateway
		r.Header.Del(lastEvent)
	case held.status == http.StatusNotFound && s.adopt(r, id):
		s.listen(r, id)
		rewind(r)
	case held.status != 0:
		held.release()
		return
	default:
		s.store(r, id, change, held.sent)
		return
	}
	held.forget()
	last := &watched{ResponseWriter: w}
	s.Sessions.ServeHTTP(last, r)
	s.store(r, id, change, last.sent)
}

// listen makes the first request for notifications of a session of another gateway one for all that this gateway has: events are
// numbered by each gateway.
func (s *Server) listen(r *http.Request, id string) {
	if last := r.Header.Get(lastEvent); r.Method != http.MethodGet || last != "" && !strings.HasPrefix(last, "_") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent[id] {
		delete(s.silent, id)
		r.Header.Del(lastEvent)
	}
}

// expectListener notes that the client of a session of another gateway has not begun to listen here.
func (s *Server) expectListener(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent == nil {
		s.silent = map[string]bool{}
	}
	if s.silent[id] = true; len(s.silent) <= maxSilent {
		return
	}
	known := map[string]bool{}
	for one := range s.Server.Sessions() {
		known[one.ID()] = true
	}
	maps.DeleteFunc(s.silent, func(id string, _ bool) bool { return !known[id] })
}

// store stores what a request has changed in its session.
func (s *Server) store(r *http.Request, id string, change func(*Record), status int) {
	ctx := context.WithoutCancel(r.Context())
	var err error
	switch {
	case status >= http.StatusMultipleChoices:
		return
	case r.Method == http.MethodDelete:
		err = s.Store.Remove(ctx, s.Endpoint, id)
	case change != nil:
		err = s.Store.Change(ctx, s.Endpoint, id, change)
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "a change of a client's session is known to this gateway only", "error", err)
	}
}

// await waits until a session that is being opened here can be used.
func (s *Server) await(ctx context.Context, id string) {
	s.mu.Lock()
	a := s.adopting[id]
	s.mu.Unlock()
	if a != nil {
		a.await(ctx)
	}
}

// await reports whether the session was opened.
func (a *adoption) await(ctx context.Context) bool {
	select {
	case <-a.done:
		return a.opened
	case <-ctx.Done():
		return false
	}
}

// adopt opens a session of another gateway here, once for all requests that need it, and reports whether this gateway has it now.
func (s *Server) adopt(r *http.Request, id string) bool {
	s.mu.Lock()
	if a := s.adopting[id]; a != nil {
		s.mu.Unlock()
		return a.await(r.Context())
	}
	a := &adoption{done: make(chan struct{})}
	if s.adopting == nil {
		s.adopting = map[string]*adoption{}
	}
	s.adopting[id] = a
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.adopting, id)
		close(a.done)
	}()
	a.opened = s.has(id) || s.restore(r, id) // it may have been opened after r was refused
	return a.opened
}

// has reports whether this gateway has a session.
func (s *Server) has(id string) bool {
	for known := range s.Server.Sessions() {
		if known.ID() == id {
			return true
		}
	}
	return false
}

// restore opens a session of another gateway here: with the same ID, for the same principal, and with what its client has set.
func (s *Server) restore(r *http.Request, id string) bool {
	ctx := r.Context()
	record, ok, err := s.Store.Load(ctx, s.Endpoint, id)
	if err != nil {
		s.Logger.WarnContext(ctx, "a session of a client cannot be looked up", "error", err)
	}
	if !ok || record.Principal != tool.Principal(ctx) {
		return false
	}
	opened := false
	s.IDs.open(id, func() { opened = s.send(r, "", "initialize", record.Initialize) })
	if !opened || !s.has(id) {
		return false
	}
	s.expectListener(id)
	s.send(r, id, "notifications/initialized", nil)
	if record.Level != "" {
		s.send(r, id, "logging/setLevel", encode(map[string]string{"level": record.Level}))
	}
	for _, uri := range record.Subscribed {
		s.send(r, id, "resources/subscribe", encode(map[string]string{"uri": uri}))
	}
	s.Logger.InfoContext(ctx, "a session of another gateway continues here", "endpoint", s.Endpoint)
	return true
}

// send sends a message of the client of r again, and reports whether it was taken.
func (s *Server) send(r *http.Request, id, method string, params json.RawMessage) bool {
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if len(params) > 0 {
		message["params"] = params
	}
	if !strings.HasPrefix(method, "notifications/") {
		message["id"] = "sallyport-session"
	}
	body := encode(message)
	if s.Prepare != nil {
		body = s.Prepare(body)
	}
	again := r.Clone(r.Context())
	again.Method, again.Body, again.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	again.Header.Set("Content-Type", "application/json")
	again.Header.Set("Accept", "application/json, text/event-stream")
	again.Header.Del(lastEvent)
	again.Header.Del(Header)
	if id != "" {
		again.Header.Set(Header, id)
	}
	answer := &watched{ResponseWriter: discard{http.Header{}}}
	s.Sessions.ServeHTTP(answer, again)
	return answer.sent < http.StatusMultipleChoices
}

// message is what of a client's message changes a session.
type message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// messageOf returns the message in a request with a buffered body, if its method may contain one of these words: most do not, and are
// long.
func messageOf(r *http.Request, words ...string) (m message) {
	data, _ := io.ReadAll(r.Body) // it is in memory
	rewind(r)
	if slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(data, []byte(word)) }) {
		_ = json.Unmarshal(data, &m) // a batch, or an invalid message, changes nothing
	}
	return m
}

// rewind makes the buffered body of a request readable again.
func rewind(r *http.Request) {
	if body, ok := r.Body.(io.Seeker); ok {
		_, _ = body.Seek(0, io.SeekStart) // cannot fail
	}
}

// changeOf returns how a request changes its session; nil for not.
func changeOf(r *http.Request) func(*Record) {
	if r.Method != http.MethodPost {
		return nil
	}
	m := messageOf(r, "setLevel", "ubscribe")
	var params struct{ Level, URI string }
	_ = json.Unmarshal(m.Params, &params) // the server refuses others
	switch m.Method {
	case "logging/setLevel":
		return func(to *Record) { to.Level = params.Level }
	case "resources/subscribe":
		return func(to *Record) { to.Subscribe(params.URI) }
	case "resources/unsubscribe":
		return func(to *Record) { to.Unsubscribe(params.URI) }
	}
	return nil
}

// encode encodes strings and JSON, which cannot fail.
func encode(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}
