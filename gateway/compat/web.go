package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Sources have the wrappers that programs import.
type Sources interface {
	Snapshot() *catalog.Snapshot
}

// Web serves the HTTP API of code-executor.
type Web struct {
	gateway Gateway
	sources Sources
	version string
	started time.Time
	mux     *http.ServeMux
}

// NewWeb returns the API on a gateway of a version.
func NewWeb(g Gateway, sources Sources, version string) *Web {
	w := &Web{gateway: g, sources: sources, version: version, started: time.Now(), mux: http.NewServeMux()}
	w.mux.HandleFunc("POST /execute", handle(tool.ScopeExecute, w.execute))
	w.mux.HandleFunc("GET /health", handle("", w.health))
	w.mux.HandleFunc("GET /tools", handle(tool.ScopeRead, w.tools))
	w.mux.HandleFunc("GET /tools/search", handle(tool.ScopeRead, w.search))
	w.mux.HandleFunc("GET /tools/info/{server}/{tool}", handle(tool.ScopeRead, w.info))
	return w
}

// Paths are the patterns of [http.ServeMux] that it serves.
func (w *Web) Paths() []string {
	return []string{"/execute", "/health", "/tools", "/tools/search", "/tools/info/{server}/{tool}"}
}

// ServeHTTP implements [http.Handler]. The caller is in the context of the request.
func (w *Web) ServeHTTP(out http.ResponseWriter, r *http.Request) { w.mux.ServeHTTP(out, r) }

// statusError is an error with the status of its response.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }

func badRequest(message string) error { return &statusError{http.StatusBadRequest, message} }

// handle returns the handler of a route: its answer is JSON, an error is {"error": TEXT}.
func handle(scope tool.Scope, serve func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var said any
		err := error(&statusError{http.StatusForbidden, "the token does not have the scope " + string(scope)})
		if scope == "" || tool.May(r.Context(), scope) {
			said, err = serve(r)
		}
		status := http.StatusOK
		if err != nil {
			status, said = statusOf(err), object{"error": reason(err)}
			if known, ok := errors.AsType[*statusError](err); ok {
				said = object{"error": known.message}
			}
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(said) // the client is gone
	}
}

