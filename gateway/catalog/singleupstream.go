package catalog

import (
	"context"
	"slices"

	"sallyport/internal/tool"
)

// SingleUpstream is one upstream whose process runs at this gateway for all, as another gateway sees it: with held tools, and calls that the
// other one has checked.
type SingleUpstream struct {
	*Catalog

	id string
}

// NewSingleUpstream returns one upstream of a catalog.
func NewSingleUpstream(c *Catalog, id string) SingleUpstream { return SingleUpstream{c, id} }

// Start connects to the upstream, unless it is connected, and returns what it says about itself.
func (s SingleUpstream) Start(ctx context.Context) (tool.Server, error) {
	m, err := s.Member(s.id)
	if err != nil {
		return tool.Server{}, err
	}
	err = m.session.Connect(ctx)
	return m.view.Load().fullOffer.Server, err
}

// Offers returns the offer of the upstream.
func (s SingleUpstream) Offers() []UpstreamOffer {
	members := slices.Clone(s.roster.Load().members)
	members = slices.DeleteFunc(members, func(m *member) bool { return m.id != s.id })
	all := make([]UpstreamOffer, len(members))
	for i, m := range members {
		all[i] = m.upstreamOffer()
		all[i].Offer = m.view.Load().fullOffer
	}
	return all
}

// Call passes a call to the session. Only calls that another gateway has checked come here.
func (s SingleUpstream) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return s.Dispatch(ctx, call)
}

// AlwaysDenied returns false: the other gateway has the policy.
func (SingleUpstream) AlwaysDenied(context.Context, tool.ID) bool { return false }
