package dashboard

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/budgets"
	"sallyport/gateway/catalog"
	"sallyport/gateway/connections"
	"sallyport/gateway/history"
	"sallyport/gateway/plugin"
	"sallyport/gateway/rehearsal"
	"sallyport/gateway/reload"
	"sallyport/gateway/timeline"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// Service are the methods of the gateway that the pages need.
type Service interface {
	Catalogue
	Approvals
	Review
	Processes
	Activity
	Calls
	Programs
	Rules
	Users
	Settings() reload.Status
	Savings(ctx context.Context, since time.Time, step time.Duration) (history.Savings, error)
	Graphs(ctx context.Context, r timeline.Range) (timeline.Graphs, error)
	ToolGraphs(ctx context.Context, id tool.ID, r timeline.Range) (timeline.Graphs, error)
	BudgetReport(ctx context.Context) (budgets.Report, error)
}

// Catalogue is what the upstreams offer, and how models find it.
type Catalogue interface {
	Upstreams() []catalog.Upstream
	Tools() []tool.Tool
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	ToolView(ctx context.Context, id tool.ID) (toolsearch.ToolView, error)
	CountTokens(text string) int
}

// Approvals are the approvals of the caller, or of all principals for an operator.
type Approvals interface {
	Approvals(ctx context.Context) ([]approvals.Approval, error)
	Answer(ctx context.Context, id string, answer approvals.Answer) (approvals.Approval, error)
}

// Review has the quarantined tool definitions.
type Review interface {
	HeldTools(ctx context.Context) ([]catalog.HeldTool, error)
	ReviewHeld(ctx context.Context, id tool.ID, r catalog.HeldReview) error
}

// Processes are the processes and connections of upstreams.
type Processes interface {
	// Restart ends the session of an upstream and starts a new one; it waits until that is connected.
	Restart(ctx context.Context, id string) error
}

// Renderers show results as a plugin does.
type Renderers interface {
	// Render returns nil if no plugin shows results of the tool.
	Render(ctx context.Context, id tool.ID, result string) (*plugin.Rendered, error)
}

// Options configure the pages; nil means all defaults.
type Options struct {
	// Version is the gateway's version; "" is "dev".
	Version string
	// Endpoint is where MCP clients reach the gateway.
	Endpoint Endpoint
	// Workflows is the workflow engine; without one its pages show an error.
	Workflows Workflows
	// Renderers show results; nil shows all as they are.
	Renderers Renderers
	// Connections are the logins at upstreams; nil for none.
	Connections Connections
	// Provider is the host name of the OpenID provider where people sign in; "" for none.
	Provider string
	// Cluster has the gateways that share the store, and the workers; without one there is no page about it.
	Cluster Cluster
	// Tasks are tasks in words; without them their pages show an error.
	Tasks Tasks
	// Environments returns a copy of the environments in the settings, by name; nil for none.
	Environments func() map[string]config.Environment
	// Completions and Drafts help to write programs; nil for a text field only.
	Completions Completions
	Drafts      Drafts
	// Author saves programs as workflows; nil if there are none.
	Author Author
	// Policy returns the rules in force; nil for none.
	Policy func() policy.Settings
	// Editor edits the settings file; without one it cannot be edited.
	Editor Editor
	// Adder adds servers to the settings; without one none can be added.
	Adder Adder
	// Disabled returns the names of the upstreams that the settings turn off; nil for none.
	Disabled func() []string
	// Isolation returns how the settings isolate an upstream, nil for one that is not isolated; nil for none.
	Isolation func(id string) *config.Isolation
	// Rehearse decides again about the calls of the last day, by the policy in settings. It is set if there is an Editor.
	Rehearse func(ctx context.Context, cfg *config.Config) (rehearsal.Outcome, error)
	// Logger gets internal errors; nil discards them.
	Logger *slog.Logger
}

// maxForm is the maximum size of a form, in bytes, maxLargeForm the one of a form with a program or the arguments of a call.
const maxForm, maxLargeForm = 64 << 10, 1 << 20

// Dashboard serves the pages. It is safe for concurrent use.
type Dashboard struct {
	service   Service
	opts      Options
	log       *slog.Logger
	pages     []page
	templates *template.Template
	handler   http.Handler
	attempts  attempts
}

// New returns the handler of all pages and their static files.
func New(verbs Service, o *Options) *Dashboard {
	d := &Dashboard{service: verbs, templates: parse()}
	if o != nil {
		d.opts = *o
	}
	if d.opts.Version == "" {
		d.opts.Version = "dev"
	}
	if d.log = d.opts.Logger; d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.pages = d.table()
	mux := http.NewServeMux()
	for _, p := range d.pages {
		mux.HandleFunc(p.pattern(), func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, p) })
	}
	mux.Handle("GET /ui/static/", http.HandlerFunc(serveStatic))
	mux.HandleFunc("GET "+connections.CallbackPath, serveCallback)
	mux.HandleFunc("/", d.notFound)
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(d.crossOrigin))
	d.handler = withHeaders(guard.Handler(mux))
	return d
}

// ServeHTTP implements [http.Handler].
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// contentPolicy is the content security policy: no inline or foreign scripts, styles and forms.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// withHeaders sets the security headers of every response.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
