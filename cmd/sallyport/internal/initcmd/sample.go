package initcmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
)

// sampleVerb is the hidden verb that runs a sample server.
const sampleVerb = "sample"

// SampleCommand returns the hidden verb: a small MCP server over stdio.
func SampleCommand(shared *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    sampleVerb + " NAME",
		Short:  "run a sample MCP server over stdio, for try, init and examples",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if tools := sampleTools(args[0]); tools != nil {
					return serveSample(sampleServer{args[0], tools}, shared.Stdin, shared.Stdout)
				}
			}
			return cli.Misuse(cmd, "%s needs one of %s", sampleVerb, strings.Join(append(sampleNames(), deskServers()...), ", "))
		},
	}
}

// sampleTool is one tool of a sample server.
type sampleTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  map[string]bool `json:"annotations"`

	call func(args map[string]string) (any, error)
}

// sampleServer answers the requests of one session.
type sampleServer struct {
	name  string
	tools []sampleTool
}

// rpcRequest is a request or a notification, which has no id.
type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// rpcError is the error of a request that a server does not understand.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The error codes of JSON-RPC.
const (
	methodNotFound = -32601
	invalidParams  = -32602
)

func (e *rpcError) Error() string { return e.Message }

// maxSampleRequest is the largest request of a sample server, in bytes.
const maxSampleRequest = 64 << 10

// serveSample reads requests, one a line, and writes the responses, until in ends.
func serveSample(s sampleServer, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxSampleRequest)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var req rpcRequest
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		if req.ID == nil {
			continue
		}
		if err := enc.Encode(s.respond(req)); err != nil {
			return fmt.Errorf("write response: %w", err)
		}
	}
	return lines.Err()
}

// respond returns the response to a request.
func (s sampleServer) respond(req rpcRequest) map[string]any {
	response := map[string]any{"jsonrpc": "2.0", "id": req.ID}
	result, err := s.handle(req)
	if fault, ok := errors.AsType[*rpcError](err); ok {
		response["error"] = fault
		return response
	}
	response["result"] = result
	return response
}

func (s sampleServer) handle(req rpcRequest) (any, error) {
	switch req.Method {
	case "initialize":
		return s.initialize(req.Params), nil
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return map[string]any{"tools": s.tools}, nil
	case "tools/call":
		return s.callTool(req.Params)
	}
	return nil, &rpcError{methodNotFound, "no such method"}
}

// initialize returns the result of the handshake, in the client's revision of the protocol.
func (s sampleServer) initialize(params json.RawMessage) any {
	var asked struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &asked) // without one, the default applies
	return map[string]any{
		"protocolVersion": cmp.Or(asked.ProtocolVersion, "2025-06-18"),
		"capabilities":    map[string]any{"tools": struct{}{}},
		"serverInfo":      map[string]string{"name": "sallyport-sample-" + s.name, "version": "1.0"},
	}
}

func (s sampleServer) callTool(params json.RawMessage) (any, error) {
	var call struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := json.Unmarshal(params, &call); err != nil {
		return nil, &rpcError{invalidParams, "the arguments must be texts"}
	}
	at := slices.IndexFunc(s.tools, func(t sampleTool) bool { return t.Name == call.Name })
	if at < 0 {
		return nil, &rpcError{invalidParams, "no such tool"}
	}
	value, err := s.tools[at].call(call.Arguments)
	if err != nil { // the error of a tool is a result
		return toolResult(err.Error(), nil), nil
	}
	text, err := json.Marshal(value)
	return toolResult(string(text), value), err
}

// toolResult returns the result of a call: an error if it has no value.
func toolResult(text string, value any) map[string]any {
	result := map[string]any{"content": []map[string]string{{"type": "text", "text": text}}, "isError": value == nil}
	if value != nil {
		result["structuredContent"] = value
	}
	return result
}
