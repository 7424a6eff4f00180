package catalog

import (
	"context"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/tool"
)

// UpstreamOffer is the current offer of one upstream, for clients.
type UpstreamOffer struct {
	ID          string
	Name        string // the key in the settings
	Description string
	// Offer has no held tools. The caller must not change what it holds.
	Offer tool.Offer
	State upstream.State
	// Unknown says that the offer is not known yet: it is not cached, and no attempt to connect has ended.
	Unknown bool
}

// Running reports whether the upstream is connected, so that a call starts nothing.
func (o UpstreamOffer) Running() bool { return o.State.Status == upstream.Ready }

// Offers returns the offer of every upstream that is not disabled, in the order
// of the settings. It does not wait; see Settle and Watch.
func (c *Catalog) Offers() []UpstreamOffer {
	members := c.roster.Load().members
	all := make([]UpstreamOffer, len(members))
	for i, m := range members {
		all[i] = m.upstreamOffer()
	}
	return all
}

// Watch calls f after each change of the upstreams or their offers, until stop is
// called. f must not block, nor call the gateway's Close or Reload. It is not called
// after stop has returned.
func (c *Catalog) Watch(f func()) (stop func()) { return c.watchers.Add(f) }

// Test connects to one upstream now, regardless of earlier failures, and returns the
// error. name is its id or its name in the settings. If the upstream answers for the first
// time, Test also waits until its tools are in the catalog, for at most maxIndexing.
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
	if err := m.session.Connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxIndexing)
	defer cancel()
	wrappers{c}.waitShown(ctx, id)
	return nil
}

// maxIndexing is how long Test waits until the tools of an upstream are indexed.
const maxIndexing = 30 * time.Second
