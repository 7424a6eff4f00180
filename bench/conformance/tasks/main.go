// Tasks is an upstream for the scenarios of the official MCP conformance suite about tasks (the extension
// io.modelcontextprotocol/tasks of revision 2026-07-28), which the SDK does not implement. It is strict: it accepts only what the
// extension allows. Usage: tasks ADDRESS.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tasks ADDRESS")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return (&http.Server{Handler: &server{tasks: map[string]*task{}}, ReadHeaderTimeout: time.Minute}).Serve(listener)
}

const (
	revision  = "2026-07-28"
	extension = "io.modelcontextprotocol/tasks"

	codeMethod     = -32601
	codeParams     = -32602
	codeHeader     = -32020
	codeCapability = -32021
)

// object is a JSON object.
type object = map[string]any

// request is a request of a client.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Name    string  `json:"name"`
			Seconds float64 `json:"seconds"`
		} `json:"arguments"`
		TaskID    string              `json:"taskId"`
		Task      json.RawMessage     `json:"task"`
		Responses map[string]response `json:"inputResponses"`
		State     string              `json:"requestState"`
		Meta      struct {
			Version      string `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities struct {
				Extensions object `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	} `json:"params"`
}

// response is a client's response to an elicitation.
type response struct {
	Action  string `json:"action"`
	Content struct {
		Name string `json:"name"`
	} `json:"content"`
}

// keepsTasks reports whether the client declares the extension.
func (r *request) keepsTasks() bool {
	_, declared := r.Params.Meta.Capabilities.Extensions[extension]
	return declared
}

// failure is an error of the protocol.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result, failed := s.answer(r.Header, &req)
	answer := object{"jsonrpc": "2.0", "id": req.ID, "result": result}
	if failed != nil {
		answer = object{"jsonrpc": "2.0", "id": req.ID, "error": failed}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// answer checks a request and handles it.
func (s *server) answer(header http.Header, req *request) (object, *failure) {
	if req.Method != "initialize" {
		if failed := checkHeaders(header, req); failed != nil {
			return nil, failed
		}
	}
	switch req.Method {
	case "server/discover":
		return object{"resultType": "complete", "supportedVersions": []string{revision}, "ttlMs": 0, "cacheScope": "private",
			"capabilities": object{"tools": object{}, "extensions": object{extension: object{}}}}, nil
	case "tools/list":
		return object{"resultType": "complete", "tools": tools(), "ttlMs": 0, "cacheScope": "private"}, nil
	case "tools/call":
		return s.call(req)
	case "tasks/get", "tasks/update", "tasks/cancel":
		return s.about(req)
	}
	return nil, &failure{Code: codeMethod, Message: "no method " + req.Method}
}

// checkHeaders checks the headers that repeat parts of the body.
func checkHeaders(header http.Header, req *request) *failure {
	name := req.Params.Name
	if req.Params.TaskID != "" {
		name = req.Params.TaskID
	}
	switch {
	case req.Params.Meta.Version != revision || header.Get("Mcp-Protocol-Version") != revision:
		return &failure{Code: codeHeader, Message: "only revision " + revision + " is supported"}
	case header.Get("Mcp-Method") != req.Method, header.Get("Mcp-Name") != name:
		return &failure{Code: codeHeader, Message: "a header does not repeat the body"}
	}
	return nil
}
