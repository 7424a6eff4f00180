// Package inprocess serves tools of this process as an MCP server, over a connection in memory. Its main type is [Server].
package inprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	protocol = "2025-11-25"
	pageSize = 1 << 20 // bytes of the definitions of one page
)

// Server describes an MCP server.
type Server struct {
	Name, Version string
	// Definitions are those of its tools, as in the result of tools/list.
	Definitions []json.RawMessage
	// Call returns the result of tools/call. An error that is a [*jsonrpc.Error] is the response; any other is that of the transport.
	Call func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	// Close, if set, is called when a connection is closed.
	Close func()
}

// Connect returns the client's end of a connection. A call runs while its request is written, and its context ends with the connection:
// the error of the transport is that of Write.
func (s Server) Connect() mcp.Connection {
	c := &connection{server: s, out: make(chan jsonrpc.Message)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

type connection struct {
	server Server
	out    chan jsonrpc.Message
	life   context.Context //nolint:containedctx // ends with the connection
	end    context.CancelFunc
}

// Read implements [mcp.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.out:
		return msg, nil
	case <-c.life.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return nil // a notification
	}
	result, err := c.handle(ctx, req)
	resp := &jsonrpc.Response{ID: req.ID, Result: result}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		resp.Error = e
	} else if err != nil {
		return err
	}
	if ctx.Err() != nil { // a canceled request gets no response
		return ctx.Err()
	}
	select {
	case c.out <- resp:
		return nil
	case <-c.life.Done():
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements [mcp.Connection].
func (c *connection) Close() error {
	c.end()
	if c.server.Close != nil {
		c.server.Close()
	}
	return nil
}

// SessionID implements [mcp.Connection].
func (*connection) SessionID() string { return "" }

func (c *connection) handle(ctx context.Context, req *jsonrpc.Request) (json.RawMessage, error) {
	switch req.Method {
	case "initialize":
		return Encode(map[string]any{
			"protocolVersion": protocol, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": c.server.Name, "version": c.server.Version},
		})
	case "ping":
		return json.RawMessage("{}"), nil
	case "tools/list":
		return c.list(req.Params)
	case "tools/call":
		return c.call(ctx, req.Params)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
}

// list returns one page of the tools. The cursor is the number of the first.
func (c *connection) list(params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(params, &p) // none is the first page
	all := c.server.Definitions
	first, err := strconv.Atoi("0" + p.Cursor)
	if err != nil || first > len(all) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid cursor"}
	}
	page, size, next := []json.RawMessage{}, 0, first
	for ; next < len(all) && size < pageSize; next++ {
		page, size = append(page, all[next]), size+len(all[next])
	}
	result := map[string]any{"tools": page}
	if next < len(all) {
		result["nextCursor"] = strconv.Itoa(next)
	}
	return Encode(result)
}

func (c *connection) call(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	return c.server.Call(ctx, p.Name, p.Arguments)
}

// Encode returns JSON with texts as they are, without escaping HTML.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
