package graphql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/vektah/gqlparser/v2/ast"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

// Options say which API to call, and where its schema is.
type Options struct {
	// Endpoint is the URL of the API.
	Endpoint string
	// Schema is the path of a file with the schema: in the schema definition language, or the JSON that introspection returns. "" asks the
	// API.
	Schema string
	// Credentials are sent with every request.
	webapi.Credentials
	// Include and Exclude choose operations: globs of their names, or "query:GLOB" and "mutation:GLOB".
	Include, Exclude []string
	// Transport sends requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
	// MaxResponse bounds a response, in bytes; 0 is 64 MiB.
	MaxResponse int64
}

// API is an API with queries and mutations that can be called. It is safe for concurrent use.
type API struct {
	// Skipped are the operations that are no tools, with the reason.
	Skipped []string

	opts         Options
	client       *http.Client
	schema       *ast.Schema
	operations   map[string]*operation
	describeTool string // the name of the tool that shows a type
	definitions  []json.RawMessage
	mu           sync.Mutex // of the default selections
}

// Load reads the schema of an API. ctx bounds the time for that.
func Load(ctx context.Context, opts Options) (*API, error) {
	if opts.MaxResponse <= 0 {
		opts.MaxResponse = 64 << 20
	}
	a := &API{opts: opts, operations: map[string]*operation{}}
	a.client = &http.Client{Transport: opts.Transport, CheckRedirect: webapi.FollowRedirect}
	var err error
	if a.schema, err = a.readSchema(ctx); err != nil {
		return nil, err
	}
	all, err := a.allOperations()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the GraphQL schema has no query and no mutation, or include and exclude leave none")
	}
	return a, a.define(all)
}

// define makes the definitions of the tools.
func (a *API) define(all []*operation) error {
	size := 0
	for _, o := range all {
		definition := a.definition(o)
		if size += len(definition); size > maxOffered {
			return fmt.Errorf("the GraphQL schema makes tools of more than %d MiB; choose some with include", maxOffered>>20)
		}
		a.operations[o.name] = o
		a.definitions = append(a.definitions, definition)
	}
	for a.describeTool = "describe_type"; a.operations[a.describeTool] != nil; {
		a.describeTool += "_"
	}
	a.definitions = append(a.definitions, a.describeDefinition())
	return nil
}

// skip keeps the reason why a field is no tool.
func (a *API) skip(kind ast.Operation, name, reason string) {
	a.Skipped = append(a.Skipped, sanitize.Line(fmt.Sprintf("%s %s: %s", kind, name, reason), 300))
}

// Names returns the names of the tools, sorted.
func (a *API) Names() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(a.operations)), a.describeTool)))
}

// Definitions returns the definitions of the tools, as in the result of tools/list. They must not be modified.
func (a *API) Definitions() []json.RawMessage { return a.definitions }

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
	return apitools.Serve(inprocess.Server{Name: "GraphQL", Definitions: a.definitions, Call: a.Call})
}
