package main

import (
	"strings"
	"unicode"
)

// split returns the words of text in lower case. It splits identifiers as package index does.
func split(text string) []string {
	var words []string
	text = strings.NewReplacer("'s", "", "’s", "").Replace(text)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		runes := []rune(word)
		from := 0
		for i := 1; i <= len(runes); i++ {
			if i == len(runes) || boundary(runes, i) {
				words = append(words, strings.ToLower(string(runes[from:i])))
				from = i
			}
		}
	}
	return words
}

// boundary reports whether a new word begins at runes[i]: "getHTTPUrl2" is get, HTTP, Url, 2.
func boundary(runes []rune, i int) bool {
	before, r := runes[i-1], runes[i]
	switch {
	case unicode.IsNumber(before) != unicode.IsNumber(r):
		return true
	case unicode.IsLower(before) && unicode.IsUpper(r):
		return true
	case unicode.IsUpper(before) && unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
		return runes[i+1] != 's' || i+2 < len(runes)
	}
	return false
}
