package toolsearch

import (
	"cmp"
	"slices"
	"strings"
)

// layout decides how much of what was found is shown, so that an answer keeps to
// its budget: much of the best, little of the last.
type layout struct {
	count  func(string) int // tokens
	found  *Found
	budget int
	// used is what the answer has by now, as far as the text is made of found.
	used   int
	writer toolWriter
}

// layout begins an answer.
func (sr *Searcher) layout(s Request, found *Found) *layout {
	return &layout{count: sr.countTokens, found: found, budget: s.Budget, writer: newToolWriter(*found)}
}

// countTokens counts as o200k does, or estimates where that cannot be had.
func (sr *Searcher) countTokens(text string) int { return sr.opts.Meter.Count(text) }

// share is up to which part of the budget hits are shown at a level, and how many.
type share struct {
	level Detail
	part  float64
	most  int
}

// every is more hits than there can be.
const every = MaxLimit + 1

// sureBelow is which part of the first one's score the second may have for the
// first to be what was asked for: of the judged queries over the catalogue it is so
// for 33 in 34 of the odd half then, 71 in 74 of all (bench/results/answer-layout.txt).
const sureBelow = 0.7

// coversAll is how much of a query the best hit must have to be told with its
// signature though nothing fits well.
const coversAll = 0.6

// cutType is what stands in a signature for a type that is not written out.
const cutType = "{...}"

// fill adds candidates to the answer while there is room, best first.
func (l *layout) fill(s Request, list []candidate) {
	if s.Limit > 0 {
		list = list[:min(len(list), s.Limit)]
	}
	l.used = 1 + l.count(l.found.closing(min(len(list), 1))) // parts that are joined may count one more than by themselves
	if l.found.Listing {
		l.list(list)
		return
	}
	shares := l.shares(s, list)
	for i, c := range list {
		for len(shares) > 0 && (shares[0].most == 0 || !l.add(c, shares[0], i == 0)) {
			shares = shares[1:]
		}
		if len(shares) == 0 {
			return
		}
		shares[0].most--
	}
}

// add tells of a candidate if there is room for that at this level. The first gets what it needs.
func (l *layout) add(c candidate, s share, first bool) bool {
	level := s.level
	if level == Signature && !first && !c.exact && !l.found.Listing {
		level = brief
	}
	t := c.tell(level)
	if s.level != l.found.Detail {
		t.Shown = s.level
	}
	if first && s.level == Signature && c.hints != nil {
		t.Notes = c.hints()
		if strings.Contains(t.Text, cutType) {
			t.Notes = append(t.Notes, "detail full tells what "+cutType+" has")
		}
	}
	writer := l.writer
	cost := l.count(writer.text(t))
	if !first && float64(l.used+cost) > s.part*float64(l.budget) {
		return false
	}
	l.used, l.writer = l.used+cost, writer
	l.found.Tools = append(l.found.Tools, t)
	return true
}

// shares are how the budget is spent on candidates.
func (l *layout) shares(s Request, list []candidate) []share {
	switch top := l.found.Detail; {
	case top == Names:
		return []share{{Names, 1, every}}
	case l.found.Weak:
		return weakShares(top, cmp.Or(s.Limit, 5), list)
	case top == Summary:
		return []share{{top, 0.9, every}, {Names, 1, every}}
	case top == Full && exact(list) == 0:
		return []share{{top, 1, every}, {Summary, 1, 3}}
	case s.Limit > 0 && top == Signature:
		return []share{{top, 0.75, every}, {Summary, 0.9, every}, {Names, 1, every}}
	}
	return l.rankedShares(list)
}

// rankedShares goes by how sure it is that the first is what was asked for. The
// numbers are those that cost a model least, answer and second tries together
// (bench/results/answer-layout.txt).
func (l *layout) rankedShares(list []candidate) []share {
	top := l.found.Detail
	if n := exact(list); n > 0 {
		return []share{{top, 1, n}, {Summary, 1, 2}, {Names, 1, 4}}
	}
	if len(list) > 1 && list[1].score < sureBelow*list[0].score {
		return []share{{top, 0.75, 2}, {Summary, 0.9, 3}, {Names, 1, 3}}
	}
	return []share{{top, 0.7, 5}, {Summary, 0.8, 2}, {Names, 1, every}}
}

// weakShares are few lines. The first may be the one all the same.
func weakShares(top Detail, most int, list []candidate) []share {
	if top == Signature && len(list) > 0 && list[0].cover >= coversAll {
		return []share{{top, 1, 1}, {Summary, 1, most - 1}}
	}
	return []share{{Summary, 1, most}}
}

// exact counts those among the first that the query names.
func exact(list []candidate) (n int) {
	for _, c := range list[:min(len(list), 3)] {
		if c.exact {
			n++
		}
	}
	return n
}

// list tells of all candidates alike: as much as there is room for. Nothing ranks them.
func (l *layout) list(list []candidate) {
	levels := []Detail{Full, Signature, Summary, Names}
	levels = levels[slices.Index(levels, l.found.Detail):]
	used, writer := l.used, l.writer
	for _, level := range levels {
		l.used, l.writer, l.found.Tools = used, writer, nil
		if l.all(list, share{level, 1, every}) || level == Names {
			return
		}
	}
}

func (l *layout) all(list []candidate, s share) bool {
	for _, c := range list {
		if !l.add(c, s, false) {
			return false
		}
	}
	return true
}
