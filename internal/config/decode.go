package config

import (
	"maps"
	"strings"
	"sync"

	"sallyport/internal/reference"
	"sallyport/internal/tokenexchange"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// decoder decodes the nodes of a file into a Config and collects errors.
type decoder struct {
	*yamlstrict.Decoder
	dir string
	// refs is lenient inside a disabled upstream: its variables may be unset.
	refs *reference.Resolver
	// onMissing is called for references without a value; nil makes them errors of the file.
	onMissing func(at path, n *yaml.Node, b reference.Fault)
	warnings  []yamlstrict.Fault
	managed   []ManagedSecret
}

func (d *decoder) config(n *yaml.Node, c *Config) {
	d.Advice = advice()
	readEnvFile(d, n, c)
	seen := d.Fields(path{}, managersFirst(d, n), []key{
		{"env_file", func(path, *yaml.Node) {}}, // read already
		{"secret_managers", func(at path, n *yaml.Node) { managerDecoder{d}.managers(at, n, &c.SecretManagers) }},
		{"upstreams", func(at path, n *yaml.Node) { d.upstreams(at, n, c) }},
		{"sandbox", func(at path, n *yaml.Node) { d.sandbox(at, n, &c.Sandbox) }},
		{"workspaces", func(at path, n *yaml.Node) { d.workspaces(at, n, c) }},
		{"environments", func(at path, n *yaml.Node) { d.environments(at, n, c) }},
		{"trust", d.OneOf((*string)(&c.Trust), trusts...)},
		{"observe", scalar(d, &c.Observe, yamlstrict.Bool)},
		{"search", func(at path, n *yaml.Node) { d.search(at, n, &c.Search) }},
		{"registry", d.Text(&c.Registry)},
		{"models", func(at path, n *yaml.Node) { d.models(at, n, c) }},
		{"tasks", func(at path, n *yaml.Node) { d.tasks(at, n, &c.Tasks) }},
		{"plugins", func(at path, n *yaml.Node) { pluginDecoder{d}.plugins(at, n, c) }},
		{"skills", func(at path, n *yaml.Node) { d.skills(at, n, &c.Skills) }},
		{"workflows", func(at path, n *yaml.Node) { d.workflows(at, n, &c.Workflows) }},
		{"journal", func(at path, n *yaml.Node) { d.journal(at, n, &c.Journal) }},
		{"records", func(at path, n *yaml.Node) { recordsDecoder{d}.records(at, n, &c.Records) }},
		{"approval", func(at path, n *yaml.Node) { d.approval(at, n, &c.Approval) }},
		{"store", func(at path, n *yaml.Node) { storeDecoder{d}.store(at, n, &c.Store) }},
		{"http", func(at path, n *yaml.Node) { d.http(at, n, &c.HTTP) }},
		{"privacy", func(at path, n *yaml.Node) { d.privacy(at, n, &c.Privacy) }},
		{"policy", func(at path, n *yaml.Node) { policyDecoder{d}.policy(at, n, &c.Policy) }},
		{"budgets", func(at path, n *yaml.Node) { c.Budgets = yamlstrict.List(d.Decoder, at, n, budgetDecoder{d}.budget) }},
		{"alerts", func(at path, n *yaml.Node) { c.Alerts = yamlstrict.List(d.Decoder, at, n, alertDecoder{d}.alert) }},
		{"audit", func(at path, n *yaml.Node) { d.audit(at, n, &c.Audit) }},
		{"telemetry", func(at path, n *yaml.Node) { d.telemetry(at, n, &c.Telemetry) }},
		{"profiles", d.profiles(&c.Profiles)},
		{"mode", d.OneOf((*string)(&c.Mode), modes...)},
		{"clients", func(at path, n *yaml.Node) { c.Clients = yamlstrict.List(d.Decoder, at, n, clientDecoder{d}.mode) }},
		{"endpoints", func(at path, n *yaml.Node) { endpointDecoder{d}.endpoints(at, n, c) }},
		{"compat", d.OneOf(&c.Compat, compats...)},
	})
	c.nameEntries()
	c.addEgressBudgets()
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Trust == "" {
			u.Trust = c.Trust
		}
	}
	for _, f := range append(d.warnings, endpointDecoder{d}.warnings(c)...) {
		c.Warnings = append(c.Warnings, d.Source.Error(f))
	}
	if n.Kind == yaml.MappingNode && !seen["upstreams"] && !d.Bad(path{}.Unknown()) {
		d.Fail(path{}, n, `the key "upstreams" is missing`)
	}
}

func (d *decoder) upstreams(at path, n *yaml.Node, c *Config) {
	keys := sync.OnceValue(upstreamKeys)
	d.Each(at, n, func(at path, key, value *yaml.Node) {
		if misplaced(d.Decoder, at, key, value, keys) {
			return
		}
		u := defaultUpstream(d.dir)
		u.Name, u.ID = key.Value, tool.Identifier(key.Value)
		d.upstream(at, value, &u)
		c.Upstreams = append(c.Upstreams, u)
	})
}

