package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"sallyport/internal/suggest"
)

const (
	// minPrefix and minFuzzy are the minimum lengths, in bytes, of words that are
	// matched by prefix or by similarity.
	minPrefix = 3
	minFuzzy  = 4
	// maxCandidates is the maximum number of words that one is compared with.
	maxCandidates = 10_000
	// maxNear is the maximum number of terms that replace an unknown one.
	maxNear = 4
	// sureLikeness is the likeness from which on a word counts as a certain misspelling.
	sureLikeness = 0.8
	// maxSuggest bounds the suggestions of a search.
	maxSuggest = 5
	// maxUnmatched bounds the unknown words of a query for which similar words are looked up.
	maxUnmatched = 8
	// maxUpstreams bounds the upstreams that a weak result suggests, upstreamShare is
	// the evidence that they need, as a share of the best upstream's.
	maxUpstreams  = 3
	upstreamShare = 0.6
)

// missingWord is a word that no document has, with the most similar known word, if any.
type missingWord struct {
	queryWord
	closest string
}

// recordMissing records a word that no document has.
func (r *search) recordMissing(w queryWord) missingWord {
	m := missingWord{queryWord: w}
	if w.plain && len(w.text) >= minFuzzy && len(r.unmatched) < maxUnmatched {
		m.closest = r.nearestWord(w.text)
	}
	r.unmatched = append(r.unmatched, m)
	return m
}

// nearTerms returns the terms of the index that w may be a prefix or a misspelling of,
// the most similar first, each weighted by its likeness.
func (r *search) nearTerms(w missingWord) []alternative {
	if !w.plain || len(r.unmatched) > maxUnmatched || len(w.stem) < minPrefix {
		return nil
	}
	var terms []alternative
	for _, known := range fuzzyCandidates(r.terms, w.stem) {
		if worth := likeness(w.stem, known); worth > 0 {
			terms = append(terms, alternative{known, worth})
		}
	}
	if w.closest != "" { // a stem may be too short to be like another
		stem := string(r.analyzers.stem.stem([]byte(w.closest)))
		terms = slices.DeleteFunc(terms, func(a alternative) bool { return a.term == stem })
		terms = append(terms, alternative{stem, likeness(w.text, w.closest)})
	}
	sortAlternatives(terms)
	return terms[:min(len(terms), maxNear)]
}

func sortAlternatives(terms []alternative) {
	slices.SortFunc(terms, func(a, b alternative) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.term, b.term))
	})
}

// withPrefix returns the subslice of the sorted words that begin with start.
func withPrefix(sorted []string, start string) []string {
	from, _ := slices.BinarySearch(sorted, start)
	rest := sorted[from:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i], start) })]
}

// fuzzyCandidates returns the sorted words to compare word with: those that share its first
// letter or, if these are more than maxCandidates, a longer prefix.
func fuzzyCandidates(sorted []string, word string) []string {
	for n := 1; n <= len(word); n++ {
		if sorted = withPrefix(sorted, word[:n]); len(sorted) <= maxCandidates {
			return sorted
		}
	}
	return sorted[:maxCandidates]
}

// likeness returns 0 to 1: the share of word that known preserves, as a longer word or one with a few other letters.
func likeness(word, known string) float64 {
	if strings.HasPrefix(known, word) {
		return float64(len(word)) / float64(len(known))
	}
	off := len(word) - len(known)
	if len(word) < minFuzzy || max(off, -off) > fuzziness(word) {
		return 0
	}
	wrong := suggest.Distance(word, known)
	if wrong > fuzziness(word) {
		return 0
	}
	return 1 - float64(wrong)/float64(len(word))
}

// fuzziness returns the maximum edit distance for a word.
func fuzziness(word string) int {
	if len(word) >= 8 {
		return 2
	}
	return 1
}

// halves splits a word into two known stems, nil if it cannot.
func (r *search) halves(w queryWord) []string {
	if !w.plain || len(r.unmatched) > maxUnmatched {
		return nil
	}
	text := w.text
	for i := len(text) - minPrefix; i >= minPrefix; i-- {
		left, right := string(r.analyzers.stem.stem([]byte(text[:i]))), string(r.analyzers.stem.stem([]byte(text[i:])))
		_, hasLeft := slices.BinarySearch(r.terms, left)
		_, hasRight := slices.BinarySearch(r.terms, right)
		if hasLeft && hasRight {
			return []string{left, right}
		}
	}
	return nil
}

// docFreq returns the number of documents that have term.
func (r *search) docFreq(ctx context.Context, term string) (int, error) {
	list, err := r.reader.TermFieldReader(ctx, []byte(term), poolField, false, false, false)
	if err != nil {
		return 0, fmt.Errorf("read postings: %w", err)
	}
	if err := list.Close(); err != nil {
		return 0, fmt.Errorf("read postings: %w", err)
	}
	return int(list.Count()), nil
}

// suggest returns the words that no document has, and similar known words.
func (r *search) suggest() (unmatched, suggested []string) {
	if r.req.unknown != "" {
		unmatched = append(unmatched, r.req.unknown)
		suggested = r.nearUpstreams(r.req.unknown)
	}
	for _, w := range r.unmatched {
		unmatched = append(unmatched, w.text)
		if w.closest != "" && len(suggested) < maxSuggest && !slices.Contains(suggested, w.closest) {
			suggested = append(suggested, w.closest)
		}
	}
	return unmatched, suggested
}

// nearestWord returns the known word most similar to text, "" if there is none. For speed it compares only words with
// the same first letter.
func (s *snapshot) nearestWord(text string) string {
	best, bestWorth := "", 0.0
	for _, known := range fuzzyCandidates(s.vocabulary, text) {
		if worth := likeness(text, known); worth > bestWorth {
			best, bestWorth = known, worth
		}
	}
	return best
}

func (s *snapshot) nearUpstreams(name string) []string {
	ids := make([]string, len(s.upstreams))
	for i, up := range s.upstreams {
		ids[i] = up.id
	}
	if id := suggest.Of(name, ids); id != "" {
		return []string{id}
	}
	return nil
}

// likelyUpstreams returns the upstreams that a misspelt word may mean, then those
// with the most evidence, best first.
func (r *search) likelyUpstreams() []string {
	if r.req.upstream != "" {
		return nil
	}
	var likely []string
	for _, w := range r.unmatched[:min(len(r.unmatched), maxUnmatched)] {
		likely = append(likely, r.nearUpstreams(w.text)...)
	}
	order := make([]int, len(r.upstreams))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.evidence[b], r.evidence[a]) })
	for _, up := range order[:min(len(order), maxUpstreams)] {
		id := r.upstreams[up].id
		if r.evidence[up] > 0 && r.evidence[up] >= upstreamShare*r.evidence[order[0]] && !slices.Contains(likely, id) {
			likely = append(likely, id)
		}
	}
	return likely[:min(len(likely), maxUpstreams)]
}
