// Package suggest finds the name that was probably meant.
package suggest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of returns the candidate nearest to word, or "" if none is near enough to suggest. Case and the separators "-_. "
// are ignored; a candidate that differs in nothing else is the nearest.
func Of(word string, candidates []string) string {
	best, bestCost := "", 1<<30
	folded := fold(word)
	if folded == "" {
		return ""
	}
	for _, c := range candidates {
		if cost := cost(folded, fold(c)); cost < bestCost || cost == bestCost && c < best {
			best, bestCost = c, cost
		}
	}
	if bestCost > maxDistance(folded) {
		return ""
	}
	return best
}

// cost returns the edit distance, or 1 if one name is a large part of the other.
func cost(a, b string) int {
	if a == b {
		return 0
	}
	if len(a) >= 4 && len(b) >= 4 && 2*min(len(a), len(b)) >= max(len(a), len(b)) &&
		(strings.Contains(a, b) || strings.Contains(b, a)) {
		return 1
	}
	return Distance(a, b)
}

func maxDistance(folded string) int { return max(1, len([]rune(folded))/3) }

// Form returns the only candidate that differs from word in nothing but case and separators, "" if there is none or
// more than one: "per_page" is a form of "perPage".
func Form(word string, candidates []string) string {
	found, folded := "", fold(word)
	for _, c := range candidates {
		if folded == "" || fold(c) != folded {
			continue
		}
		if found != "" {
			return ""
		}
		found = c
	}
	return found
}

// maxBytes bounds how many bytes of a name are examined: a word may be as long as a request.
const maxBytes = 512

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s[:min(len(s), maxBytes)])
}

// Distance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours each cost one. Only the first 64 runes count.
func Distance(a, b string) int {
	ra, rb := head(a), head(b)
	before, prev, row := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		row[0] = i
		for j := 1; j <= len(rb); j++ {
			change := 1
			if ra[i-1] == rb[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(rb)]
}

func head(s string) []rune {
	r := []rune(s[:min(len(s), 64*utf8.UTFMax)])
	return r[:min(len(r), 64)]
}
