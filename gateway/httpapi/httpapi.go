// Package httpapi is the gateway's HTTP API: JSON over HTTP. [New] returns its handler, which is served at /api and
// at the control socket. Each route is a line of the table in routes.go; its request and response are Go types. The
// server puts the caller into the request's context ([tool.WithPrincipal], [tool.WithOperator]).
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/gateway/history"
	"sallyport/internal/access"
	"sallyport/internal/lists"
	"sallyport/internal/sanitize"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Service are the methods of the gateway that the API needs.
type Service interface {
	Approvals
	Executions
	Runner
	Catalog
	Upstreams
	Processes
	LiveExecutions
	Files
	Skills
	Reports
	// NotReady returns the reasons why the gateway is not ready, none if it is.
	NotReady() []string
}

// Executions are the execution records of the caller, or of all principals for an operator.
type Executions interface {
	Record(ctx context.Context, id string) (history.Record, error)
	Executions(ctx context.Context, f history.Filter) (history.Page, error)
	JournalCalls(ctx context.Context, id string, after, limit int) (history.JournaledCalls, error)
}

// Options configure the API; nil means all defaults.
type Options struct {
	// Version is the gateway's version, as in /health; "" is "dev".
	Version string
	// Kept says that records outlive the process.
	Kept bool
	// Workflows is the workflow engine; without one the routes of workflows and runs return an error.
	Workflows Workflows
	// Tasks works on tasks; without it the routes of tasks return an error.
	Tasks Tasks
	// Plugins lists the plugins; without it their route returns an error.
	Plugins Plugins
	// Cluster shows the gateways that share a store; without it its route returns an error.
	Cluster Cluster
	// Guides returns longer descriptions for models of operations in the OpenAPI document, by operation name; nil for none.
	Guides func() map[string]string
	// Draining reports whether the process is shutting down; nil is never.
	Draining func() bool
	// Telemetry records metrics and traces of requests; nil records nothing.
	Telemetry *telemetry.Telemetry
	// Logger gets internal errors; nil discards them.
	Logger *slog.Logger
}

// maxBody is the default maximum size of a request body, in bytes, maxValues that of one with values for a workflow.
const maxBody, maxValues = 64 << 10, 1 << 20

// api answers the routes.
type api struct {
	service   Service
	opts      Options
	started   time.Time
	documents documents
}

// New returns the handler of all routes. Every response is JSON: the route's response type, or a problem document.
func New(verbs Service, opts *Options) http.Handler {
	a := &api{service: verbs, started: time.Now()}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.Version == "" {
		a.opts.Version = "dev"
	}
	if a.opts.Guides == nil {
		a.opts.Guides = func() map[string]string { return nil }
	}
	if a.opts.Draining == nil {
		a.opts.Draining = func() bool { return false }
	}
	if a.opts.Logger == nil {
		a.opts.Logger = slog.New(slog.DiscardHandler)
	}
	a.documents.version = a.opts.Version
	byPath := map[string][]route{}
	for _, r := range a.routes() {
		byPath[r.path] = append(byPath[r.path], r)
	}
	mux := http.NewServeMux()
	for path, routes := range byPath {
		mux.Handle(path, a.opts.Telemetry.Route(path, isPoll(path), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, routes) })))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.refuse(w, r, &tool.Error{Kind: tool.NotFound, Message: "there is nothing at " + sanitize.Line(r.URL.Path, 100), Hint: "docs/how-to/use-the-api.md lists what there is"})
	})
	return mux
}

// isPoll reports whether a path is polled, so that requests are not logged.
func isPoll(path string) bool {
	return slices.Contains([]string{"/health", "/readyz", "/metrics", "/openapi.json"}, path)
}

// dispatch answers a request with the route for its method.
func (a *api) dispatch(w http.ResponseWriter, r *http.Request, routes []route) {
	var methods []string
	for _, rt := range routes {
		if rt.method == r.Method || rt.method == http.MethodGet && r.Method == http.MethodHead {
			a.answer(w, r, rt)
			return
		}
		methods = append(methods, rt.method)
	}
	slices.Sort(methods)
	w.Header().Set("Allow", strings.Join(methods, ", "))
	writeProblem(w, r, http.StatusMethodNotAllowed, &tool.Error{Kind: tool.Invalid, Message: "use " + strings.Join(methods, " or ") + " here"})
}

func (a *api) answer(w http.ResponseWriter, r *http.Request, rt route) {
	if err := rt.authorize(r.Context()); err != nil {
		a.refuse(w, r, err)
		return
	}
	r = r.WithContext(tool.WithClient(r.Context(), sanitize.Line(r.UserAgent(), 100)))
	if err := rt.available(&a.opts); err != nil {
		a.refuse(w, r, err)
		return
	}
	r, err := withQuery(r, rt.params)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, max(maxBody, rt.body))
	if rt.stream != nil && (rt.serve == nil || wantsEvents(r)) {
		rt.raw = rt.stream
	}
	if rt.raw != nil {
		if err := rt.raw(w, r); err != nil {
			a.refuse(w, r, err)
		}
		return
	}
	result, err := rt.serve(r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	data, err := encodeJSON(result)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if pending, ok := result.(interface{ pending() bool }); ok && pending.pending() {
		status = http.StatusAccepted
	}
	write(w, status, "application/json", data)
}

// encodeJSON returns the JSON of a response or event, with empty lists and maps in place of null.
func encodeJSON(v any) ([]byte, error) { return json.Marshal(lists.FillNil(v)) }

// available refuses a route if this process lacks its component.
func (rt route) available(opts *Options) error {
	switch {
	case rt.engine && opts.Workflows == nil:
		return &tool.Error{Kind: tool.NotFound, Message: "this process runs no workflows", Hint: "a sallyport serve that keeps records does"}
	case rt.tasks && opts.Tasks == nil:
		return &tool.Error{Kind: tool.NotFound, Message: "this process works on no tasks", Hint: "sallyport serve does"}
	}
	return nil
}

// authorize refuses a caller without the scope or the role of a route.
func (rt route) authorize(ctx context.Context) error {
	caller, _ := access.CallerFrom(ctx)
	switch {
	case caller.Refuses(rt.name):
		return &tool.Error{Kind: tool.Denied, Message: "the role " + string(caller.Role) + " may not do this", Hint: "docs/reference/roles.md says which role may; http.identity.roles assigns roles"}
	case rt.scope == tool.ScopeOperate && tool.Operator(ctx) == "":
		return &tool.Error{Kind: tool.Denied, Message: "only an operator may do this", Hint: "`sallyport token create NAME --scope operate` makes a token of one; or use the sallyport command on the gateway's machine"}
	case rt.scope != "" && !tool.May(ctx, rt.scope):
		return &tool.Error{Kind: tool.Denied, Message: "this needs scope " + string(rt.scope), Hint: "`sallyport token create NAME --scope " + string(rt.scope) + "`"}
	}
	return nil
}

// refuse answers with a problem document.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status == http.StatusInternalServerError {
		a.opts.Logger.ErrorContext(r.Context(), "request failed", "path", sanitize.Line(r.URL.Path, 100), "error", err)
	}
	writeProblem(w, r, status, tool.AsError(err))
}

func write(w http.ResponseWriter, status int, kind string, data []byte) {
	header := w.Header()
	header.Set("Content-Type", kind)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-store")
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(data)+1))
	w.WriteHeader(status)
	_, _ = writeWithDeadline(http.NewResponseController(w), w, append(data, '\n')) // the client may be gone
}
