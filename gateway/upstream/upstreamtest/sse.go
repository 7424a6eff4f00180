package upstreamtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// streams are the open streams of a server of HTTP with SSE, by number.
type streams struct {
	mu   sync.Mutex
	last int
	open map[string]*stream
}

// stream is one of them; its context ends with it.
type stream struct {
	ctx    context.Context //nolint:containedctx // of the GET that holds it open
	cut    context.CancelFunc
	events chan string
}

func (s *streams) add(ctx context.Context) (string, *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id := strconv.Itoa(s.last)
	ctx, cut := context.WithCancel(ctx)
	if s.open == nil {
		s.open = map[string]*stream{}
	}
	s.open[id] = &stream{ctx, cut, make(chan string)}
	return id, s.open[id]
}

func (s *streams) get(id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

func (s *stream) send(event string) {
	select {
	case s.events <- event:
	case <-s.ctx.Done():
	}
}

// sseTrap is a trap of revision 2024-11-05: its stream begins with what first
// returns, and call, unless it is nil, answers tools/call.
type sseTrap struct {
	first func(s *site, own string) string
	call  func(w http.ResponseWriter, s *stream)
}

func endpoint(url string) string { return "event: endpoint\ndata: " + url + "\n\n" }

func ownEndpoint(_ *site, own string) string { return endpoint(own) }

// serve rejects the streamable transport, and serves HTTP with SSE.
func (o sseTrap) serve(s *site, w http.ResponseWriter, r *http.Request, _ http.Handler) {
	switch {
	case r.Method == http.MethodGet:
		o.stream(s, w, r)
	case s.streams.get(r.URL.Query().Get("id")) == nil:
		http.Error(w, "not here", http.StatusMethodNotAllowed)
	default:
		o.post(s, w, r)
	}
}

func (o sseTrap) stream(s *site, w http.ResponseWriter, r *http.Request) {
	id, out := s.streams.add(r.Context())
	defer out.cut()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, o.first(s, "/messages?id="+id))
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-out.events:
			_, _ = io.WriteString(w, event)
		case <-out.ctx.Done():
			return
		}
	}
}

func (o sseTrap) post(s *site, w http.ResponseWriter, r *http.Request) {
	out := s.streams.get(r.URL.Query().Get("id"))
	var req request
	if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &req) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	if req.Method == "tools/call" && o.call != nil {
		o.call(w, out)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	w.(http.Flusher).Flush()
	answer := &server{trap: s.trap, state: s.state, ctx: r.Context(), raw: func(data []byte) {
		out.send("event: message\ndata: " + string(bytes.TrimSpace(data)) + "\n\n")
	}}
	answer.handle(req)
}

// oldTraps are those of HTTP with SSE.
func oldTraps() map[string]wrapper {
	return map[string]wrapper{
		"sse-good":        sseTrap{first: ownEndpoint}.serve,
		"sse-elsewhere":   sseTrap{first: func(s *site, _ string) string { return endpoint(s.other + "/canary") }}.serve,
		"sse-no-endpoint": sseTrap{first: func(*site, string) string { return ": nothing\n\n" }}.serve,
		"sse-two-endpoints": sseTrap{first: func(s *site, own string) string {
			return endpoint(own) + endpoint(s.other+"/canary")
		}}.serve,
		"sse-junk": sseTrap{first: func(_ *site, own string) string {
			return "data: hello\n\nevent: odd\ndata: {}\n\n\n\n: x\nid\ndata\n\n" + endpoint(own) + "data: {\"jsonrpc\":\n\nevent: endpoint\n\n"
		}}.serve,
		"sse-endpoint-is-none": sseTrap{first: func(*site, string) string { return endpoint("http://[::1") }}.serve,
		"sse-endless-event":    sseTrap{first: func(*site, string) string { return "data: " + strings.Repeat("x", 70<<20) + "\n\n" }}.serve,
		"sse-post-500":         sseTrap{ownEndpoint, func(w http.ResponseWriter, _ *stream) { http.Error(w, "boom", http.StatusInternalServerError) }}.serve,
		"sse-post-hangs":       sseTrap{ownEndpoint, func(_ http.ResponseWriter, s *stream) { <-s.ctx.Done() }}.serve,
		"sse-cut": sseTrap{ownEndpoint, func(w http.ResponseWriter, s *stream) {
			w.WriteHeader(http.StatusAccepted)
			s.cut()
		}}.serve,
		"sse-half": sseTrap{ownEndpoint, func(w http.ResponseWriter, s *stream) {
			w.WriteHeader(http.StatusAccepted)
			s.send(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d", 1_000_002))
			s.cut()
		}}.serve,
	}
}
