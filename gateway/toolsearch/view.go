package toolsearch

import (
	"context"
	"iter"

	"sallyport/gateway/catalog"
	"sallyport/gateway/confine"
	"sallyport/index"
	"sallyport/internal/tool"
)

// view is the catalog as it exists for one caller. At an endpoint of the settings, it has the tools of the endpoint only.
type view struct {
	catalog *catalog.Catalog
	only    *confine.Subset // nil for all
	all     *catalog.Snapshot
	part    *catalog.Part // nil for all
}

// in returns the view of the caller in ctx.
func (sr *Searcher) in(ctx context.Context) view {
	v := view{catalog: sr.opts.Catalog, only: sr.opts.Endpoints.Of(ctx), all: sr.opts.Catalog.Snapshot()}
	if v.only != nil {
		v.part = v.only.Part(v.all)
	}
	return v
}

func (v view) snapshot() *catalog.Snapshot {
	if v.part != nil {
		return v.part.Snapshot
	}
	return v.all
}

// ids returns the ids of the upstreams, with those whose tools are not known yet.
func (v view) ids() (all []string) {
	if v.only == nil {
		return v.catalog.IDs()
	}
	for _, up := range v.only.Offers(v.catalog.Offers()) {
		all = append(all, up.ID)
	}
	return all
}

func (v view) upstreamID(name string) (string, error) { return catalog.FindID(name, v.ids()) }

func (v view) lookup(id tool.ID) (*catalog.Entry, bool) {
	if !v.only.Has(id) {
		return nil, false
	}
	return v.catalog.Lookup(id)
}

// find is [catalog.Catalog.Find]. An error suggests only tools that exist for the caller.
func (v view) find(ctx context.Context, id tool.ID) (*catalog.Entry, error) {
	if v.part == nil {
		return v.catalog.Find(ctx, id)
	}
	var err error
	if v.only.Has(id) {
		var e *catalog.Entry
		if e, err = v.catalog.Find(ctx, id); err == nil || tool.AsError(err).Kind != tool.NotFound {
			return e, err
		}
	}
	return nil, confine.Unknown(id, v.part)
}

func (v view) hold(id tool.ID) (why catalog.Hold, ok bool) {
	if !v.only.Has(id) {
		return catalog.Hold{}, false
	}
	return v.catalog.Hold(id)
}

func (v view) quarantined() iter.Seq2[tool.ID, catalog.Hold] {
	return func(yield func(tool.ID, catalog.Hold) bool) {
		for id, hold := range v.catalog.QuarantinedTools() {
			if v.only.Has(id) && !yield(id, hold) {
				return
			}
		}
	}
}

func (v view) rank(ctx context.Context, q index.Query) (index.Results, error) {
	if v.part != nil {
		return v.part.Rank(ctx, q)
	}
	return v.catalog.Rank(ctx, q)
}

func (v view) rankOffers(ctx context.Context, q index.Query) (index.Results, error) {
	if v.part != nil {
		return v.part.RankOffers(ctx, q)
	}
	return v.catalog.RankOffers(ctx, q)
}

// FindUpstream finds an upstream of the caller by its id or by its name in the settings. The error is *tool.Error.
func (sr *Searcher) FindUpstream(ctx context.Context, name string) (string, error) {
	return sr.in(ctx).upstreamID(name)
}
