package toolsearch

import (
	"cmp"
	"slices"
)

// layout decides how much of each hit is shown, so that an answer stays within its
// budget: much of the best hits, little of the last.
type layout struct {
	count  func(string) int // tokens
	found  *Found
	budget int
	// used is the number of tokens of the answer so far.
	used   int
	writer toolWriter
	// shown has the signatures of earlier answers, signatures those of this one.
	shown      *Shown
	signatures []shownSignature
}

// layout starts an answer.
func (sr *Searcher) layout(s Request, found *Found) *layout {
	budget := s.Budget
	if budget == defaultBudget {
		budget += max(0, found.needs-1) * needBudget
	}
	return &layout{count: sr.countTokens, found: found, budget: budget, writer: newToolWriter(*found), shown: s.Shown}
}

// countTokens counts tokens of o200k, or estimates them if the tokenizer is not available.
func (sr *Searcher) countTokens(text string) int { return sr.opts.Meter.Count(text) }

// share is the part of the budget up to which hits are shown at a level, and their maximum number.
type share struct {
	level    Detail
	fraction float64
	limit    int
}

// unlimited is more hits than there can be.
const unlimited = MaxLimit + 1

// confidentRatio is the ratio of the second score to the first below which the first hit
// counts as certain: among the judged queries over the catalogue it is right for
// 33 of 34 of the odd half, 71 of 74 of all (bench/results/answer-layout.txt).
const confidentRatio = 0.7

// cheap is the part of the budget up to which the second hit is shown with its signature.
const cheap = 0.3

// minWeakCover is how much of a query the best hit must match to be shown with its
// signature if no hit matches well.
const minWeakCover = 0.6

// fill adds candidates to the answer while there is room, best first.
func (l *layout) fill(s Request, list []candidate) {
	defer func() { l.shown.add(l.signatures) }()
	if s.Limit > 0 {
		list = list[:min(len(list), s.Limit)]
	}
	l.found.settled = l.found.Confidence == High && l.found.Detail == Signature && s.Limit == 0 && s.Budget == defaultBudget
	l.used = 1 + l.count(l.found.footer(min(len(list), 1))) // joined parts may count one token more than separate ones
	if l.found.Listing {
		l.fillListing(list)
		return
	}
	if l.found.Confidence == Medium {
		l.used += l.count(perhaps)
	}
	shares := l.shares(s, list)
	for i, c := range list {
		for len(shares) > 0 && shares[0].limit == 0 {
			shares = shares[1:]
		}
		if l.leavesOut(c, shares) {
			continue
		}
		if shares = l.place(c, shares, i == 0); len(shares) == 0 {
			return
		}
	}
}

// place adds a candidate at the first level with room for it, and returns what is left of the shares.
func (l *layout) place(c candidate, shares []share, first bool) []share {
	for len(shares) > 0 && (shares[0].limit == 0 || !l.add(c, shares[0], first)) {
		shares = shares[1:]
	}
	if len(shares) > 0 && (!c.offer || shares[0].level != Signature) { // a prompt takes no tool's place
		shares[0].limit--
	}
	return shares
}

// leavesOut reports whether a candidate is a resource or prompt that would only be named, after hits that are likely right.
func (l *layout) leavesOut(c candidate, shares []share) bool {
	return len(shares) > 0 && shares[0].level == Names && l.found.Detail != Names && l.found.Confidence == High && c.offer
}

// add adds a candidate if there is room for it at this level. The first is always added.
func (l *layout) add(c candidate, s share, first bool) bool {
	level := s.level
	if level == Signature && !first && !c.exact && !l.found.Listing {
		level = brief
	}
	t := c.describe(level)
	if s.level != l.found.Detail {
		t.Shown = s.level
	}
	if first && s.level == Signature && c.hints != nil {
		t.Notes = c.hints()
	}
	signature := l.signatureOf(c, level)
	t.Repeated = level == brief && l.shown.has(signature)
	writer := l.writer
	cost := l.count(writer.text(t))
	if !first && float64(l.used+cost) > s.fraction*float64(l.budget) {
		return false
	}
	l.used, l.writer = l.used+cost, writer
	l.found.Tools = append(l.found.Tools, t)
	if signature.text != "" {
		l.signatures = append(l.signatures, signature)
	}
	return true
}

// signatureOf returns the whole signature of a candidate that is shown with one, else nothing.
func (l *layout) signatureOf(c candidate, level Detail) (of shownSignature) {
	if l.shown != nil && (level == brief || level == Signature) {
		of = shownSignature{c.id, c.describe(Signature).Text}
	}
	return of
}

// shares returns how the budget is split among candidates.
func (l *layout) shares(s Request, list []candidate) []share {
	switch top := l.found.Detail; {
	case top == Names:
		return []share{{Names, 1, unlimited}}
	case l.found.Weak:
		return weakShares(top, cmp.Or(s.Limit, 5), list)
	case top == Summary:
		return []share{{top, 0.9, unlimited}, {Names, 1, unlimited}}
	case top == Full && countExact(list) == 0:
		return []share{{top, 1, unlimited}, {Summary, 1, 3}}
	case s.Limit > 0 && top == Signature:
		return []share{{top, 0.75, unlimited}, {Summary, 0.9, unlimited}, {Names, 1, unlimited}}
	}
	return l.rankedShares(list)
}

// rankedShares depends on how certain the first hit is. The numbers minimize the
// tokens that a model reads in total, with repeated searches
// (bench/results/answer-layout.txt).
func (l *layout) rankedShares(list []candidate) []share {
	top := l.found.Detail
	if n := countExact(list); n > 0 {
		return []share{{top, 1, n}, {Names, 1, 3}}
	}
	switch ahead := len(list) > 1 && list[1].score < confidentRatio*list[0].score; {
	case l.found.needs > 0:
		return []share{{top, 0.75, l.found.needs + 1}, {Names, 1, 4}}
	case l.budget > defaultBudget: // more than the usual is wanted
		return []share{{top, 0.7, 5}, {Summary, 0.8, 2}, {Names, 1, unlimited}}
	case ahead:
		return []share{{top, 1, 1}, {Names, 1, 3}}
	case l.found.Confidence == High:
		return []share{{top, cheap, 2}, {Names, 1, 4}}
	}
	return []share{{top, cheap, 2}, {Names, 1, 6}}
}

// weakShares returns few lines. The first hit may still be right.
func weakShares(top Detail, most int, list []candidate) []share {
	if top == Signature && len(list) > 0 && list[0].cover >= minWeakCover {
		return []share{{top, 1, 1}, {Summary, 1, most - 1}}
	}
	return []share{{Summary, 1, most}}
}

// countExact counts the exact matches among the first three.
func countExact(list []candidate) (n int) {
	for _, c := range list[:min(len(list), 3)] {
		if c.exact {
			n++
		}
	}
	return n
}

// fillListing shows all candidates at the same level, the most detailed one that fits. They are not ranked.
func (l *layout) fillListing(list []candidate) {
	levels := []Detail{Full, Signature, Summary, Names}
	levels = levels[slices.Index(levels, l.found.Detail):]
	used, writer := l.used, l.writer
	for _, level := range levels {
		l.used, l.writer, l.found.Tools, l.signatures = used, writer, nil, nil
		if l.addAll(list, share{level, 1, unlimited}) || level == Names {
			return
		}
	}
}

func (l *layout) addAll(list []candidate, s share) bool {
	for _, c := range list {
		if !l.add(c, s, false) {
			return false
		}
	}
	return true
}
