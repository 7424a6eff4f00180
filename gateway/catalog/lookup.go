package catalog

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/toolcall"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Member returns an upstream by its id.
func (c *Catalog) Member(id string) (*member, error) {
	if c.Closed() {
		return nil, toolcall.ClosedError()
	}
	r := c.roster.Load()
	if m, ok := r.byID[id]; ok {
		<-m.booted // which reads files only
		return m, nil
	}
	return nil, toolcall.Unknown("upstream", id, suggest.Of(id, r.ids()))
}

// Lookup returns a tool that may be called, without waiting for anything.
func (c *Catalog) Lookup(id tool.ID) (*Entry, bool) {
	m, err := c.Member(id.Upstream)
	if err != nil {
		return nil, false
	}
	e, ok := m.view.Load().entries[id.Name]
	return e, ok
}

// Find returns a tool to call, which a program must not if it is for interfaces only. The view of an earlier run may lack it,
// so Find connects an upstream that has not been connected in this run.
func (c *Catalog) Find(ctx context.Context, id tool.ID) (*Entry, error) {
	e, err := membership{c}.find(ctx, id)
	if err == nil && e.AppOnly && toolcall.ExecutionID(ctx) != "" {
		return nil, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("%s is for the upstream's user interface only", id)}
	}
	return e, err
}

func (c membership) find(ctx context.Context, id tool.ID) (*Entry, error) {
	m, err := c.Member(id.Upstream)
	if err != nil {
		return nil, err
	}
	fresh := m.fresh.Load() // before the lookup, or a list that arrives in between would be missed
	e, err := m.Find(id)
	if err != nil && fresh && m.isHeld(id) {
		e, err = c.recheckHeld(ctx, m, id)
	}
	if err == nil || fresh {
		return e, err
	}
	if m, err = c.ensureConnected(ctx, id.Upstream); err != nil {
		return nil, err
	}
	return m.Find(id)
}

// ensureConnected returns an upstream by its id that has been connected in this run.
func (c membership) ensureConnected(ctx context.Context, id string) (*member, error) {
	for {
		m, err := c.Member(id)
		if err != nil || m.fresh.Load() {
			return m, err
		}
		if !m.calls.begin() {
			continue // the settings have just replaced it
		}
		err = m.session.Connect(ctx)
		m.calls.end()
		return m, err
	}
}

// isHeld reports whether a tool is quarantined.
func (m *member) isHeld(id tool.ID) bool {
	_, held := m.view.Load().held[id.Name]
	return held
}

// recheckHeld checks whether a quarantined tool has been approved, or has its pinned definition again.
func (c membership) recheckHeld(ctx context.Context, m *member, id tool.ID) (*Entry, error) {
	if c.reevaluate(m) {
		c.markStale(m)
	}
	if !m.isHeld(id) {
		return m.Find(id)
	}
	if m.calls.begin() {
		_ = m.session.Refresh(ctx) // after an error the tool stays quarantined
		m.calls.end()
	}
	return m.Find(id)
}

// Connect connects an upstream, if it is not connected.
func (c *Catalog) Connect(ctx context.Context, id string) error {
	for {
		m, err := c.Member(id)
		if err != nil {
			return err
		}
		if m.calls.begin() {
			defer m.calls.end()
			return m.session.Connect(ctx)
		}
		// The settings have just replaced it.
	}
}

func (m *member) Find(id tool.ID) (*Entry, error) {
	v := m.view.Load()
	if e, ok := v.entries[id.Name]; ok {
		return e, nil
	}
	if h, ok := v.held[id.Name]; ok {
		return nil, quarantinedError(id, m.cfg.Load().Name, h)
	}
	near := suggest.Of(id.Name, v.names())
	if near != "" {
		near = tool.ID{Upstream: id.Upstream, Name: near}.String()
	}
	return nil, toolcall.Unknown("tool", id.String(), near)
}

// Dispatch is the last handler of a call: it passes the call to the upstream's session.
func (c *Catalog) Dispatch(ctx context.Context, call tool.Call) (tool.Result, error) {
	for {
		m, err := c.Member(call.Tool.Upstream)
		if err != nil {
			return tool.Result{}, err
		}
		if !m.calls.begin() {
			continue // the settings have just replaced it, or it closes
		}
		if m.inProcess == nil {
			return m.call(ctx, call)
		}
		done, err := toolcall.Yield(ctx)
		if err != nil {
			m.calls.end()
			return tool.Result{}, err
		}
		defer done()
		return m.call(ctx, call)
	}
}