func statusOf(err error) int {
	if known, ok := errors.AsType[*statusError](err); ok {
		return known.status
	}
	switch tool.AsError(err).Kind {
	case tool.Invalid:
		return http.StatusBadRequest
	case tool.NotFound:
		return http.StatusNotFound
	case tool.Denied:
		return http.StatusForbidden
	case tool.Limit:
		return http.StatusTooManyRequests
	case tool.Busy:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

const (
	// minTimeout and maxTimeout are the limits of the timeout of a request, in milliseconds, and defaultTimeout its default.
	minTimeout, maxTimeout, defaultTimeout = 1000, 300_000, 60_000
	// bytesPerToken is the estimate of that server.
	bytesPerToken = 4
)

func (w *Web) execute(r *http.Request) (any, error) {
	in := struct {
		Code     string  `json:"code"`
		Timeout  float64 `json:"timeout"`
		Language string  `json:"language"`
	}{Timeout: defaultTimeout, Language: "typescript"}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	switch {
	case err != nil || in.Code == "":
		return nil, badRequest("Code is required and must be a string")
	case len(in.Code) > execution.MaxCode:
		return nil, badRequest("Code size exceeds 1MB limit")
	case in.Timeout < minTimeout || in.Timeout > maxTimeout:
		return nil, badRequest(fmt.Sprintf("Timeout must be between %dms and %dms", minTimeout, maxTimeout))
	case in.Language != "typescript" && in.Language != "python":
		return nil, badRequest(`Language must be "typescript" or "python"`)
	}
	begun := time.Now()
	e, err := w.gateway.Execute(r.Context(), execution.Program{Code: in.Code, Language: in.Language, Timeout: time.Duration(in.Timeout * float64(time.Millisecond))})
	if err != nil {
		return nil, err
	}
	return executed(e, time.Since(begun).Milliseconds()), nil
}

// executed is the answer for a program. Where that server shows what went to stderr, it shows it in place of the output.
func executed(e execution.Result, took int64) object {
	stdout, stderr := e.CleanOutput()
	if !e.Failed() {
		output := ended(stdout)
		if output == "" {
			output = ended(stderr)
		}
		return object{"output": output, "executionTime": took, "truncated": e.Stdout.Cut > 0 || e.Stderr.Cut > 0,
			"metrics": object{"outputBytes": len(output), "tokensEstimate": tokens(output)}}
	}
	why := ended(stderr) + e.Ending()
	if e.Status == sandbox.TimedOut {
		why = fmt.Sprintf("Execution timed out after %dms", e.Limits.Timeout.Milliseconds())
	}
	return object{"output": ended(stdout), "error": why, "executionTime": took}
}

func tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

func (w *Web) health(r *http.Request) (any, error) {
	said := object{"status": "healthy", "version": w.version, "uptime": time.Since(w.started).Seconds()}
	if tool.May(r.Context(), tool.ScopeRead) {
		names, total := w.inventory(r.Context())
		said["servers"], said["totalTools"], said["toolsByServer"] = len(names), total, names
	}
	return said, nil
}

func (w *Web) tools(r *http.Request) (any, error) {
	names, total := w.inventory(r.Context())
	return object{"servers": len(names), "totalTools": total, "tools": names}, nil
}

// inventory returns the names of the tools by upstream, as programs import them.
func (w *Web) inventory(ctx context.Context) (names map[string][]string, total int) {
	w.gateway.Await(ctx, "")
	all := w.gateway.Tools()
	return toolsByUpstream(all), len(all)
}

// details are the levels of detail, each with all of those before.
var details = []string{"name", "description", "full"}

func detailOf(r *http.Request) (string, error) {
	asked := r.URL.Query().Get("detail")
	if asked == "" {
		asked = "description"
	}
	if !slices.Contains(details, asked) {
		return "", badRequest("detail must be name, description or full")
	}
	return asked, nil
}

func (w *Web) search(r *http.Request) (any, error) {
	detail, err := detailOf(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	found, err := w.find(r.Context(), strings.TrimSpace(query.Get("query")), query.Get("server"))
	if err != nil {
		return nil, err
	}
	results, costs := []object{}, map[string]int{}
	for _, t := range found {
		full := w.described(r.Context(), t, "full")
		costs["name"] += tokens(t.ID.Name + "\n")
		costs["description"] += tokens(fmt.Sprint(full["description"]) + "\n")
		costs["full"] += tokens(fmt.Sprint(full["source"]) + "\n")
		results = append(results, w.described(r.Context(), t, detail))
	}
	saved := 0
	if costs["full"] > 0 {
		saved = (costs["full"] - costs[detail]) * 100 / costs["full"]
	}
	return object{"results": results, "count": len(results), "tokenSavings": object{
		"name": costs["name"], "description": costs["description"], "full": costs["full"], "currentLevel": detail, "current": costs[detail], "savingsVsFull": saved,
	}}, nil
}

// maxFound is the maximum number of tools that a search returns.
const maxFound = 50

// find returns the tools of a query, the best first: those that the search of the gateway finds, or else those with the
// word in their name or description. "" finds all. server restricts it to one upstream.
func (w *Web) find(ctx context.Context, query, server string) (found []tool.Tool, err error) {
	w.gateway.Await(ctx, server)
	all := slices.DeleteFunc(slices.Clone(w.gateway.Tools()), func(t tool.Tool) bool { return server != "" && t.ID.Upstream != server })
	if query == "" || len(all) == 0 {
		return all, nil
	}
	hits, err := w.gateway.Search.Search(ctx, toolsearch.Request{Query: query, Upstream: server, Limit: maxFound, Detail: toolsearch.Names, Budget: 4000})
	if err != nil {
		return nil, err
	}
	if hits.Weak {
		word := strings.ToLower(query)
		return slices.DeleteFunc(all, func(t tool.Tool) bool { return !strings.Contains(strings.ToLower(t.ID.Name+"\n"+t.Description), word) }), nil
	}
	for _, hit := range hits.Tools {
		if i := slices.IndexFunc(all, func(t tool.Tool) bool { return t.ID == hit.ID }); i >= 0 && hit.Kind == "" {
			found = append(found, all[i])
		}
	}
	return found, nil
}

// described describes a tool.
func (w *Web) described(ctx context.Context, t tool.Tool, detail string) object {
	file := t.ID.Upstream + "/" + t.ID.Name + ".ts"
	said := object{"server": t.ID.Upstream, "name": t.ID.Name, "path": "/workspace/servers/" + file}
	if detail == "name" {
		return said
	}
	said["description"] = sanitize.Text(t.Description, 4000)
	if view, err := w.gateway.ToolView(ctx, t.ID); err == nil {
		said["signature"] = signatureOf(view, "typescript")
	}
	if source, ok := w.sources.Snapshot().File(file); ok && detail == "full" {
		said["source"] = string(source)
	}
	return said
}

func (w *Web) info(r *http.Request) (any, error) {
	detail, err := detailOf(r)
	if err != nil {
		return nil, err
	}
	w.gateway.Await(r.Context(), r.PathValue("server"))
	id := tool.ID{Upstream: r.PathValue("server"), Name: r.PathValue("tool")}
	for _, t := range w.gateway.Tools() {
		if t.ID == id {
			said := w.described(r.Context(), t, detail)
			cost := said["description"]
			if detail == "full" {
				cost = said["source"]
			}
			text, _ := cost.(string) // none at level name
			return object{"tool": said, "tokenEstimate": tokens(text)}, nil
		}
	}
	return nil, &statusError{http.StatusNotFound, "Tool not found"}
}
