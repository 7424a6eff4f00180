package config

import (
	"fmt"
	"maps"
	"strings"

	"sallyport/internal/tool"

	"gopkg.in/yaml.v3"
)

// decoder walks the nodes of a file into a Config and collects what is wrong.
type decoder struct {
	src *source
	dir string
	// refs is lenient inside a disabled upstream, whose variables may be unset.
	refs *resolver
	// excused takes references without a value where they are no fault of the file; nil: they are.
	excused func(at path, n *yaml.Node, b badReference)
	faults  []fault
	// places says where a path stands in the file, bad which paths have a fault.
	places map[string]place
	bad    map[string]bool
}

type place struct{ key, value *yaml.Node }

// reader reads the value at a path.
type reader func(at path, n *yaml.Node)

// key is one key that a mapping may have.
type key struct {
	name string
	read reader
}

func (d *decoder) config(n *yaml.Node, c *Config) {
	d.envFile(n, c)
	seen := d.fields(path{}, n, []key{
		{"env_file", func(path, *yaml.Node) {}}, // read already
		{"upstreams", func(at path, n *yaml.Node) { d.upstreams(at, n, c) }},
		{"sandbox", func(at path, n *yaml.Node) { d.sandbox(at, n, &c.Sandbox) }},
		{"workspaces", func(at path, n *yaml.Node) { d.workspaces(at, n, c) }},
		{"environments", func(at path, n *yaml.Node) { d.environments(at, n, c) }},
		{"trust", d.oneOf((*string)(&c.Trust), trusts...)},
		{"observe", scalar(d, &c.Observe, parseBool)},
		{"search", func(at path, n *yaml.Node) { d.search(at, n, &c.Search) }},
		{"skills", func(at path, n *yaml.Node) { d.skills(at, n, &c.Skills) }},
		{"journal", func(at path, n *yaml.Node) { d.journal(at, n, &c.Journal) }},
		{"approval", func(at path, n *yaml.Node) { d.approval(at, n, &c.Approval) }},
		{"http", func(at path, n *yaml.Node) { d.http(at, n, &c.HTTP) }},
		{"privacy", func(at path, n *yaml.Node) { d.privacy(at, n, &c.Privacy) }},
		{"policy", func(at path, n *yaml.Node) { d.policy(at, n, &c.Policy) }},
		{"audit", func(at path, n *yaml.Node) { d.audit(at, n, &c.Audit) }},
		{"profiles", d.profiles(&c.Profiles)},
	})
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Trust == "" {
			u.Trust = c.Trust
		}
	}
	if n.Kind == yaml.MappingNode && !seen["upstreams"] && !d.bad[path{}.unknown().key()] {
		d.fail(path{}, n, `the key "upstreams" is missing`)
	}
}

func (d *decoder) upstreams(at path, n *yaml.Node, c *Config) {
	d.each(at, n, func(at path, key, value *yaml.Node) {
		u := defaultUpstream(d.dir)
		u.Name, u.ID = key.Value, tool.Identifier(key.Value)
		d.upstream(at, value, &u)
		c.Upstreams = append(c.Upstreams, u)
	})
}

func (d *decoder) upstream(at path, n *yaml.Node, u *Upstream) {
	d.refs.lenient, d.refs.owner = disabled(n), u.ID
	d.excused = func(_ path, _ *yaml.Node, b badReference) { u.Problem = withProblem(u.Problem, b.message) }
	defer func() { d.refs.lenient, d.refs.owner, d.excused = false, "", nil }()
	seen := d.fields(at, n, []key{
		{"description", d.text(&u.Description)},
		{"command", d.text(&u.Command)},
		{"args", d.texts(&u.Args)},
		{"env", d.secrets(&u.Env)},
		{"cwd", d.path(&u.Dir)},
		{"url", d.text(&u.URL)},
		{"headers", d.secrets(&u.Headers)},
		{"socket", d.path(&u.Socket)},
		{"transport", d.oneOf(&u.Transport, transports...)},
		{"auth", func(at path, n *yaml.Node) { d.auth(at, n, &u.Auth) }},
		{"include", d.texts(&u.Include)},
		{"exclude", d.texts(&u.Exclude)},
		{"rename", d.secrets((*Secrets)(&u.Rename))},
		{"trust", d.oneOf((*string)(&u.Trust), trusts...)},
		{"privacy", d.oneOf((*string)(&u.Privacy), privacyModes...)},
		{"labels", d.texts(&u.Labels)},
		{"tool_labels", func(at path, n *yaml.Node) { d.toolLabels(at, n, u) }},
		{"timeout", scalar(d, &u.Timeout, parseDuration)},
		{"concurrency", scalar(d, &u.Concurrency, parseCount)},
		{"max_message", scalar(d, &u.MaxMessage, parseSize)},
		{"eager", scalar(d, &u.Eager, parseBool)},
		{"idle", scalar(d, &u.Idle, parseDuration)},
		{"disabled", scalar(d, &u.Disabled, parseBool)},
	})
	if seen["url"] && !seen["cwd"] {
		u.Dir = ""
	}
}

