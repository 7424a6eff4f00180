package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/compat"
	"sallyport/gateway/dashboard"
	"sallyport/gateway/execution"
	"sallyport/gateway/httpserver"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/mcpserver/session"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// httpListener is the listener of serve --http, with the tokens and sessions that it accepts.
type httpListener struct {
	callers

	listener net.Listener
	// directory has the groups of callers.
	directory *access.Directory
	// supervisor is the supervisor to notify, nil for none.
	supervisor *supervisor
}

// openListener listens at an address.
func (a *app) openListener(ctx context.Context, addr string, settings config.HTTP, who callers, log *slog.Logger) (*httpListener, error) {
	listener, err := httpserver.Listen(ctx, addr, settings, who.tokens)
	if err != nil {
		return nil, err
	}
	return &httpListener{listener: listener, callers: who, directory: access.NewDirectory(), supervisor: a.newSupervisor(log)}, nil
}

// close closes the listener, if it is open.
func (d *httpListener) close() {
	if d != nil {
		_ = d.listener.Close()
	}
}

// site returns the address by which people reach the pages, "" if there are none.
func (d *httpListener) site(settings config.HTTP) string {
	if d == nil {
		return ""
	}
	return cmp.Or(strings.TrimSuffix(settings.URL, "/"), httpserver.Site(d.listener))
}

// groups returns the groups of callers, nil without a listener.
func (d *httpListener) groups() *access.Directory {
	if d == nil {
		return nil
	}
	return d.directory
}

// people returns the tokens of people who sign in, nil without a listener.
func (d *httpListener) people() *access.Subjects {
	if d == nil {
		return nil
	}
	return d.subjects
}

// isReachable reports whether a browser can reach the listener.
func (d *httpListener) isReachable() bool { return d != nil && httpserver.Site(d.listener) != "" }

// options returns the options of a server of the API and the dashboard. mcp is where clients connect, if it serves MCP.
func (d *httpListener) options(s *service, settings config.HTTP, mcp dashboard.Endpoint) *httpserver.Options {
	pages := s.dashboardOptions(settings.Login)
	pages.Endpoint = mcp
	return &httpserver.Options{
		API: s.api, Dashboard: dashboard.New(s.rateLimitedService(""), pages), Settings: settings, Tokens: d.tokens, Sessions: d.sessions, Directory: d.directory, Subjects: d.subjects, Seal: d.seal, Site: d.site(settings),
		Telemetry: s.telemetry, Logger: s.log, Auditor: s.gateway.Auditor, Replies: s.gateway.Alerts,
	}
}

// endpoint returns where clients connect.
func (d *httpListener) endpoint(settings config.HTTP) dashboard.Endpoint {
	site := d.site(settings)
	if site == "" {
		return dashboard.Endpoint{}
	}
	login := settings.OAuth != nil
	return dashboard.Endpoint{URL: site + "/mcp", Login: login, Token: !login && httpserver.RequiresToken(d.listener, settings)}
}

// serve serves HTTP until ctx ends.
func (d *httpListener) serve(ctx context.Context, s *service) error {
	sessions, err := session.Open(s.records)
	if err != nil {
		return err
	}
	direct := s.direct("", s.modeNow)
	defer direct.Close()
	var tools *mcpserver.Tools // nil: --mode excludes code mode
	if s.servesCode() {
		tools = mcpserver.New(s.rateLimitedService(""), s.tools())
		defer tools.Close()
	}
	endpoints := &mcpserver.EndpointOptions{Tools: tools, Mode: s.modeNow, Subsets: subsets{s}, Body: s.cfg.HTTP.Body, Sessions: sessions, Logger: s.log}
	opts := d.options(s, s.cfg.HTTP, d.endpoint(s.cfg.HTTP))
	opts.MCP = mcpserver.NewEndpoints(direct, endpoints)
	if s.cfg.Compat == config.CompatHTTP {
		parts := cli.CompatGateway(s.gateway)
		parts.Programs = s.rateLimitedService("")
		opts.Compat = compat.NewWeb(parts, s.gateway.Service(), cli.BuildVersion())
	}
	if s.workflows != nil {
		opts.Hooks = s.workflows.hooks
	}
	s.log.Info("listening", "address", httpserver.Address(d.listener))
	s.logEndpoints(d.site(s.cfg.HTTP))
	defer d.supervisor.notify(ctx, s.api)()
	return httpserver.New(d.listener, opts).Serve(ctx)
}

// rateLimitedService returns the gateway, as an endpoint of the settings has it or for "" all, with a rate limit on programs, for
// callers over HTTP.
func (s *service) rateLimitedService(endpoint string) rateLimitedService {
	if s.executions == nil {
		s.executions = access.NewLimits(s.cfg.HTTP.Limits.Executions)
	}
	return rateLimitedService{s.gateway.Service().At(endpoint), s.executions}
}

type rateLimitedService struct {
	gateway.Service
	executions *access.Limits
}

// Execute runs a program unless the rate limit of its principal is exceeded.
func (r rateLimitedService) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	if !tool.Remote(ctx) {
		return r.Executor.Execute(ctx, p)
	}
	if s := r.executions.Take(tool.Principal(ctx), access.Rate{}); !s.OK {
		return execution.Result{}, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("more programs than %s", s.Rate), Retryable: true, After: s.RetryAfter,
			Hint: fmt.Sprintf("try again in %v; http.limits.executions sets the limit", s.RetryAfter)}
	}
	return r.Executor.Execute(ctx, p)
}

// dashboardOptions returns the options of the dashboard; login is the provider at which people sign in, nil for none.
func (s *service) dashboardOptions(login *config.Login) *dashboard.Options {
	opts := &dashboard.Options{Version: cli.BuildVersion(), Logger: s.log, Renderers: s.gateway.Plugins, Completions: s.gateway.Completer, Drafts: s.gateway.Drafts}
	opts.Environments = func() map[string]config.Environment {
		return maps.Clone(s.gateway.Reloader.Current().Load().Environments)
	}
	opts.Isolation = func(id string) *config.Isolation {
		all := s.gateway.Reloader.Current().Load().Upstreams
		if i := slices.IndexFunc(all, func(up config.Upstream) bool { return up.ID == id }); i >= 0 {
			return all[i].Isolate
		}
		return nil
	}
	if login != nil {
		if u, err := url.Parse(login.Issuer); err == nil {
			opts.Provider = u.Hostname()
		}
	}
	s.editSettings(opts)
	if s.workflows != nil {
		opts.Workflows = s.workflows.Engine
		opts.Author = s.workflows.Author(s.gateway, s.gateway.Reloader.Current().Load)
	}
	if s.cluster != nil {
		opts.Cluster = s.cluster
	}
	if s.tasks != nil {
		opts.Tasks = s.tasks
	}
	if s.gateway.Connections != nil {
		opts.Connections = s.gateway.Connections
	}
	return opts
}
