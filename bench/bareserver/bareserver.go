// Package bareserver is the least MCP server over HTTP: its own cost must not be in the figures of a benchmark, and the
// SDK's server takes longer for a result of 10 MB than everything that is measured.
package bareserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a server with tools.
type Server struct {
	// List is what tools/list answers.
	List []byte
	// Answer returns what [Result] made for a call; nil for none.
	Answer func(ctx context.Context, name string, args json.RawMessage) []byte
}

// Hello is what the server answers to initialize.
const Hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`

// request is one of a client.
type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Arguments json.RawMessage
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var asked request
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &asked) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if asked.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer := s.answer(r.Context(), &asked); answer != nil {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, answer)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, asked.ID)
}

// answer returns what a method answers, nil for an unknown one.
func (s *Server) answer(ctx context.Context, asked *request) []byte {
	switch asked.Method {
	case "initialize":
		return []byte(Hello)
	case "tools/list":
		return s.List
	case "tools/call":
		if s.Answer == nil {
			return nil
		}
		return s.Answer(ctx, asked.Params.Name, asked.Params.Arguments)
	}
	return nil
}

// Result is the result of a call, with a structured result.
func Result(structured json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, structured)
}

// ServeAt serves on a Unix socket until it is stopped.
func ServeAt(socket string, handler http.Handler) (stop func() error, err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	web := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: handler}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(listener) }) // ErrServerClosed
	return func() error {
		defer serving.Wait()
		return web.Close()
	}, nil
}

// Through is a client with all connections to a socket.
func Through(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}
