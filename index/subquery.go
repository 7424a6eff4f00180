package index

import (
	"context"
	_ "embed"
	"regexp"
	"strings"
)

const (
	// maxSubqueries is the maximum number of subqueries of one query, minSubqueryWords the minimum
	// number of content words of a subquery.
	maxSubqueries    = 6
	minSubqueryWords = 2
	// subqueryThreshold is the confidence from which on a part of a query counts as a subquery.
	subqueryThreshold = -0.4
	// subqueryShare and subquerySecondShare are the minimum scores of the two best documents of a subquery, as shares of the best
	// score.
	subqueryShare, subquerySecondShare = 0.95, 0.8
)

// verbText lists the words that a subquery may begin with.
//
//go:embed verbs.txt
var verbText string

// subquerySeparator matches what separates two subqueries: the end of a sentence, a line or an
// item of a list, and words that announce another step.
var subquerySeparator = regexp.MustCompile(`(?i)[.;!?]+(?:\s+|$)|\s*\n+\s*(?:[-*]|\d+[.)])?\s*|,?\s+(?:and then|and also|and|then|after that|afterwards|plus)\s+|,\s+`)

// listSeparator matches the separators that may also join the items of a list within one subquery.
var listSeparator = regexp.MustCompile(`(?i)^(?:,|,?\s+(?:and|plus))\s+$`)

// verbStems returns the stems of the words in verbText.
func (a *analyzers) verbStems() map[string]bool {
	verbs := map[string]bool{}
	for line := range strings.Lines(verbText) {
		line, _, _ = strings.Cut(line, "#")
		for _, stem := range a.stems(line) {
			verbs[stem] = true
		}
	}
	return verbs
}

// addSubqueries raises the best documents of each subquery if the query has several. A
// part of a query is a subquery if a tool fits it well by itself.
func (r *search) addSubqueries(ctx context.Context) error {
	parts := r.subqueries()
	if len(parts) < 2 {
		return nil
	}
	var needs [][]int32
	for _, req := range parts {
		best, err := r.searchSubquery(ctx, req)
		if err != nil {
			return err
		}
		if best != nil {
			needs = append(needs, best)
		}
	}
	if len(needs) < 2 {
		return nil
	}
	r.needs = len(needs)
	top := r.top()
	for _, best := range needs {
		r.raise(best[0], subqueryShare*top)
		for _, ord := range best[1:] {
			r.raise(ord, subquerySecondShare*top)
		}
	}
	return nil
}

// subqueries returns the parts of the query that may be subqueries.
func (r *search) subqueries() []request {
	if len(r.worth) < 2*minSubqueryWords {
		return nil
	}
	var parts []request
	for _, text := range r.analyzers.divide(r.req.text) {
		req := r.parse(Query{Text: strings.TrimSpace(text), Upstream: r.req.upstream})
		if len(parts) < maxSubqueries && len(req.contentWords()) >= minSubqueryWords {
			parts = append(parts, req)
		}
	}
	return parts
}

// divide splits a query into subqueries. Text after a comma or "and" that does not
// begin with a verb belongs to the part before.
func (a *analyzers) divide(text string) []string {
	var parts []string
	from := 0
	for _, at := range subquerySeparator.FindAllStringIndex(text, 4*maxSubqueries) {
		if at[0] < from || listSeparator.MatchString(text[at[0]:at[1]]) && !a.beginsWithVerb(text[at[1]:]) {
			continue
		}
		parts = append(parts, text[from:at[0]])
		from = at[1]
	}
	return append(parts, text[from:])
}

// beginsWithVerb reports whether the first content word of text is a verb of verbText.
func (a *analyzers) beginsWithVerb(text string) bool {
	for _, w := range a.list(cutText(text, maxNameText)) {
		if a.verbs[w.stem] || !w.stop {
			return a.verbs[w.stem]
		}
	}
	return false
}

// searchSubquery returns the two best documents for a subquery, nil if none fits well.
func (r *search) searchSubquery(ctx context.Context, req request) ([]int32, error) {
	sub := &search{snapshot: r.snapshot, req: req, work: r.scratch.Get().(*scratch)}
	defer func() {
		sub.work.reset()
		r.scratch.Put(sub.work)
	}()
	if err := (scorer{sub}).score(ctx); err != nil {
		return nil, err
	}
	best, c := sub.best(2), confidence{sub}
	if len(best) == 0 || c.logit() < subqueryThreshold && !c.fewAndCovered(best[0]) {
		return nil, nil
	}
	return best, nil
}

// raise sets a score to at least least. Raised documents keep their relative order.
func (r *search) raise(ord int32, least float64) {
	if score := r.work.score[ord]; score < least {
		r.boost(ord, least+0.01*score-score)
	}
}
