package names

import (
	"unicode"
	"unicode/utf8"
)

// token is a word, a number or a sign of a text.
type token struct {
	start, end int
	// lines is how many line breaks stand before it.
	lines int
	// space: white space stands before it.
	space bool
}

// tokens splits a text into words with their apostrophes and hyphens, runs of digits, and single signs.
func tokens(text string, room []token) []token {
	list := room[:0]
	next := token{space: true, lines: 1}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			if next.space = true; r == '\n' {
				next.lines++
			}
			i += n
			continue
		}
		next.start = i
		next.end = i + n
		switch {
		case unicode.IsLetter(r):
			next.end = wordEnd(text, i+n)
		case '0' <= r && r <= '9':
			for next.end < len(text) && '0' <= text[next.end] && text[next.end] <= '9' {
				next.end++
			}
		}
		list = append(list, next)
		i = next.end
		next = token{}
	}
	return list
}

// wordEnd returns the end of a word that begins before i.
func wordEnd(text string, i int) int {
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			i += n
			continue
		}
		if r != '\'' && r != '’' && r != '-' {
			return i
		}
		after, m := utf8.DecodeRuneInString(text[i+n:])
		if !unicode.IsLetter(after) {
			return i
		}
		if i+n+m == len(text) || !isLetterAt(text, i+n+m) { // a single letter behind an apostrophe: Ann's
			if r != '-' && (after == 's' || after == 'S') {
				return i
			}
		}
		i += n + m
	}
	return i
}

func isLetterAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsLetter(r)
}
