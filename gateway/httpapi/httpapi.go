// Package httpapi is the gateway's face for people's tools and other programs: JSON over HTTP. [New] returns the
// handler of it, which is served at /api and at the control socket. Each route is a line of the table in
// routes.go: what it takes and gives are Go types. The server puts the caller into the request's context
// ([tool.WithPrincipal], [tool.WithOperator]).
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
	"sallyport/internal/lists"
	"sallyport/internal/sanitize"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Verbs are what this face needs of the gateway.
type Verbs interface {
	Approvals
	Executions
	Running
	Catalog
	Upstreams
	Lives
	Files
	Skills
	Numbers
	// Missing says what keeps the gateway from its work; nothing if it is ready.
	Missing() []string
}

// Executions are the records of what ran, of the caller, or of all for an operator.
type Executions interface {
	Recorded(ctx context.Context, id string) (history.Record, error)
	Executions(ctx context.Context, f history.Filter) (history.Page, error)
	Journaled(ctx context.Context, id string, after, limit int) (history.JournaledCalls, error)
}

// Options configure the face; nil means all defaults.
type Options struct {
	// Version is ours, as /health tells it; "" is "dev".
	Version string
	// Kept says that records outlive the process.
	Kept bool
	// Workflows is the engine; nil: this process has none, and all routes of workflows and runs say so.
	Workflows Workflows
	// Guides are the descriptions for models of operations in the OpenAPI document, by their names, where that is more than the document
	// has itself; nil is nothing.
	Guides func() map[string]string
	// Draining reports that the process is about to end; nil is never.
	Draining func() bool
	// Telemetry measures requests and keeps traces of them; nil does not.
	Telemetry *telemetry.Telemetry
	// Logger gets what went wrong here; nil discards.
	Logger *slog.Logger
}

// maxBody is how large the body of a request may be, in bytes, maxValues where it holds values for a workflow.
const maxBody, maxValues = 64 << 10, 1 << 20

// api answers the routes.
type api struct {
	verbs     Verbs
	opts      Options
	begun     time.Time
	documents documents
}

// New returns the handler of all routes. Every answer is JSON: what the route's type says, or a problem document.
func New(verbs Verbs, opts *Options) http.Handler {
	a := &api{verbs: verbs, begun: time.Now()}
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
		a.refuse(w, r, &tool.Error{Kind: tool.NotFound, Message: "there is nothing at " + sanitize.Line(r.URL.Path, 100), Hint: "docs/api.md lists what there is"})
	})
	return mux
}

// isPoll reports whether a path is polled, so that each request is not worth a log line.
func isPoll(path string) bool {
	return slices.Contains([]string{"/health", "/readyz", "/metrics", "/openapi.json"}, path)
}

// dispatch has the route of a path that is for the request's method answer it.
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
	if err := rt.may(r.Context()); err != nil {
		a.refuse(w, r, err)
		return
	}
	r = r.WithContext(tool.WithClient(r.Context(), sanitize.Line(r.UserAgent(), 100)))
	if rt.engine && a.opts.Workflows == nil {
		a.refuse(w, r, &tool.Error{Kind: tool.NotFound, Message: "this process runs no workflows", Hint: "a sallyport serve that keeps records does"})
		return
	}
	r, err := withAsked(r, rt.params)
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
	data, err := encoded(result)
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

// encoded is the JSON of an answer or event, without null for lists and maps that are empty.
func encoded(v any) ([]byte, error) { return json.Marshal(lists.Filled(v)) }

// may refuses a caller without the scope of a route.
func (rt route) may(ctx context.Context) error {
	switch {
	case rt.scope == tool.ScopeOperate && tool.Operator(ctx) == "":
		return &tool.Error{Kind: tool.Denied, Message: "only an operator may do this", Hint: "`sallyport token create NAME --scope operate` makes a token of one; the sallyport command works beside the gateway"}
	case rt.scope != "" && !tool.May(ctx, rt.scope):
		return &tool.Error{Kind: tool.Denied, Message: "this needs scope " + string(rt.scope), Hint: "`sallyport token create NAME --scope " + string(rt.scope) + "`"}
	}
	return nil
}

// refuse answers with what went wrong.
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
	_, _ = patiently(http.NewResponseController(w), w, append(data, '\n')) // who has gone hears nothing
}
