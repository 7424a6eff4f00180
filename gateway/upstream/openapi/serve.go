package openapi

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/inprocess"
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
	return apitools.Serve(inprocess.Server{Name: a.Title, Version: a.Version, Definitions: a.definitions, Call: a.Call})
}
