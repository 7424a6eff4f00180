package gateway

import (
	"context"

	"sallyport/gateway/catalog"
	"sallyport/gateway/confine"
	"sallyport/internal/tool"
)

// At returns the methods of the components as an endpoint of the settings has them: lists without a caller are those of the
// endpoint. "" is all.
func (s Service) At(endpoint string) Service {
	s.endpoint = endpoint
	return s
}

// Admits reports whether the caller in ctx may use an endpoint of the settings in force.
func (g *Gateway) Admits(ctx context.Context, endpoint string) bool {
	one, ok := g.Endpoints.Named(endpoint)
	if !ok {
		return false
	}
	groups, _ := g.opts.Directory.Groups(tool.Principal(ctx)) // unknown ones are none
	return one.Permits(tool.Principal(ctx), groups)
}

// Offers is [catalog.Catalog.Offers] of the endpoint.
func (s Service) Offers() []catalog.UpstreamOffer {
	return s.Gateway.Endpoints.At(s.endpoint).Offers(s.Catalog.Offers())
}

// Upstreams is [catalog.Catalog.Upstreams] of the endpoint.
func (s Service) Upstreams() []catalog.Upstream {
	return s.upstreamsIn(tool.WithEndpoint(context.Background(), s.endpoint), nil)
}

// Visible returns the state of the upstreams that the caller in ctx sees: those with a tool that exists at its endpoint and
// that policy does not always deny. An upstream without known tools counts as one with tools, unless its endpoint has none of it.
func (g *Gateway) Visible(ctx context.Context) []catalog.Upstream {
	return g.upstreamsIn(ctx, func(id tool.ID) bool { return g.Guard.AlwaysDenied(ctx, id) })
}

// upstreamsIn returns the state of the upstreams at the endpoint of ctx, without those of which all tools are denied.
func (g *Gateway) upstreamsIn(ctx context.Context, denied func(tool.ID) bool) []catalog.Upstream {
	only := g.Endpoints.Of(ctx)
	if only == nil && (denied == nil || !g.Guard.Restricts()) {
		return g.Catalog.Upstreams()
	}
	offers := map[string]catalog.UpstreamOffer{}
	for _, up := range only.Offers(g.Catalog.Offers()) {
		offers[up.ID] = up
	}
	var seen []catalog.Upstream
	for _, up := range g.Catalog.Upstreams() {
		of, ok := offers[up.ID]
		if !ok || denied != nil && catalog.AllDenied(of.Offer.Tools, denied) {
			continue
		}
		if only != nil {
			up.State.Tools, up.Held = len(of.Offer.Tools), g.heldIn(only, up.ID)
		}
		seen = append(seen, up)
	}
	return seen
}

// heldIn returns how many tools of an upstream wait for a review that an endpoint has.
func (g *Gateway) heldIn(only *confine.Subset, upstream string) (n int) {
	for id, hold := range g.Catalog.QuarantinedTools() {
		if id.Upstream == upstream && hold.Rejected == "" && only.Has(id) {
			n++
		}
	}
	return n
}
