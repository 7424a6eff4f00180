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
	restored map[string]bool      // sessions of other gateways whose clients have not asked for notifications here
}

// maxRestored is the number of entries of restored above which those of sessions that have ended are removed.
const maxRestored = 1000

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

// create stores a new session. After createTimeout it continues in the background.
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
	s.change(r, id)
	s.await(r.Context(), id)
	s.dropForeignEvent(r, id)
	held := &refusal{ResponseWriter: w, holds: func(status int) bool {
		return status == http.StatusNotFound || status == http.StatusBadRequest && strings.HasPrefix(r.Header.Get(lastEvent), "_")
	}}
	s.Sessions.ServeHTTP(held, r)
	switch {
	case held.status == http.StatusBadRequest: // the events of the stream of notifications were sent by another gateway
		r.Header.Del(lastEvent)
	case held.status == http.StatusNotFound && s.adopt(r, id):
		s.dropForeignEvent(r, id)
		rewind(r)
	case held.status != 0:
		held.release()
		return
	default:
		s.remove(r, id, held.sent)
		return
	}
	held.forget()
	last := &watched{ResponseWriter: w}
	s.Sessions.ServeHTTP(last, r)
	s.remove(r, id, last.sent)
}

// dropForeignEvent removes the last event from the first request for notifications of a session that another gateway opened: that gateway
// has numbered it, and this one has other events with such numbers.
func (s *Server) dropForeignEvent(r *http.Request, id string) {
	if last := r.Header.Get(lastEvent); r.Method != http.MethodGet || last != "" && !strings.HasPrefix(last, "_") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restored[id] {
		delete(s.restored, id)
		r.Header.Del(lastEvent)
	}
}

// noteRestored notes that a session of another gateway was opened here.
func (s *Server) noteRestored(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restored == nil {
		s.restored = map[string]bool{}
	}
	if s.restored[id] = true; len(s.restored) <= maxRestored {
		return
	}
	known := map[string]bool{}
	for one := range s.Server.Sessions() {
		known[one.ID()] = true
	}
	maps.DeleteFunc(s.restored, func(id string, _ bool) bool { return !known[id] })
}

// change stores what a request changes in its session, before the client is answered: its next request may arrive at another gateway.
func (s *Server) change(r *http.Request, id string) {
	change := changeOf(r)
	if change == nil {
		return
	}
	ctx := context.WithoutCancel(r.Context())
	if err := s.Store.Change(ctx, s.Endpoint, id, tool.Principal(ctx), change); err != nil {
		s.Logger.WarnContext(ctx, "a change of a client's session is known to this gateway only", "error", err)
	}
}

// remove removes a session that a request has ended.
func (s *Server) remove(r *http.Request, id string, status int) {
	if r.Method != http.MethodDelete || status >= http.StatusMultipleChoices {
		return
	}
	ctx := context.WithoutCancel(r.Context())
	if err := s.Store.Remove(ctx, s.Endpoint, id); err != nil {
		s.Logger.WarnContext(ctx, "the end of a client's session is known to this gateway only", "error", err)
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
	s.noteRestored(id)
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
