package toolsearch

import (
	"context"
	"strconv"

	"sallyport/codegen"
	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/index"
	"sallyport/internal/mcpapp"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// hits returns the hits that may be called, and the best cover of all. It adds those that must not be called to found.
func (sr *Searcher) hits(ctx context.Context, s Request, lang codegen.Language, all []index.Hit, found *Found) (list []candidate, best float64) {
	list = make([]candidate, 0, len(all))
	v := sr.in(ctx)
	for i, hit := range all {
		best = max(best, hit.Cover)
		e, known := v.lookup(hit.ID)
		becomes := sr.opts.Guard.ExpectedAction(ctx, hit.ID, known)
		if known && becomes != policy.Deny {
			list = append(list, sr.candidate(s, lang, hit, e, becomes))
			continue
		}
		found.Total-- // gone since the index was made, held, or refused
		if known && !found.Listing && (i < maxHeldRank || namesTool(s.Query, hit.ID)) {
			found.Quarantined = append(found.Quarantined, FoundHeld{ID: hit.ID, Reason: guard.ReasonDenied})
		}
		if held, ok := v.heldTool(hit.ID); ok && i < maxHeldRank {
			found.Quarantined = append(found.Quarantined, held)
		}
	}
	return list, best
}

// interfaceNotes says how a program shows the user interface of a tool (MCP Apps), if it has one.
func interfaceNotes(t tool.Tool) []string {
	uri := mcpapp.Interface(t.ID.Upstream, t.Raw)
	if uri == "" || len(uri) > maxNotes {
		return nil
	}
	return []string{"emit(" + strconv.Quote(uri) + ") shows its result to the user"}
}

func (sr *Searcher) candidate(s Request, lang codegen.Language, hit index.Hit, e *catalog.Entry, becomes policy.Action) candidate {
	snapshot := sr.opts.Catalog.Snapshot()
	tell := func(d Detail) FoundTool {
		found := describe(sr.opts.Catalog.WithObserved(e), d, lang, snapshot.Boilerplate(hit.ID))
		found.Policy = guard.PolicyLabel(becomes)
		return found
	}
	hints := func() []string {
		return append(snapshot.Boilerplate(hit.ID).Params.Hints(e.Tool, lang, maxNotes), interfaceNotes(e.Tool)...)
	}
	return candidate{id: hit.ID, score: hit.Score, cover: hit.Cover, exact: namesTool(s.Query, hit.ID), describe: tell, hints: hints}
}
