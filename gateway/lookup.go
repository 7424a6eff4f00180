package gateway

import (
	"context"

	"sallyport/gateway/toolcall"
	"sallyport/internal/nearest"
	"sallyport/internal/tool"
)

// member returns an upstream by its id.
func (c *catalog) member(id string) (*member, error) {
	if c.over() {
		return nil, toolcall.ClosedError()
	}
	r := c.roster.Load()
	if m, ok := r.byID[id]; ok {
		<-m.booted // which reads files only
		return m, nil
	}
	return nil, toolcall.Unknown("upstream", id, nearest.Of(id, r.ids()))
}

// known returns a tool that may be called, without waiting for anything.
func (c *catalog) known(id tool.ID) (*entry, bool) {
	m, err := c.member(id.Upstream)
	if err != nil {
		return nil, false
	}
	e, ok := m.view.Load().entries[id.Name]
	return e, ok
}

// find returns a tool to call. What is not there in the view of an earlier run
// may be there now, so it connects an upstream that has not been connected.
func (c *catalog) find(ctx context.Context, id tool.ID) (*member, *entry, error) {
	m, err := c.member(id.Upstream)
	if err != nil {
		return nil, nil, err
	}
	fresh := m.fresh.Load() // before the look, or a list that comes between would be missed
	e, err := m.find(id)
	if err != nil && fresh && m.holds(id) {
		e, err = c.restored(ctx, m, id)
	}
	if err == nil || fresh {
		return m, e, err
	}
	if m, err = c.wake(ctx, id.Upstream); err != nil {
		return nil, nil, err
	}
	e, err = m.find(id)
	return m, e, err
}

// wake returns an upstream by its id that has been connected in this run.
func (c *catalog) wake(ctx context.Context, id string) (*member, error) {
	for {
		m, err := c.member(id)
		if err != nil || m.fresh.Load() {
			return m, err
		}
		if !m.calls.begin() {
			continue // the settings have just put another in its place
		}
		err = m.session.Connect(ctx)
		m.calls.end()
		return m, err
	}
}

// holds reports whether a tool is quarantined.
func (m *member) holds(id tool.ID) bool {
	_, held := m.view.Load().held[id.Name]
	return held
}

// restored looks whether a quarantined tool has been approved, or has again the definition of before.
func (c *catalog) restored(ctx context.Context, m *member, id tool.ID) (*entry, error) {
	if c.retake(m) {
		c.show(m)
	}
	if !m.holds(id) {
		return m.find(id)
	}
	if m.calls.begin() {
		_ = m.session.Refresh(ctx) // who cannot be asked has not restored anything
		m.calls.end()
	}
	return m.find(id)
}

// reach connects an upstream, if it is not.
func (c *catalog) reach(ctx context.Context, id string) error {
	for {
		m, err := c.member(id)
		if err != nil {
			return err
		}
		if m.calls.begin() {
			defer m.calls.end()
			return m.session.Connect(ctx)
		}
		// The settings have just put another in its place.
	}
}

func (m *member) find(id tool.ID) (*entry, error) {
	v := m.view.Load()
	if e, ok := v.entries[id.Name]; ok {
		return e, nil
	}
	if h, ok := v.held[id.Name]; ok {
		return nil, quarantined(id, m.cfg.Load().Name, h)
	}
	near := nearest.Of(id.Name, v.names())
	if near != "" {
		near = tool.ID{Upstream: id.Upstream, Name: near}.String()
	}
	return nil, toolcall.Unknown("tool", id.String(), near)
}
