// Package apitools has what upstreams share if their tools are the operations of an API: [Serve] serves the tools in this
// process, [ReadFile] reads what describes the API, [Arguments] those of a call, and [Distinguish] names operations.
package apitools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
)

// Serve returns the client's end of a connection to an API as an MCP server. A call is sent while its request is written:
// the error of the transport is that of Write. Wrong arguments, a [*webapi.ArgumentError] of Call, are the response.
func Serve(s inprocess.Server) mcp.Connection {
	call := s.Call
	s.Call = func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
		result, err := call(ctx, name, args)
		if e, ok := errors.AsType[*webapi.ArgumentError](err); ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Reason}
		}
		return result, err
	}
	return s.Connect()
}

// ReadFile reads a regular file of at most limit bytes. Its errors do not name it.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		if e, ok := errors.AsType[*os.PathError](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it has more than %d MiB", limit>>20)
	}
	return data, err
}

// Arguments parses the arguments of a call, of at most nesting levels; none are an empty object. The error is a [*webapi.ArgumentError].
func Arguments(raw json.RawMessage, nesting int) (*jsonobject.Object, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	v, err := jsonobject.Decode(raw, func(depth int, _ bool) error {
		if depth > nesting {
			return webapi.Invalid("the arguments are nested more than %d levels deep", nesting)
		}
		return nil
	})
	args, ok := v.(*jsonobject.Object)
	if err != nil || !ok {
		return nil, webapi.Invalid("the arguments must be a JSON object")
	}
	return args, nil
}

// Distinguish gives another name to operations that have the same but for case.
func Distinguish[T any](all []T, name func(T) *string, other func(T) string) {
	count := map[string]int{}
	for _, one := range all {
		count[strings.ToLower(*name(one))]++
	}
	for _, one := range all {
		if at := name(one); count[strings.ToLower(*at)] > 1 {
			*at = other(one)
		}
	}
}
