// Package mcpserver is the face of the gateway that MCP clients see, over stdio
// and HTTP. New makes two tools, search_tools and execute_code, each a thin call
// of one of the gateway's verbs. What a client reads before its first call
// (definitions and instructions) depends on the settings alone, so that it stays
// the same while upstreams come and go, and prompt caches hold. NewDirect shows
// the upstreams' own tools, resources and prompts instead (direct.go, roster.go:
// what is shown; forward.go, client.go, talk.go: a call and what is asked during
// it; raw.go: how bytes get past the SDK's types). NewEndpoints serves both over HTTP
// (endpoints.go, calls.go), behind gateway/httpserver.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Verbs are what this face needs of the gateway.
type Verbs interface {
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	Execute(ctx context.Context, p execution.Program) (execution.Result, error)
	Upstreams() []catalog.Upstream
}

// Options configure a server; nil means all defaults.
type Options struct {
	// Version is ours; "" is "dev".
	Version string
	// Logger gets what goes wrong in the protocol; nil discards.
	Logger *slog.Logger
	// Environments are what programs can ask for by name.
	Environments map[string]config.Environment
	// Workspaces are folders of the operator's that programs can have as theirs, by name.
	Workspaces map[string]config.Mapped
	// Packages installs packages where an environment allows it; nil: there are no tools for it.
	Packages Packages
	// Files answers the tools of profile files; nil: they are not there.
	Files Files
	// Catalog answers the tools of profile catalog; nil: they are not there.
	Catalog Catalog
	// Choices answers those of profile environments that are not about packages; nil: they are not there.
	Choices Choices
	// Stats answers the tool of profile stats; nil: it is not there.
	Stats Stats
	// Skills keeps skills; nil: there are no tools for it.
	Skills Skills
	// Privacy answers the tools of profile privacy; nil: they are not there.
	Privacy Privacy
	// Profiles are the tools that clients see in addition to the two; the zero value is none.
	Profiles config.Profiles
	// StateKey signs what clients are handed for programs that wait for them; nil is one that ends with the process.
	StateKey []byte
	// Telemetry measures requests and keeps traces of them; nil does not.
	Telemetry *telemetry.Telemetry
	// OnReady, if set, is called once, when a client asks for the tools for the first time. It must not block.
	OnReady func()
}

// Packages are what the tools about packages need of the gateway.
type Packages interface {
	InstallPackages(ctx context.Context, p environments.Packages) (string, error)
	InstalledPackages(ctx context.Context, p environments.Packages) (string, error)
}

// ServeStdio speaks MCP on stdin and stdout until the client closes stdin or ctx ends.
func ServeStdio(ctx context.Context, verbs Verbs, opts *Options) error {
	tools := New(verbs, opts)
	defer tools.Close()
	if err := tools.Run(ctx, stdio()); ctx.Err() == nil {
		return err
	}
	return nil // told to end, it ended
}

// New returns the MCP server with its two tools, and those about packages where an environment allows them.
func New(verbs Verbs, opts *Options) *Tools {
	if opts == nil {
		opts = &Options{}
	}
	version := opts.Version
	if version == "" {
		version = "dev"
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: version},
		&mcp.ServerOptions{Instructions: instructions, Logger: opts.Logger},
	)
	server.AddReceivingMiddleware(onlyTools)
	tools := newTools(server, opts.StateKey)
	f := &face{tools: tools, verbs: verbs, environments: opts.Environments, workspaces: workspaceProperty(opts) != ""}
	search, execute := core(verbs, opts)
	server.AddTool(search, f.search)
	server.AddTool(execute, f.execute)
	for _, e := range extras(verbs, opts) {
		e.add(tools)
	}
	if opts.OnReady != nil {
		server.AddReceivingMiddleware(onFirstList(opts.OnReady))
	}
	server.AddReceivingMiddleware(withClient)
	server.AddReceivingMiddleware(traced(opts.Telemetry))
	return tools
}

// core are the two tools that every client sees.
func core(verbs Verbs, opts *Options) (search, execute *mcp.Tool) {
	return searchTool(verbs.Upstreams()), executeTool(opts.Environments, workspaceProperty(opts))
}

// Guides are what core tells a model of its tools, by their names, for who offers them in another way.
func Guides(verbs Verbs, opts *Options) map[string]string {
	search, execute := core(verbs, opts)
	return map[string]string{search.Name: search.Description, execute.Name: execute.Description}
}

