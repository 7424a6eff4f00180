package gateway

import (
	"context"

	"sallyport/internal/tool"
)

// definitions gives a guard the definitions of the catalog.
type definitions struct{ catalog *catalog }

// Known implements [Catalog].
func (d definitions) Known(id tool.ID) (*tool.Tool, bool) {
	e, ok := d.catalog.known(id)
	if !ok {
		return nil, false
	}
	return &e.Tool, true
}

// Reach implements [Catalog].
func (d definitions) Reach(ctx context.Context, upstream string) error {
	return d.catalog.reach(ctx, upstream)
}

// Find implements [Catalog].
func (d definitions) Find(ctx context.Context, id tool.ID) (*tool.Tool, error) {
	_, e, err := d.catalog.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return &e.Tool, nil
}

// Current implements [Catalog].
func (d definitions) Current(id tool.ID) (*tool.Tool, error) {
	m, err := d.catalog.member(id.Upstream)
	if err != nil {
		return nil, err
	}
	e, err := m.find(id)
	if err != nil {
		return nil, err
	}
	return &e.Tool, nil
}
