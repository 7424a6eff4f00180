package catalog

import (
	"context"
	"slices"
	"sync"

	"sallyport/codegen"
	"sallyport/index"
	"sallyport/internal/tool"
)

// Part is a part of a snapshot: some tools, and what their upstreams have besides. It has indexes and wrappers of its own, so
// that no word, suggestion or export of the rest appears in it.
type Part struct {
	*Snapshot
	ids           []string // of the upstreams
	tools, offers func() (*index.Index, error)
}

// Part returns the part with the tools that has selects, and the upstreams of these tools. What costs time is made when it is
// first used.
func (s *Snapshot) Part(has func(tool.ID) bool) *Part {
	p := &Part{Snapshot: &Snapshot{roster: s.roster, Offers: map[DocumentKey]Document{}, boilerplate: s.boilerplate}}
	var ups []codegen.Upstream
	for _, a := range s.artifacts {
		up := a.up
		up.Tools = slices.DeleteFunc(slices.Clone(up.Tools), func(t tool.Tool) bool { return !has(t.ID) })
		if len(up.Tools) > 0 {
			ups, p.ids, p.Tools = append(ups, up), append(p.ids, up.ID), append(p.Tools, up.Tools...)
		}
	}
	sortTools(p.Tools)
	for _, d := range s.Docs {
		if has(d.ID) {
			p.Docs = append(p.Docs, d)
		}
	}
	var offers []index.Doc
	for key, d := range s.Offers {
		if slices.Contains(p.ids, key.ID.Upstream) {
			p.Offers[key] = d
			offers = append(offers, d.Doc)
		}
	}
	p.Files = sync.OnceValue(func() map[string][]byte {
		made := make([]*artifacts, len(ups))
		for i, up := range ups {
			made[i] = newArtifacts(up, nil)
		}
		return tree(made)
	})
	p.tools = sync.OnceValues(func() (*index.Index, error) { return index.New(p.Docs, nil) })
	p.offers = sync.OnceValues(func() (*index.Index, error) { return index.New(offers, nil) })
	return p
}

// IDs returns the ids of the upstreams, in the order of the settings.
func (p *Part) IDs() []string { return slices.Clone(p.ids) }

// Rank ranks the tools by a query.
func (p *Part) Rank(ctx context.Context, q index.Query) (index.Results, error) {
	return search(ctx, p.tools, q)
}

// RankOffers ranks resources, templates and prompts by a query.
func (p *Part) RankOffers(ctx context.Context, q index.Query) (index.Results, error) {
	return search(ctx, p.offers, q)
}

func search(ctx context.Context, in func() (*index.Index, error), q index.Query) (index.Results, error) {
	ix, err := in()
	if err != nil {
		return index.Results{}, err
	}
	return ix.Search(ctx, q)
}
