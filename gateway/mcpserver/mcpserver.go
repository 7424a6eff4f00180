// Package mcpserver is the MCP server that clients of the gateway connect to, over
// stdio and HTTP. New makes two tools, search_tools and execute_code, each a thin
// wrapper of one method of [Service]. What a client reads before its first call
// (the definitions; there are no instructions) depends on the settings alone: it stays the same
// while upstreams connect and disconnect, which keeps prompt caches valid. Clients are notified when the
// settings change it (changes.go). NewDirect
// exposes the upstreams' own tools, resources and prompts instead (direct.go and
// roster.go: the lists; forward.go, client.go and pending.go: a call and the requests
// to the client during it; raw.go: passing bytes around the SDK's types). NewEndpoints
// serves both over HTTP (endpoints.go, calls.go), behind gateway/httpserver.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/compat"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/mcpserver/session"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Service is the part of the gateway that the two tools call.
type Service interface {
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	Execute(ctx context.Context, p execution.Program) (execution.Result, error)
	Upstreams() []catalog.Upstream
}

// Options configure a server; nil means all defaults.
type Options struct {
	// Version is the gateway's version; "" is "dev".
	Version string
	// Logger gets protocol errors; nil discards them.
	Logger *slog.Logger
	// Environments are the environments that programs can select, by name.
	Environments map[string]config.Environment
	// Workspaces are folders of the operator that programs can use as their workspace, by name.
	Workspaces map[string]config.MappedFolder
	// Packages installs packages where an environment allows it; nil disables its tools.
	Packages Packages
	// Files implements the tools of profile files; nil disables them.
	Files Files
	// Catalog implements the tools of profile catalog; nil disables them.
	Catalog Catalog
	// Choices implements the tools of profile environments except those for packages; nil disables them.
	Choices Choices
	// Stats implements the tool of profile stats; nil disables it.
	Stats Stats
	// Skills stores skills; nil disables its tools.
	Skills Skills
	// Tasks implements the tool of profile tasks; nil disables it.
	Tasks Tasks
	// Privacy implements the tools of profile privacy; nil disables them.
	Privacy Privacy
	// Profiles select the tools that clients see in addition to the two; the zero value is none.
	Profiles config.Profiles
	// Face, if set, has the tools of another server, which clients see instead of all others.
	Face *compat.Face
	// StateKey signs the requestState of programs that wait for their client; nil generates a key for this process.
	StateKey []byte
	// Telemetry records metrics and traces of requests; nil disables it.
	Telemetry *telemetry.Telemetry
	// Watch, if set, calls f after each change of the upstreams, until stop is called: the description of search_tools names them.
	Watch func(f func()) (stop func())
	// Upstreams returns the upstreams that the caller in ctx sees; nil shows each caller all.
	Upstreams func(ctx context.Context) []catalog.Upstream
	// Resources reads the user interfaces of tools (MCP Apps) for clients that show them; nil shows none.
	Resources Resources
	// OnReady, if set, is called once, when a client first lists or calls tools. It must not block.
	OnReady func()
}

// Packages is the part of the gateway that the package tools call.
type Packages interface {
	InstallPackages(ctx context.Context, p environments.Packages) (string, error)
	InstalledPackages(ctx context.Context, p environments.Packages) (string, error)
}

// ServeStdio speaks MCP on stdin and stdout until the client closes stdin or ctx ends.
func ServeStdio(ctx context.Context, in *Stdin, verbs Service, opts *Options) error {
	tools := New(verbs, opts)
	defer tools.Close()
	if err := tools.Run(ctx, stdioTransport(in)); ctx.Err() == nil {
		return err
	}
	return nil // ctx was canceled
}

// New returns the MCP server with its two tools and those that opts enable. Close it.
func New(verbs Service, opts *Options) *Tools {
	if opts == nil {
		opts = &Options{}
	}
	version := opts.Version
	if version == "" {
		version = "dev"
	}
	ids := session.NewIDs(codeSession)
	server := mcp.NewServer(
		&mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: version},
		&mcp.ServerOptions{Logger: opts.Logger, GetSessionID: ids.Next},
	)
	tools := newTools(server, ids, opts.StateKey)
	server.AddReceivingMiddleware(onlyTools(&interfaces{resources: opts.Resources, tools: tools}))
	if opts.Face != nil {
		addFace(tools, verbs, opts.Face)
	} else {
		addTools(tools, verbs, opts)
	}
	if opts.OnReady != nil {
		server.AddReceivingMiddleware(onFirstList(opts.OnReady))
	}
	server.AddReceivingMiddleware(withClient)
	server.AddReceivingMiddleware(traceRequests(opts.Telemetry))
	return tools
}

// addTools adds the two tools and those of the profiles.
func addTools(tools *Tools, verbs Service, opts *Options) {
	f := &handler{tools: tools, service: verbs, environments: opts.Environments, workspaces: workspaceProperty(opts) != ""}
	search, execute := coreTools(verbs, opts)
	tools.AddTool(search, f.search)
	tools.AddTool(execute, f.execute)
	for _, e := range extras(verbs, opts) {
		e.add(tools)
	}
	if tools.upstreams = opts.Upstreams; tools.upstreams == nil {
		tools.upstreams = func(context.Context) []catalog.Upstream { return verbs.Upstreams() }
	}
	tools.AddReceivingMiddleware(tools.showUpstreams)
	tools.follow(opts, func() { tools.AddTool(search, f.search) })
}

// coreTools returns the two tools that every client sees.
func coreTools(verbs Service, opts *Options) (search, execute *mcp.Tool) {
	return searchTool(verbs.Upstreams()), executeTool(opts.Environments, workspaceProperty(opts))
}

