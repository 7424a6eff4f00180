package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	protocol = "2025-11-25"
	pageSize = 1 << 20 // bytes of the definitions of one page
)

// Serve returns the client's end of a connection to the API as an MCP server. A call is sent while its request is
// written: the error of the transport is that of Write, unless it is a [*jsonrpc.Error].
func (a *API) Serve() mcp.Connection {
	return &connection{api: a, out: make(chan jsonrpc.Message), closed: make(chan struct{})}
}

type connection struct {
	api    *API
	out    chan jsonrpc.Message
	closed chan struct{}
	once   sync.Once
}

// Read implements [mcp.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.out:
		return msg, nil
	case <-c.closed:
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
	select {
	case c.out <- resp:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements [mcp.Connection].
func (c *connection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// SessionID implements [mcp.Connection].
func (*connection) SessionID() string { return "" }

func (c *connection) handle(ctx context.Context, req *jsonrpc.Request) (json.RawMessage, error) {
	switch req.Method {
	case "initialize":
		info := newObject("name", c.api.Title, "version", c.api.Version)
		return appendJSON(nil, newObject("protocolVersion", protocol, "capabilities", newObject("tools", newObject()), "serverInfo", info)), nil
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
	all := c.api.definitions
	first, err := strconv.Atoi("0" + p.Cursor)
	if err != nil || first > len(all) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid cursor"}
	}
	page, size, next := []any{}, 0, first
	for ; next < len(all) && size < pageSize; next++ {
		page, size = append(page, all[next]), size+len(all[next])
	}
	result := newObject("tools", page)
	if next < len(all) {
		result.Set("nextCursor", strconv.Itoa(next))
	}
	return appendJSON(nil, result), nil
}

func (c *connection) call(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params"}
	}
	result, err := c.api.Call(ctx, p.Name, p.Arguments)
	if e, ok := errors.AsType[*ArgumentError](err); ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Reason}
	}
	return result, err
}
