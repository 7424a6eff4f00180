package toolsearch

import (
	"context"
)

// maxSkillsFound is how many skills are listed among tools.
const maxSkillsFound = 2

// skillsFor returns the skills that match a query.
func (sr *Searcher) skillsFor(ctx context.Context, s Request, weak bool, best float64, named bool) (list []nonTool, err error) {
	if s.Query == "" {
		return nil, nil
	}
	items, err := sr.opts.Skills.Find(ctx, s.Query, maxSkillsFound)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		o := nonTool{candidate: candidate{id: item.ID, describe: item.Describe}}
		o.exact = namesTool(s.Query, o.id) || s.Query == item.Name
		fits := !item.Weak && item.Cover >= minFunctionCover && (item.Words > 1 || best < minFunctionCover)
		o.relevant = o.exact || fits
		o.preferred = !named && (o.exact || fits && (weak || item.Cover > best+coverMargin))
		list = append(list, o)
	}
	return list, nil
}

// searchSkills searches the skills only.
func (sr *Searcher) searchSkills(ctx context.Context, s Request, found *Found) (list []candidate, err error) {
	items, err := sr.opts.Skills.Find(ctx, s.Query, s.candidates())
	for _, item := range items {
		if !item.Broken {
			list = append(list, candidate{id: item.ID, describe: item.Describe})
		}
	}
	found.Total = len(list)
	return list, err
}
