// Package confine decides which tools exist for a caller at an endpoint of the settings. The name of the endpoint is a part
// of the caller ([tool.Endpoint]), so whatever works on behalf of the caller is confined to the same tools: programs,
// workflow runs, tasks, and what resumes them. A name that is not in the settings has no tools.
package confine

import (
	"context"
	"slices"
	"sync/atomic"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Endpoints are the endpoints of the settings in force. It is safe for concurrent use. Without Apply, there is none.
type Endpoints struct {
	all atomic.Pointer[map[string]*Subset]
}

// Apply puts the endpoints of settings into force.
func (e *Endpoints) Apply(cfg *config.Config) {
	all := make(map[string]*Subset, len(cfg.Endpoints))
	for name, one := range cfg.Endpoints {
		all[name] = &Subset{globs: policy.NewGlobs(one.Tools), settings: one}
	}
	e.all.Store(&all)
}

// Named returns an endpoint, and whether the settings have it.
func (e *Endpoints) Named(name string) (*Subset, bool) {
	all := e.all.Load()
	if all == nil {
		return nil, false
	}
	one, ok := (*all)[name]
	return one, ok
}

// Of returns the tools that exist for the caller in ctx: nil for all.
func (e *Endpoints) Of(ctx context.Context) *Subset { return e.At(tool.Endpoint(ctx)) }

// At returns the tools of an endpoint by its name: nil for all, where the name is "".
func (e *Endpoints) At(name string) *Subset {
	if name == "" {
		return nil
	}
	if one, ok := e.Named(name); ok {
		return one
	}
	return &Subset{}
}

// Subset is a set of tools. A nil one has all.
type Subset struct {
	globs    policy.Globs
	settings config.Endpoint
	last     atomic.Pointer[part]
}

// Mode returns the mode in the settings, "" for none.
func (s *Subset) Mode() config.Mode { return s.settings.Mode }

// Permits reports whether a principal with these groups may use the endpoint.
func (s *Subset) Permits(principal string, groups []string) bool {
	who := s.settings
	if who.Principals == nil && who.Groups == nil {
		return true
	}
	named := func(name string) bool { return tool.IsPrincipal(name, principal) }
	return slices.ContainsFunc(who.Principals, named) || principal != "" && slices.ContainsFunc(who.Groups, func(group string) bool { return slices.Contains(groups, group) })
}

// Has reports whether a tool is in the set. The functions of the gateway itself always are.
func (s *Subset) Has(id tool.ID) bool {
	return s == nil || id.Upstream == toolcall.GatewayID || s.globs.Match(id)
}

// MayHave reports whether a tool of an upstream can be in the set, whatever its name.
func (s *Subset) MayHave(upstream string) bool { return s == nil || s.globs.MayMatch(upstream) }

// Part returns the part of a snapshot that is in the set.
func (s *Subset) Part(all *catalog.Snapshot) *catalog.Part {
	if last := s.last.Load(); last != nil && last.of == all {
		return last.part
	}
	next := &part{all, all.Part(s.Has)}
	s.last.Store(next)
	return next.part
}

// part is the part of the latest snapshot.
type part struct {
	of   *catalog.Snapshot
	part *catalog.Part
}

// Offers returns the offers of the upstreams with a tool in the set, with these tools only. An upstream with an unknown offer
// stays if it may have one.
func (s *Subset) Offers(all []catalog.UpstreamOffer) []catalog.UpstreamOffer {
	if s == nil {
		return all
	}
	kept := make([]catalog.UpstreamOffer, 0, len(all))
	for _, up := range all {
		tools := slices.DeleteFunc(slices.Clone(up.Offer.Tools), func(t tool.Tool) bool { return !s.Has(t.ID) })
		if len(tools) > 0 || up.Unknown && s.MayHave(up.ID) {
			up.Offer.Tools = tools
			kept = append(kept, up)
		}
	}
	return kept
}

// Catalog has the tools that are known. *[catalog.Catalog] implements it.
type Catalog interface {
	Lookup(id tool.ID) (*catalog.Entry, bool)
	Snapshot() *catalog.Snapshot
}

// Middleware refuses calls of tools that do not exist for the caller, in the same words as calls of
// unknown tools. A method of an upstream needs a tool of the upstream.
func (e *Endpoints) Middleware(known Catalog) toolcall.Middleware {
	return func(next toolcall.Handler) toolcall.Handler {
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			s := e.Of(ctx)
			if s == nil {
				return next(ctx, c)
			}
			if !s.mayCall(c.Tool, known.Snapshot()) {
				return tool.Result{}, Unknown(c.Tool, s.Part(known.Snapshot()))
			}
			result, err := next(ctx, c)
			if err == nil || tool.AsError(err).Kind != tool.NotFound || c.Tool.Method() != "tools/call" {
				return result, err
			}
			if _, exists := known.Lookup(c.Tool); !exists {
				err = Unknown(c.Tool, s.Part(known.Snapshot())) // its hint may name a tool that is not in the set
			}
			return result, err
		}
	}
}

func (s *Subset) mayCall(id tool.ID, all *catalog.Snapshot) bool {
	if id.Method() == "tools/call" {
		return s.Has(id)
	}
	return s.globs.MayMatch(id.Upstream) && slices.Contains(s.Part(all).IDs(), id.Upstream)
}

// Unknown returns the error for a tool that is not in a part, or its upstream. It suggests what is in the part.
func Unknown(id tool.ID, p *catalog.Part) error {
	if !slices.Contains(p.IDs(), id.Upstream) {
		return toolcall.Unknown("upstream", id.Upstream, suggest.Of(id.Upstream, p.IDs()))
	}
	var names []string
	for _, t := range p.Tools {
		if t.ID.Upstream == id.Upstream {
			names = append(names, t.ID.Name)
		}
	}
	near := suggest.Of(id.Name, names)
	if near != "" {
		near = id.Upstream + "." + near
	}
	return toolcall.Unknown("tool", id.String(), near)
}
