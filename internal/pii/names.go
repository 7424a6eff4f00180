package pii

import "slices"

const (
	// leastNameWords is the minimum number of words in a name that is searched for in prose: Rose and Mark are words,
	// too.
	leastNameWords, mostNameWords = 2, 5
	longestName                   = 80
)

// names are the full names that were values of a key, by their first two words in lower case.
type names struct {
	byStart map[string][]knownName
	count   int
}

type knownName struct {
	value string
	words []string // in lower case
}

// add adds a name, if it is one to search for.
func (n *names) add(value string) {
	words := nameWords(value)
	if words == nil {
		return
	}
	if n.byStart == nil {
		n.byStart = map[string][]knownName{}
	}
	start := words[0] + " " + words[1]
	if slices.ContainsFunc(n.byStart[start], func(k knownName) bool { return slices.Equal(k.words, words) }) {
		return
	}
	n.byStart[start] = append(n.byStart[start], knownName{value, words})
	n.count++
}

// remove removes one.
func (n *names) remove(value string) {
	words := nameWords(value)
	if words == nil {
		return
	}
	start := words[0] + " " + words[1]
	left := slices.DeleteFunc(n.byStart[start], func(k knownName) bool { return k.value == value })
	n.count -= len(n.byStart[start]) - len(left)
	if n.byStart[start] = left; len(left) == 0 {
		delete(n.byStart, start)
	}
}

// nameWords splits a name into words; nil if it is not one to search for.
func nameWords(value string) (words []string) {
	if len(value) > longestName {
		return nil
	}
	for i := 0; i < len(value); {
		end := nameWordEnd(value, i)
		if end == i || len(words) == mostNameWords {
			return nil
		}
		words = append(words, string(appendLower(nil, value[i:end])))
		if i = nameGap(value, end); i == end && i < len(value) {
			return nil
		}
	}
	if len(words) < leastNameWords {
		return nil
	}
	return words
}

// nameWordEnd returns where the word of a name at i ends: letters, with "'", "-" and "." inside.
func nameWordEnd(t string, i int) int {
	end := i
	for end < len(t) {
		b := t[end]
		switch {
		case isLetter(b), b >= 0x80:
		case (b == '\'' || b == '-') && end > i && end+1 < len(t) && (isLetter(t[end+1]) || t[end+1] >= 0x80):
		case b == '.' && end == i+1: // an initial
			return end + 1
		default:
			return end
		}
		end++
	}
	return end
}

// nameGap returns the end of the white space at i, at most 3 characters.
func nameGap(t string, i int) int {
	end := i
	for end < len(t) && end < i+3 && (t[end] == ' ' || t[end] == '\n' || t[end] == '\t') {
		end++
	}
	return end
}

// find finds names in a text.
func (n *names) find(text string) (found []Finding) {
	if n.count == 0 {
		return nil
	}
	var room [2*longestName + 1]byte
	for i := 0; i < len(text); {
		if b := text[i]; !isLetter(b) && b < 0x80 {
			i++
			continue
		}
		first := nameWordEnd(text, i)
		if !isCapital(text[i]) && text[i] < 0x80 || first-i > longestName {
			i = first
			continue
		}
		second := nameGap(text, first)
		end := trimGenitive(text, second, nameWordEnd(text, second))
		if second == first || end == second || end-second > longestName {
			i = first
			continue
		}
		key := appendLower(append(appendLower(room[:0], text[i:first]), ' '), text[second:end])
		if stop := longest(n.byStart[string(key)], text, end); stop > 0 && !follows(text, i) {
			found = append(found, Finding{Kind: Name, Start: i, End: stop})
			first = stop
		}
		i = first
	}
	return found
}

// follows reports whether a digit or "_" precedes i.
func follows(text string, i int) bool {
	return i > 0 && (isDigit(text[i-1]) || text[i-1] == '_')
}

// trimGenitive drops the "'s" of "Ann Smith's".
func trimGenitive(text string, start, end int) int {
	if end-start > 2 && text[end-1] == 's' && text[end-2] == '\'' {
		return end - 2
	}
	return end
}

// longest returns the end of the longest name with its first two words ending at i, 0 for none.
func longest(list []knownName, text string, i int) (stop int) {
	for _, k := range list {
		end := i
		for _, word := range k.words[2:] {
			next := nameGap(text, end)
			to := trimGenitive(text, next, nameWordEnd(text, next))
			if next == end || string(appendLower(nil, text[next:to])) != word {
				end = 0
				break
			}
			end = to
		}
		stop = max(stop, end)
	}
	return stop
}