// onFirstList calls ready when a client lists the tools for the first time.
func onFirstList(ready func()) mcp.Middleware {
	ready = sync.OnceFunc(ready)
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" || method == "tools/call" {
				ready()
			}
			return next(ctx, method, req)
		}
	}
}

// onlyTools refuses what is not declared here, which the SDK would answer with empty lists.
func onlyTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if family(method) != nil && method != tool.SetLogLevel {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there are only tools here, not " + method}
		}
		return next(ctx, method, req)
	}
}

// pulsePeriod is the interval of progress notifications for a program that runs.
const pulsePeriod = 5 * time.Second

// pulse tells a client that has asked for progress how long its program has
// been running, until stop: many give up on a call that they hear nothing of.
func pulse(ctx context.Context, req *mcp.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		begin := time.Now()
		ticker := time.NewTicker(pulsePeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: time.Since(begin).Round(time.Second).Seconds()})
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// face answers the two tools.
type face struct {
	tools        *Tools
	verbs        Verbs
	environments map[string]config.Environment
	workspaces   bool // the schema of execute_code has the parameter
}

func (f *face) search(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var s toolsearch.Request
	var detail string
	var limit float64
	if err := read(req.Params.Arguments, map[string]any{
		"query": &s.Query, "detail": &detail, "upstream": &s.Upstream, "limit": &limit, "language": &s.Language,
	}, map[string]any{"detail_level": &detail, "category": &s.Upstream}); err != nil {
		return failure(err), nil
	}
	s.Detail, s.Limit = toolsearch.Detail(detail), int(max(0, min(limit, 1e6)))
	ctx, cancel := bare(ctx)
	defer cancel()
	found, err := f.verbs.Search(ctx, s)
	if err != nil {
		return failure(err), nil
	}
	return text(found.Text(), false), nil
}

func (f *face) execute(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var p execution.Program
	seconds := math.NaN()
	var megabytes float64
	if err := read(req.Params.Arguments, f.parameters(&p, &seconds), map[string]any{
		"timeout_seconds": &seconds, "memory_mb": &megabytes, "context_vars": &p.Variables, "filename": &p.SaveAs, "workspace": &p.Workspace, "resume": &p.Resume,
	}); err != nil {
		return failure(err), nil
	}
	p.Memory = int64(max(0, min(megabytes, 1e9)) * (1 << 20))
	var err error
	if p.Timeout, err = timeout(seconds); err != nil {
		return failure(err), nil
	}
	defer pulse(ctx, req)()
	r := f.tools.request(ctx, req)
	ctx, cancel := bare(ctx)
	defer cancel()
	return orFailure(r.run(ctx, f.verbs, p))
}

// orFailure makes of an error a result that a model can read, unless it is one of the protocol.
func orFailure(result *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if wrong, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, wrong
	}
	if err != nil {
		return failure(err), nil
	}
	return result, nil
}

// executed runs a program and tells how that went.
func executed(ctx context.Context, verbs Verbs, p execution.Program, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	execution, err := verbs.Execute(ctx, p)
	if err != nil {
		return nil, err
	}
	said := execution.Text()
	if execution.Failed() && errors.Is(context.Cause(ctx), errStopping) {
		said += "\n(the gateway is stopping; it could be run again later)"
	}
	result := text(said, execution.Failed())
	result.Content = append(result.Content, blocks(execution.Shown(), revision(req))...)
	return result, nil
}

// timeout is how long a program may run that asks for so many seconds; NaN is what the settings say.
func timeout(seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) {
		return 0, nil
	}
	if seconds <= 0 {
		return 0, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("timeout must be more than 0 seconds, not %g", seconds), Hint: "leave it out for the limit of the settings"}
	}
	return max(1, time.Duration(min(seconds, 1e6)*float64(time.Second))), nil
}

// parameters are those of execute_code.
func (f *face) parameters(p *execution.Program, seconds *float64) map[string]any {
	all := map[string]any{"code": &p.Code, "language": &p.Language, "session": &p.Session, "timeout": seconds}
	if f.workspaces {
		all["workspace"] = &p.Workspace
	}
	if environmentProperty(f.environments) != "" {
		all["environment"] = &p.Environment
	}
	return all
}

// failure is an error as a result that the model can read and act on.
func failure(err error) *mcp.CallToolResult {
	return text(tool.AsError(err).Error(), true)
}

func text(s string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: isError}
}
