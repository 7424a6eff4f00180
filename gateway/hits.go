package gateway

import (
	"context"

	"sallyport/codegen"
	"sallyport/gateway/guard"
	"sallyport/index"
	"sallyport/internal/policy"
)

// hits are those of the index that may be called, and the best cover of all. What may not be called goes into found.
func (g *Gateway) hits(ctx context.Context, s Search, lang codegen.Language, all []index.Hit, found *Found) (list []candidate, best float64) {
	list = make([]candidate, 0, len(all))
	for i, hit := range all {
		best = max(best, hit.Cover)
		e, known := g.catalog.known(hit.ID)
		becomes := g.Guard.Expected(ctx, hit.ID, known)
		if known && becomes != policy.Deny {
			list = append(list, g.candidate(s, lang, hit, e, becomes))
			continue
		}
		found.Total-- // gone since the index was made, held, or refused
		if known && !found.Listing && (i < maxHeldRank || names(s.Query, hit.ID)) {
			found.Quarantined = append(found.Quarantined, FoundHeld{hit.ID, guard.ReasonDenied})
		}
		if held, ok := g.catalog.heldTool(hit.ID); ok && i < maxHeldRank {
			found.Quarantined = append(found.Quarantined, held)
		}
	}
	return list, best
}

func (g *Gateway) candidate(s Search, lang codegen.Language, hit index.Hit, e *entry, becomes policy.Action) candidate {
	usual := g.catalog.current().usual
	tell := func(d Detail) FoundTool {
		found := describe(g.catalog.withObserved(e), d, lang, habitsIn(usual, hit.ID))
		found.Policy = guard.PolicyWord(becomes)
		return found
	}
	hints := func() []string { return habitsIn(usual, hit.ID).params.Hints(e.Tool, lang, maxNotes) }
	return candidate{hit.ID, hit.Score, hit.Cover, names(s.Query, hit.ID), tell, hints}
}
