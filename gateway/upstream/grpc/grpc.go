package grpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

// Options say which server to call, and what describes it.
type Options struct {
	// Endpoint is the URL of the server: https, or http without encryption.
	Endpoint string
	// Descriptors is the path of a file with a descriptor set, as protoc --descriptor_set_out writes it. "" asks the server.
	Descriptors string
	// Credentials are sent with every request. Headers are metadata.
	webapi.Credentials
	// Include and Exclude choose methods: globs of their names, or "service:GLOB" of the full names of services.
	Include, Exclude []string
	// Transport sends requests by HTTP/2.
	Transport http.RoundTripper
	// MaxResponse bounds the responses of a call, in bytes; 0 is 64 MiB.
	MaxResponse int64
}

// API is a server with methods that can be called. It is safe for concurrent use.
type API struct {
	// Skipped are the methods that are no tools, and the files that are invalid, with the reason.
	Skipped []string

	opts        Options
	client      connect.HTTPClient
	files       *files
	methods     map[string]*method
	definitions []json.RawMessage
}

// Load reads the descriptors of a server. ctx bounds the time for that.
func Load(ctx context.Context, opts Options) (*API, error) {
	if opts.MaxResponse <= 0 {
		opts.MaxResponse = 64 << 20
	}
	a := &API{opts: opts, methods: map[string]*method{}, client: newTransport(&opts)}
	var err error
	if a.files, err = a.readFiles(ctx); err != nil {
		return nil, err
	}
	a.Skipped = a.files.faults
	all, err := a.allMethods()
	if err != nil {
		return nil, err
	}
	if err := a.define(ctx, all); err != nil {
		return nil, err
	}
	if len(a.methods) == 0 {
		return nil, errors.New(strings.Join(append([]string{"the gRPC server has no method that can be a tool, or include and exclude leave none"}, a.Skipped[:min(len(a.Skipped), 3)]...), "; "))
	}
	return a, nil
}

// define makes the definitions of the tools.
func (a *API) define(ctx context.Context, all []*method) error {
	size, work := 0, &work{left: maxSteps, made: map[string]json.RawMessage{}}
	for _, m := range all {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("make tools of the gRPC methods: %w", err)
		}
		if err := m.checkMessages(); err != nil {
			a.skip(m, err.Error())
			continue
		}
		definition := m.definition(work)
		if size += len(definition); size > maxOffered {
			return fmt.Errorf("the gRPC methods make tools of more than %d MiB; choose some with include", maxOffered>>20)
		}
		a.methods[m.name] = m
		a.definitions = append(a.definitions, definition)
	}
	return nil
}

// skip keeps the reason why a method is no tool.
func (a *API) skip(m *method, reason string) {
	a.Skipped = append(a.Skipped, sanitize.Line(fmt.Sprintf("method %s: %s", m.path(), reason), 300))
}

// Names returns the names of the tools, sorted.
func (a *API) Names() []string { return slices.Sorted(maps.Keys(a.methods)) }

// Definitions returns the definitions of the tools, as in the result of tools/list. They must not be modified.
func (a *API) Definitions() []json.RawMessage { return a.definitions }

// Connect reads what describes a server and returns the client's end of a connection to it, as [API.Serve] does, and [API.Skipped].
func Connect(ctx context.Context, opts Options) (mcp.Connection, []string, error) {
	a, err := Load(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return a.Serve(), a.Skipped, nil
}

// Serve returns the client's end of a connection to the methods as an MCP server. A call is sent while its request is
// written: the error of the transport is that of Write, unless it is a [*jsonrpc.Error].
func (a *API) Serve() mcp.Connection {
	return apitools.Serve(inprocess.Server{Name: "gRPC", Definitions: a.definitions, Call: a.Call})
}
