package catalog

import (
	"context"

	"sallyport/gateway/upstream"
	"sallyport/internal/tool"
)

// Offered is what one upstream offers to clients now.
type Offered struct {
	ID          string
	Name        string // the key in the settings
	Description string
	// Offer has only what may be called; the caller must not change what it holds.
	Offer tool.Offer
	State upstream.State
	// Unknown says that it is not known yet what it offers: it has not been tried, and is not in the cache.
	Unknown bool
}

// Running reports whether the upstream is connected, so that a call starts nothing.
func (o Offered) Running() bool { return o.State.Status == upstream.Ready }

// Offers returns what every upstream that is not disabled offers, in the order
// of the settings. It does not wait; see Settle and Watch.
func (c *Catalog) Offers() []Offered {
	members := c.roster.Load().members
	all := make([]Offered, len(members))
	for i, m := range members {
		all[i] = m.offered()
	}
	return all
}

// Watch has f called after each change of what the upstreams offer, or of which
// there are, until stop. f must not block, nor call the gateway's Close or Reload.
// When stop has returned, f is not called any more.
func (c *Catalog) Watch(f func()) (stop func()) { return c.watchers.Add(f) }

// Test connects to one upstream now, whatever went before, and tells how that
// went. It is found by its id or by its name in the settings.
func (c *Catalog) Test(ctx context.Context, name string) error {
	id, err := c.UpstreamID(name)
	if err != nil {
		return err
	}
	m, err := c.Member(id)
	if err != nil {
		return err
	}
	m.session.Reset()
	return m.session.Connect(ctx)
}
