package openapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/webapi"
)

// Connect reads what describes an API and returns the client's end of a connection to it, as [API.Serve] does, and [API.Skipped].
func Connect(ctx context.Context, opts Options) (mcp.Connection, []string, error) {
	a, err := Load(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return a.Serve(), a.Skipped, nil
}

// Serve returns the client's end of a connection to the API as an MCP server. A call is sent while its request is
// written: the error of the transport is that of Write, unless it is a [*jsonrpc.Error].
func (a *API) Serve() mcp.Connection {
	return inprocess.Server{Name: a.Title, Version: a.Version, Definitions: a.definitions, Call: a.serveCall}.Connect()
}

func (a *API) serveCall(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	result, err := a.Call(ctx, name, args)
	if e, ok := errors.AsType[*webapi.ArgumentError](err); ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Reason}
	}
	return result, err
}
