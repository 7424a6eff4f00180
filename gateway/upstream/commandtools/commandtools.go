// Package commandtools serves the tools of an upstream that are programs: each call runs one in a sandbox of its own. Its main function
// is [Open]. What programs print is untrusted, and bounded.
package commandtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/process"
	"sallyport/internal/commandtool"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// Isolate starts processes in sandboxes.
type Isolate interface {
	// Check reports whether the process of an upstream can start, after its packages have been installed.
	Check(ctx context.Context, up config.Upstream) error
	// Start starts it with streams that it closes in any case. The process outlives ctx.
	Start(ctx context.Context, up config.Upstream, streams process.Streams) (process.Program, error)
}

// ErrNoSandboxes is the error of a process without an Isolate.
var ErrNoSandboxes = &tool.Error{Kind: tool.Invalid, Message: "its settings have isolate, and this process starts no sandboxes"}

// server has the tools of one upstream.
type server struct {
	up      config.Upstream
	isolate Isolate
	tools   map[string]*commandtool.Command
}

// Open checks the tools of an upstream and their programs, and returns the MCP server that has them.
func Open(ctx context.Context, up config.Upstream, isolate Isolate, version string) (inprocess.Server, error) {
	s := &server{up: up, isolate: isolate, tools: map[string]*commandtool.Command{}}
	all := inprocess.Server{Name: up.Name, Version: version, Call: s.call}
	if isolate == nil {
		return all, ErrNoSandboxes
	}
	for _, declared := range up.Tools {
		c, err := commandtool.Compile(declared)
		if err == nil {
			err = isolate.Check(ctx, s.program(c, c.Run[1:]))
		}
		if err != nil {
			return all, named(declared.Name, err)
		}
		definition, err := definition(c)
		if err != nil {
			return all, err
		}
		s.tools[c.Name] = c
		all.Definitions = append(all.Definitions, definition)
	}
	return all, nil
}

// named returns the error of a tool.
func named(name string, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		other := *e
		other.Message = "tool " + name + ": " + e.Message
		return &other
	}
	return fmt.Errorf("tool %s: %w", name, err)
}

// program returns an upstream with a process that is one run of a program.
func (s *server) program(c *commandtool.Command, args []string) config.Upstream {
	up, isolate := s.up, *s.up.Isolate
	isolate.Checkpoint = false
	up.Command, up.Args, up.Isolate = c.Run[0], args, &isolate
	return up
}

// definition returns the definition of a tool.
func definition(c *commandtool.Command) (json.RawMessage, error) {
	d := map[string]any{"name": c.Name, "description": c.Description, "inputSchema": c.Input, "annotations": map[string]bool{"readOnlyHint": c.ReadOnly}}
	if c.Description == "" {
		d["description"] = "Runs " + strings.Join(c.Run, " ")
	}
	if schema := resultSchema(c); schema != nil {
		d["outputSchema"] = schema
	}
	return inprocess.Encode(d)
}

// resultSchema returns the schema of structured results, which are objects: other values are wrapped in one.
func resultSchema(c *commandtool.Command) any {
	result := c.Result
	if c.Output == commandtool.Lines {
		if result == nil {
			result = json.RawMessage("{}")
		}
		return wrapped(map[string]any{"type": "array", "items": result})
	}
	switch {
	case result == nil:
		return nil
	case isObject(result):
		return result
	}
	return wrapped(result)
}

func wrapped(schema any) any {
	return map[string]any{"type": "object", "properties": map[string]any{"result": schema}, "required": []string{"result"}, "x-fastmcp-wrap-result": true}
}

// isObject reports whether a schema is that of an object.
func isObject(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// call calls a tool. A failure of the program is a result.
func (s *server) call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	c := s.tools[name]
	if c == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no tool %.80q", name)}
	}
	in, err := c.Expand(args)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	r, err := s.run(ctx, c, in)
	if err != nil {
		return inprocess.Encode(failed(err.Error()))
	}
	return inprocess.Encode(r.result(c))
}