// Current returns a tool to call, without connecting its upstream.
func (c *Catalog) Current(id tool.ID) (*Entry, error) {
	m, err := c.Member(id.Upstream)
	if err != nil {
		return nil, err
	}
	return m.Find(id)
}

// Has reports whether there is an upstream with the id.
func (c *Catalog) Has(id string) bool { return c.roster.Load().byID[id] != nil }

// IDs returns the ids of all upstreams, in the order of the settings.
func (c *Catalog) IDs() []string { return c.roster.Load().ids() }

// UpstreamID finds an upstream by its id or by its name in the settings. The error is *tool.Error, with a similar id as hint.
func (c *Catalog) UpstreamID(name string) (string, error) { return FindID(name, c.IDs()) }

// FindID is [Catalog.UpstreamID] among some ids.
func FindID(name string, ids []string) (string, error) {
	for _, id := range []string{name, tool.Identifier(name)} {
		if name == "" || slices.Contains(ids, id) {
			return id, nil
		}
	}
	if i := slices.IndexFunc(ids, func(id string) bool { return strings.EqualFold(id, tool.Identifier(name)) }); i >= 0 {
		return ids[i], nil
	}
	err := toolcall.Unknown("upstream", name, suggest.Of(name, ids))
	if suggest.Of(name, ids) == "" {
		err.Hint = sanitize.Line("there are: "+strings.Join(ids, ", "), 400)
	}
	return "", err
}

// OffersText says how programs reach the resources and prompts of an upstream, "" if it has none.
func (c *Catalog) OffersText(upstream string, lang codegen.Language) string {
	m, err := c.Member(upstream)
	if err != nil {
		return ""
	}
	return m.offersText(lang)
}

// Rank ranks the tools by a query.
func (c *Catalog) Rank(ctx context.Context, q index.Query) (index.Results, error) {
	return c.index.Search(ctx, q)
}

// Weigh returns the weight of each word of a query: the rarer among the tools, the higher.
func (c *Catalog) Weigh(ctx context.Context, query string) map[string]float64 {
	return c.index.Weigh(ctx, query)
}

// RankOffers ranks resources, templates and prompts by a query.
func (c *Catalog) RankOffers(ctx context.Context, q index.Query) (index.Results, error) {
	return c.offerIndex.Search(ctx, q)
}

// Hold returns why a tool is quarantined, and whether it is.
func (c *Catalog) Hold(id tool.ID) (why Hold, ok bool) {
	m, err := c.Member(id.Upstream)
	if err != nil {
		return Hold{}, false
	}
	h, ok := m.view.Load().held[id.Name]
	return newHold(h), ok
}

// QuarantinedTools returns all tools that are quarantined, with the reason.
func (c *Catalog) QuarantinedTools() iter.Seq2[tool.ID, Hold] {
	return func(yield func(tool.ID, Hold) bool) {
		for _, m := range c.roster.Load().members {
			held := m.view.Load().held
			for _, name := range slices.Sorted(maps.Keys(held)) {
				if !yield(tool.ID{Upstream: m.id, Name: name}, newHold(held[name])) {
					return
				}
			}
		}
	}
}

// Digest returns the digest of a tool's definition, "" for one that is not known.
func (c *Catalog) Digest(id tool.ID) string {
	if e, known := c.Lookup(id); known {
		return e.Digest()
	}
	return ""
}

// Tool returns a tool as it is known now, without a connection to its upstream.
func (c *Catalog) Tool(id tool.ID) (tool.Tool, bool) {
	e, ok := c.Lookup(id)
	if !ok {
		return tool.Tool{}, false
	}
	return e.Tool, true
}

// AllDenied reports whether there are tools and all are denied.
func AllDenied(tools []tool.Tool, denied func(tool.ID) bool) bool {
	return len(tools) > 0 && !slices.ContainsFunc(tools, func(t tool.Tool) bool { return !denied(t.ID) })
}