func (d *decoder) upstream(at path, n *yaml.Node, u *Upstream) {
	d.refs.Lenient, d.refs.Owner = disabled(n), u.ID
	managed := len(d.managed)
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { u.Problem = withProblem(u.Problem, b.Problem()) }
	defer func() { d.refs.Lenient, d.refs.Owner, d.onMissing = false, "", nil }()
	// It gets the trace context (traceparent) of calls, also that of a client; default true.
	traced := true
	seen := d.Fields(at, n, []key{
		{"description", d.Text(&u.Description)},
		{"command", oneProgram(&u.Command, d)},
		{"args", d.Texts(&u.Args)},
		{"env", d.secrets(&u.Env)},
		{"cwd", d.path(&u.Dir)},
		{"isolate", func(at path, n *yaml.Node) {
			if u.Isolate = DefaultIsolation(); !d.isolation(at, n, u.Isolate) {
				u.Isolate = nil
			}
		}},
		{"url", d.Text(&u.URL)},
		{"headers", d.secrets(&u.Headers)},
		{"socket", d.path(&u.Socket)},
		{"transport", d.OneOf(&u.Transport, transports...)},
		{"tls", func(at path, n *yaml.Node) { tlsDecoder{d}.upstreamTLS(at, n, &u.TLS) }},
		{"auth", func(at path, n *yaml.Node) { d.auth(at, n, &u.Auth) }},
		{"openapi", d.Text(&u.OpenAPI)},
		{"graphql", d.Text(&u.GraphQL)},
		{"grpc", d.Text(&u.GRPC)},
		{"variables", d.secrets((*Secrets)(&u.Variables))},
		{"query", d.secrets(&u.Query)},
		{"basic", func(at path, n *yaml.Node) { d.basic(at, n, &u.Basic) }},
		{"tools", func(at path, n *yaml.Node) { toolDecoder{policyDecoder{d}}.tools(at, n, u) }},
		{"egress", func(at path, n *yaml.Node) { hostDecoder{d}.egress(at, n, u) }},
		{"include", d.Texts(&u.Include)},
		{"exclude", d.Texts(&u.Exclude)},
		{"rename", d.secrets((*Secrets)(&u.Rename))},
		{"trust", d.OneOf((*string)(&u.Trust), trusts...)},
		{"privacy", d.OneOf((*string)(&u.Privacy), privacyModes...)},
		{"labels", d.Texts(&u.Labels)},
		{"tool_labels", func(at path, n *yaml.Node) { policyDecoder{d}.toolLabels(at, n, &u.ToolLabels) }},
		{"trace_context", scalar(d, &traced, yamlstrict.Bool)},
		{"timeout", scalar(d, &u.Timeout, yamlstrict.Duration)},
		{"concurrency", scalar(d, &u.Concurrency, yamlstrict.Count)},
		{"max_message", scalar(d, &u.MaxMessage, parseSize)},
		{"instances", d.OneOf(&u.Instances, InstancesEach, InstancesOne)},
		{"eager", scalar(d, &u.Eager, yamlstrict.Bool)},
		{"idle", scalar(d, &u.Idle, yamlstrict.Duration)},
		{"disabled", scalar(d, &u.Disabled, yamlstrict.Bool)},
	})
	u.NoTraceContext, u.Managed = !traced, len(d.managed) > managed
	u.setDocument(d.dir)
	if len(u.Tools) > 0 && !seen["isolate"] {
		u.Isolate = DefaultIsolation()
	}
	if (seen["url"] || u.Egress != nil || u.Isolate != nil && u.Isolate.Image != "") && !seen["cwd"] {
		u.Dir = ""
	}
}

func (d *decoder) auth(at path, n *yaml.Node, a *Auth) {
	d.Fields(at, n, []key{
		{"type", d.OneOf(&a.Type, authTypes...)},
		{"client_id", d.Text(&a.ClientID)},
		{"client_secret", d.Text((*string)(&a.ClientSecret))},
		{"issuer", d.Text(&a.Issuer)},
		{"client_metadata", d.Text(&a.ClientMetadata)},
		{"scopes", d.Texts(&a.Scopes)},
		{"redirect_port", scalar(d, &a.RedirectPort, yamlstrict.Count)},
		{"store", d.OneOf(&a.Store, stores...)},
		{"header", d.Text(&a.Header)},
		{"per", d.OneOf(&a.Per, PerPrincipal)},
		{"exchange", func(at path, n *yaml.Node) {
			a.Exchange = tokenexchange.New()
			identityDecoder{policyDecoder{d}}.exchange(at, n, a.Exchange)
		}},
	})
}

func (d *decoder) search(at path, n *yaml.Node, s *Search) {
	d.Fields(at, n, []key{
		{"learn", scalar(d, &s.Learn, yamlstrict.Bool)},
		{"embeddings", func(at path, n *yaml.Node) { s.Embeddings = defaultEmbeddings(); d.embeddings(at, n, s.Embeddings) }},
	})
}