// ToolDescriptions returns the descriptions of the two tools by tool name, for callers that expose them other than by MCP.
func ToolDescriptions(verbs Service, opts *Options) map[string]string {
	search, execute := coreTools(verbs, opts)
	return map[string]string{search.Name: search.Description, execute.Name: execute.Description}
}

// onFirstList calls ready when a client lists or calls tools for the first time.
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

// onlyTools rejects the methods of undeclared capabilities, which the SDK would answer with empty lists. Clients that show user
// interfaces can read those, and pass on their calls of tools.
func onlyTools(i *interfaces) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			apps := i.resources != nil && showsApps(req)
			switch {
			case apps && method == tool.ReadResource:
				return i.read(ctx, req)
			case apps && (method == tool.ListResources || method == tool.ListTemplates): // links name those to read
			case requiredCapability(method) != nil && method != tool.SetLogLevel:
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "only tools are supported here, not " + method}
			}
			result, err := next(ctx, method, req)
			if apps && method == "tools/call" && isUnknownTool(err) {
				if answer, ok, err := i.call(ctx, req); ok {
					return answer, err
				}
			}
			if apps && err == nil {
				declareResources(result)
			}
			return result, err
		}
	}
}

// isUnknownTool reports whether an error of the SDK says that this server has no tool of that name.
func isUnknownTool(err error) bool {
	wrong, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && wrong.Code == jsonrpc.CodeInvalidParams && strings.HasPrefix(wrong.Message, "unknown tool ")
}

// progressInterval is the interval of progress notifications for a running program.
const progressInterval = 5 * time.Second

// reportProgress sends a client that requested progress the running time of its program, in
// seconds, until stop is called: many clients time out on a call without notifications.
func reportProgress(ctx context.Context, req *mcp.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		begin := time.Now()
		ticker := time.NewTicker(progressInterval)
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

// handler handles calls of the two tools.
type handler struct {
	tools        *Tools
	service      Service
	environments map[string]config.Environment
	workspaces   bool // the schema of execute_code has the workspace parameter
	readers      readers
}

func (f *handler) search(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var s toolsearch.Request
	var detail string
	var limit float64
	if err := decodeArguments(req.Params.Arguments, map[string]any{
		"query": &s.Query, "detail": &detail, "upstream": &s.Upstream, "limit": &limit, "language": &s.Language,
	}, map[string]any{"detail_level": &detail, "category": &s.Upstream, "server": &s.Upstream}); err != nil {
		return errorResult(err), nil
	}
	s.Detail, s.Limit, s.Shown = toolsearch.Detail(detail), int(max(0, min(limit, 1e6))), f.readers.shownTo(req.Session)
	ctx, cancel := detach(ctx)
	defer cancel()
	found, err := f.service.Search(ctx, s)
	if err != nil {
		return errorResult(err), nil
	}
	return textResult(found.Text(), false), nil
}

func (f *handler) execute(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var p execution.Program
	seconds := math.NaN()
	var megabytes float64
	if err := decodeArguments(req.Params.Arguments, f.parameters(&p, &seconds), map[string]any{
		"timeout_seconds": &seconds, "memory_mb": &megabytes, "context_vars": &p.Variables, "filename": &p.SaveAs, "workspace": &p.Workspace, "resume": &p.Resume, "isolation": &p.Isolation,
	}); err != nil {
		return errorResult(err), nil
	}
	p.Memory = int64(max(0, min(megabytes, 1e9)) * (1 << 20))
	var err error
	if p.Timeout, err = parseTimeout(seconds); err != nil {
		return errorResult(err), nil
	}
	defer reportProgress(ctx, req)()
	r := f.tools.newRequest(ctx, req)
	ctx, cancel := detach(ctx)
	defer cancel()
	return resultOrError(r.run(ctx, f.service, p))
}

// resultOrError turns an error into a result that a model can read; a JSON-RPC error stays an error.
func resultOrError(result *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if wrong, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, wrong
	}
	if err != nil {
		return errorResult(err), nil
	}
	return result, nil
}

// runProgram runs a program and returns its outcome as a tool result.
func runProgram(ctx context.Context, verbs Service, p execution.Program, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	execution, err := verbs.Execute(ctx, p)
	if err != nil {
		return nil, err
	}
	said := execution.Text()
	if execution.Failed() && errors.Is(context.Cause(ctx), errStopping) {
		said += "\n(the gateway is stopping; run it again later)"
	}
	result := textResult(said, execution.Failed())
	result.Content = append(result.Content, contentBlocks(execution.ClientContent(), revisionOf(req), showsApps(req))...)
	return result, nil
}

// parseTimeout converts the timeout argument, in seconds, to a duration; NaN gives 0, the configured limit.
func parseTimeout(seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) {
		return 0, nil
	}
	if seconds <= 0 {
		return 0, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("timeout must be more than 0 seconds, not %g", seconds), Hint: "omit it to use the configured limit"}
	}
	return max(1, time.Duration(min(seconds, 1e6)*float64(time.Second))), nil
}

// parameters returns the targets of the arguments of execute_code.
func (f *handler) parameters(p *execution.Program, seconds *float64) map[string]any {
	all := map[string]any{"code": &p.Code, "language": &p.Language, "session": &p.Session, "timeout": seconds}
	if f.workspaces {
		all["workspace"] = &p.Workspace
	}
	if environmentProperty(f.environments) != "" {
		all["environment"] = &p.Environment
	}
	return all
}

// errorResult returns an error as a result that the model can read and act on.
func errorResult(err error) *mcp.CallToolResult {
	return textResult(tool.AsError(err).Error(), true)
}

func textResult(s string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: isError}
}
