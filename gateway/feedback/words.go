package feedback

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWords is how many stems of a query count: those with the highest weights.
	maxWords = 12
	// maxStem is the length of the longest stem, in characters: longer ones are keys or
	// paths rather than words.
	maxStem = 24
	// maxWeight bounds the weight of a stem.
	maxWeight = 100
)

// Words are the stems of a query with their weights, positive numbers: the rarer the
// word, the larger.
type Words map[string]float64

// filterWords returns the words that may be stored: no numbers, no addresses, nothing that
// is too long to be a word.
func filterWords(words map[string]float64) Words {
	all := Words{}
	for stem, weight := range words {
		if weight = math.Round(weight*100) / 100; isWord(stem) && isWeight(weight) {
			all[stem] = weight
		}
	}
	if len(all) <= maxWords {
		return all
	}
	stems := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	for _, stem := range stems[maxWords:] {
		delete(all, stem)
	}
	return all
}

// isWord reports whether a stem is of letters, and not too long.
func isWord(stem string) bool {
	return stem != "" && utf8.ValidString(stem) && utf8.RuneCountInString(stem) <= maxStem &&
		!strings.ContainsFunc(stem, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

func isWeight(w float64) bool { return w > 0 && w <= maxWeight } // not NaN

// key returns the sorted stems.
func (w Words) key() string { return strings.Join(slices.Sorted(maps.Keys(w)), " ") }

// norm returns the length of w as a vector.
func (w Words) norm() float64 {
	sum := 0.0
	for _, weight := range w {
		sum += weight * weight
	}
	return math.Sqrt(sum)
}