func (d *decoder) skills(at path, n *yaml.Node, s *Skills) {
	// Private skills are for the principal that saved them; with shared they can be offered to all. Default private.
	scope := "private"
	d.Fields(at, n, []key{
		{"scope", d.OneOf(&scope, "private", "shared")},
		{"review", scalar(d, &s.Review, yamlstrict.Bool)},
	})
	s.Shared = scope == "shared"
}

func (d *decoder) embeddings(at path, n *yaml.Node, e *Embeddings) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { e.Problem = withProblem(e.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"url", d.Text(&e.URL)},
		{"model", d.Text(&e.Model)},
		{"query_prefix", d.Text(&e.QueryPrefix)},
		{"document_prefix", d.Text(&e.DocumentPrefix)},
		{"headers", d.secrets(&e.Headers)},
		{"timeout", scalar(d, &e.Timeout, yamlstrict.Duration)},
	})
}

func (d *decoder) http(at path, n *yaml.Node, h *HTTP) {
	var faults []yamlstrict.Fault
	d.onMissing = func(at path, n *yaml.Node, b reference.Fault) {
		if len(faults) < yamlstrict.MaxFaults {
			line, column := positionOf(d, n, b)
			faults = append(faults, yamlstrict.Fault{Line: line, Column: column, Message: b.Text(owner(at))})
		}
	}
	defer func() {
		d.onMissing = nil
		maps.DeleteFunc(h.Tokens, func(name, _ string) bool { return d.Bad(at.To("tokens").To(name)) })
		if err := d.Source.Errors(faults); err != nil {
			h.Problem = err.Error()
		}
	}()
	d.Fields(at, n, []key{
		{"tokens", d.secrets(&h.Tokens)},
		{"operators", d.Texts(&h.Operators)},
		{"metrics", d.Texts(&h.Metrics)},
		{"url", d.Text(&h.URL)},
		{"origins", d.Texts(&h.Origins)},
		{"hosts", d.Texts(&h.Hosts)},
		{"body", scalar(d, &h.Body, parseSize)},
		{"grace", scalar(d, &h.Grace, yamlstrict.Duration)},
		{"require_token", scalar(d, &h.RequireToken, yamlstrict.Bool)},
		{"limits", func(at path, n *yaml.Node) {
			d.Fields(at, n, []key{
				{"requests", scalar(d, &h.Limits.Requests, parseRate)},
				{"executions", scalar(d, &h.Limits.Executions, parseRate)},
			})
		}},
		{"oauth", func(at path, n *yaml.Node) { h.OAuth = &ResourceServer{}; d.resourceServer(at, n, h.OAuth) }},
		{"login", func(at path, n *yaml.Node) {
			h.Login = defaultLogin()
			identityDecoder{policyDecoder{d}}.login(at, n, h.Login)
		}},
		{"identity", func(at path, n *yaml.Node) { identityDecoder{policyDecoder{d}}.identity(at, n, &h.Identity) }},
	})
}

func (d *decoder) resourceServer(at path, n *yaml.Node, r *ResourceServer) {
	d.Fields(at, n, []key{
		{"issuer", d.Text(&r.Issuer)},
		{"audience", d.Text(&r.Audience)},
		{"scopes", d.Texts(&r.Scopes)},
	})
}

// disabled reports whether an entry has disabled: true. It looks ahead, as the key may follow others.
func disabled(n *yaml.Node) bool {
	value := yamlstrict.ValueOf(n, "disabled")
	if value == nil {
		return false
	}
	on, err := yamlstrict.Bool(value)
	return err == "" && on
}

// maxProblem bounds the text of problems of one upstream, in bytes.
const maxProblem = 300

// withProblem adds one more problem to a text, once, unless it is long enough.
func withProblem(text, more string) string {
	switch {
	case text == "":
		return more
	case strings.Contains(text, more) || len(text) > maxProblem:
		return text
	}
	return text + "; " + more
}

// reportProblems adds problems with their positions in the file. It skips those that are
// consequences of errors that are already reported.
func reportProblems(d *decoder, problems []problem) {
	for _, p := range problems {
		if !d.Bad(p.at) && !d.Bad(p.needs...) {
			d.Add(faultOf(d, p))
		}
	}
}

func faultOf(d *decoder, p problem) yamlstrict.Fault {
	f := yamlstrict.Fault{Message: p.message}
	where, ok := d.Place(p.at)
	if !ok && p.fallback != nil {
		where, ok = d.Place(p.fallback)
	}
	switch {
	case ok && p.onKey:
		f.Line, f.Column = where.Key.Line, where.Key.Column
	case ok && p.inside != nil:
		f.Line, f.Column = d.Source.Inside(where.Value, p.inside.Offset)
	case ok:
		f.Line, f.Column = where.Value.Line, where.Value.Column
	}
	return f
}
