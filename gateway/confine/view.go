package confine

import (
	"context"
	"iter"

	"sallyport/gateway/catalog"
	"sallyport/internal/tool"
)

// Upstreams has the upstreams of all endpoints. *[catalog.Catalog] implements it.
type Upstreams interface {
	Offers() []catalog.UpstreamOffer
	Upstreams() []catalog.Upstream
	QuarantinedTools() iter.Seq2[tool.ID, catalog.Hold]
}

// Policy decides which tools a caller may never call.
type Policy interface {
	AlwaysDenied(ctx context.Context, id tool.ID) bool
	// Restricts reports whether there may be such a tool.
	Restricts() bool
}

// View is what callers at endpoints see of the upstreams. It is safe for concurrent use.
type View struct {
	Endpoints *Endpoints
	Catalog   Upstreams
	Policy    Policy
	// Groups returns the groups of a principal, and whether they are known.
	Groups func(principal string) ([]string, bool)
}

// Admits reports whether the caller in ctx may use an endpoint of the settings in force.
func (v *View) Admits(ctx context.Context, endpoint string) bool {
	one, ok := v.Endpoints.Named(endpoint)
	if !ok {
		return false
	}
	groups, _ := v.Groups(tool.Principal(ctx)) // unknown ones are none
	return one.Permits(tool.Principal(ctx), groups)
}

// Offers returns what the upstreams offer at an endpoint.
func (v *View) Offers(endpoint string) []catalog.UpstreamOffer {
	return v.Endpoints.At(endpoint).Offers(v.Catalog.Offers())
}

// Upstreams returns the state of the upstreams at an endpoint.
func (v *View) Upstreams(endpoint string) []catalog.Upstream {
	return v.upstreams(v.Endpoints.At(endpoint), nil)
}

// Visible returns the state of the upstreams that the caller in ctx sees: those with a tool that exists at its endpoint and
// that policy does not always deny. An upstream without known tools counts as one with tools, unless its endpoint has none of it.
func (v *View) Visible(ctx context.Context) []catalog.Upstream {
	return v.upstreams(v.Endpoints.Of(ctx), func(id tool.ID) bool { return v.Policy.AlwaysDenied(ctx, id) })
}

// upstreams returns the state of the upstreams with tools in a set, without those of which all tools are denied.
func (v *View) upstreams(only *Subset, denied func(tool.ID) bool) []catalog.Upstream {
	if only == nil && (denied == nil || !v.Policy.Restricts()) {
		return v.Catalog.Upstreams()
	}
	offers := map[string]catalog.UpstreamOffer{}
	for _, up := range only.Offers(v.Catalog.Offers()) {
		offers[up.ID] = up
	}
	var seen []catalog.Upstream
	for _, up := range v.Catalog.Upstreams() {
		of, ok := offers[up.ID]
		if !ok || denied != nil && catalog.AllDenied(of.Offer.Tools, denied) {
			continue
		}
		if only != nil {
			up.State.Tools, up.Held = len(of.Offer.Tools), v.held(only, up.ID)
		}
		seen = append(seen, up)
	}
	return seen
}

// held returns how many tools of an upstream in a set wait for a review.
func (v *View) held(only *Subset, upstream string) (n int) {
	for id, hold := range v.Catalog.QuarantinedTools() {
		if id.Upstream == upstream && hold.Rejected == "" && only.Has(id) {
			n++
		}
	}
	return n
}
