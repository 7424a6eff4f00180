package catalog

import (
	"context"
	"slices"

	"sallyport/internal/tool"
)

// Alone is one upstream whose process runs at this gateway for all, as another gateway sees it: with held tools, and calls that the
// other one has checked.
type Alone struct {
	*Catalog

	id string
}

// NewAlone returns an upstream of a catalog alone.
func NewAlone(c *Catalog, id string) Alone { return Alone{c, id} }

// Start connects to the upstream, unless it is connected, and returns what it says about itself.
func (a Alone) Start(ctx context.Context) (tool.Server, error) {
	m, err := a.Member(a.id)
	if err != nil {
		return tool.Server{}, err
	}
	err = m.session.Connect(ctx)
	return m.view.Load().fullOffer.Server, err
}

// Offers returns the offer of the upstream.
func (a Alone) Offers() []UpstreamOffer {
	members := slices.Clone(a.roster.Load().members)
	members = slices.DeleteFunc(members, func(m *member) bool { return m.id != a.id })
	all := make([]UpstreamOffer, len(members))
	for i, m := range members {
		all[i] = m.upstreamOffer()
		all[i].Offer = m.view.Load().fullOffer
	}
	return all
}

// Call passes a call to the session. Only calls that another gateway has checked come here.
func (a Alone) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return a.Dispatch(ctx, call)
}

// AlwaysDenied returns false: the other gateway has the policy.
func (Alone) AlwaysDenied(context.Context, tool.ID) bool { return false }
