package toolsearch

import (
	"context"
)

// maxSkillsFound is how many skills are listed among tools.
const maxSkillsFound = 2

// skillsFor returns the skills that match a query.
func (sr *Searcher) skillsFor(ctx context.Context, s Request, weak bool, best float64, named bool) (list []other, err error) {
	if s.Query == "" {
		return nil, nil
	}
	items, err := sr.opts.Skills.Find(ctx, s.Query, maxSkillsFound)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		o := other{candidate: candidate{id: item.ID, tell: item.Tell}}
		o.exact = names(s.Query, o.id) || s.Query == item.Name
		fits := !item.Weak && item.Cover >= functionFits && (item.Words > 1 || best < functionFits)
		o.fits = o.exact || fits
		o.sought = !named && (o.exact || fits && (weak || item.Cover > best+surelyMore))
		list = append(list, o)
	}
	return list, nil
}

// searchSkills searches the skills only.
func (sr *Searcher) searchSkills(ctx context.Context, s Request, found *Found) (list []candidate, err error) {
	items, err := sr.opts.Skills.Find(ctx, s.Query, s.candidates())
	for _, item := range items {
		if !item.Broken {
			list = append(list, candidate{id: item.ID, tell: item.Tell})
		}
	}
	found.Total = len(list)
	return list, err
}
