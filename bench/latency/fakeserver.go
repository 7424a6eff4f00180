package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// fakeServer is a minimal MCP server over HTTP, with tools that answer at once and with 10 MB: its own cost must not be in
// the figures, and the SDK's server takes longer for 10 MB than everything that is measured.
type fakeServer struct {
	list    []byte // what tools/list answers
	results map[string][]byte
}

func newFakeServer() *fakeServer {
	s := &fakeServer{list: []byte(list), results: map[string][]byte{"": result(echoed)}}
	for kind, answer := range large() {
		s.results[kind] = result(answer)
	}
	for kind, answer := range people() {
		s.results[kind] = result(answer)
	}
	return s
}

func result(structured json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, structured)
}

const (
	hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
	list  = `{"tools":[{"name":"echo","description":"Answer at once.","inputSchema":` + echoSchema + `},{"name":"large","description":"Answer with 10 MB.","inputSchema":` + largeSchema + `}]}`
)

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var request struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments json.RawMessage }
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if request.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := s.results[kindOf(request.Params.Arguments)]
	switch request.Method {
	case "initialize":
		answer = []byte(hello)
	case "tools/list":
		answer = s.list
	case "tools/call":
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, request.ID)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, answer)
}