func (d *decoder) auth(at path, n *yaml.Node, a *Auth) {
	d.fields(at, n, []key{
		{"type", d.oneOf(&a.Type, authTypes...)},
		{"client_id", d.text(&a.ClientID)},
		{"client_secret", d.text((*string)(&a.ClientSecret))},
		{"issuer", d.text(&a.Issuer)},
		{"client_metadata", d.text(&a.ClientMetadata)},
		{"scopes", d.texts(&a.Scopes)},
		{"redirect_port", scalar(d, &a.RedirectPort, parseCount)},
		{"store", d.oneOf(&a.Store, stores...)},
	})
}

func (d *decoder) search(at path, n *yaml.Node, s *Search) {
	d.fields(at, n, []key{
		{"learn", scalar(d, &s.Learn, parseBool)},
		{"embeddings", func(at path, n *yaml.Node) { s.Embeddings = defaultEmbeddings(); d.embeddings(at, n, s.Embeddings) }},
	})
}

func (d *decoder) skills(at path, n *yaml.Node, s *Skills) {
	scope := "private"
	d.fields(at, n, []key{
		{"scope", d.oneOf(&scope, "private", "shared")},
		{"review", scalar(d, &s.Review, parseBool)},
	})
	s.Shared = scope == "shared"
}

func (d *decoder) embeddings(at path, n *yaml.Node, e *Embeddings) {
	d.excused = func(_ path, _ *yaml.Node, b badReference) { e.Problem = withProblem(e.Problem, b.message) }
	defer func() { d.excused = nil }()
	d.fields(at, n, []key{
		{"url", d.text(&e.URL)},
		{"model", d.text(&e.Model)},
		{"headers", d.secrets(&e.Headers)},
		{"timeout", scalar(d, &e.Timeout, parseDuration)},
	})
}

func (d *decoder) http(at path, n *yaml.Node, h *HTTP) {
	var faults []fault
	d.excused = func(at path, n *yaml.Node, b badReference) {
		if len(faults) < maxFaults {
			line, column := d.where(n, b)
			faults = append(faults, fault{line, column, b.text(at.owner())})
		}
	}
	defer func() {
		d.excused = nil
		maps.DeleteFunc(h.Tokens, func(name, _ string) bool { return d.bad[at.to("tokens").to(name).key()] })
		if err := d.src.errors(faults); err != nil {
			h.Problem = err.Error()
		}
	}()
	d.fields(at, n, []key{
		{"tokens", d.secrets(&h.Tokens)},
		{"operators", d.texts(&h.Operators)},
		{"origins", d.texts(&h.Origins)},
		{"hosts", d.texts(&h.Hosts)},
		{"body", scalar(d, &h.Body, parseSize)},
		{"grace", scalar(d, &h.Grace, parseDuration)},
		{"oauth", func(at path, n *yaml.Node) { h.OAuth = &ResourceServer{}; d.resourceServer(at, n, h.OAuth) }},
	})
}

func (d *decoder) resourceServer(at path, n *yaml.Node, r *ResourceServer) {
	d.fields(at, n, []key{
		{"issuer", d.text(&r.Issuer)},
		{"audience", d.text(&r.Audience)},
		{"scopes", d.texts(&r.Scopes)},
	})
}

// disabled looks ahead, for the key may stand below what it is about.
func disabled(n *yaml.Node) bool {
	value := valueOf(n, "disabled")
	if value == nil {
		return false
	}
	on, err := parseBool(value)
	return err == "" && on
}

// maxProblem is how much of what is wrong with one upstream is said, in bytes.
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

func (d *decoder) fail(at path, n *yaml.Node, format string, args ...any) {
	d.failAt(at, n.Line, n.Column, fmt.Sprintf(format, args...))
}

func (d *decoder) failAt(at path, line, column int, message string) {
	d.bad[at.key()] = true
	d.faults = append(d.faults, fault{line, column, message})
}

// full says that looking for more is not worth the time.
func (d *decoder) full() bool { return len(d.faults) >= maxFaults }

// report gives problems their place in the file. A problem that is only there
// because of a fault that is known already is left out.
func (d *decoder) report(problems []problem) {
	for _, p := range problems {
		if d.bad[p.at.key()] || d.anyBad(p.needs) {
			continue
		}
		f := fault{message: p.message}
		where, ok := d.places[p.at.key()]
		if !ok && p.or != nil {
			where, ok = d.places[p.or.key()]
		}
		if ok && p.onKey {
			f.line, f.column = where.key.Line, where.key.Column
		} else if ok {
			f.line, f.column = where.value.Line, where.value.Column
			if p.inside != nil {
				f.line, f.column = d.src.inside(where.value, p.inside.Offset)
			}
		}
		d.faults = append(d.faults, f)
	}
}

func (d *decoder) anyBad(paths []path) bool {
	for _, p := range paths {
		if d.bad[p.key()] {
			return true
		}
	}
	return false
}
