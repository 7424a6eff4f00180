package index

import (
	_ "embed"
	"strings"
)

// synonymText has one group of words a line that mean much the same in the names of tools.
//
//go:embed synonyms.txt
var synonymText string

// fillers are words that a person writes around a wish, and that say nothing of it.
const fillers = `please want wants need needs help can could would should tool tools let lets get got
	give show tell us using use also like im ive id ill`

// synonymTable maps a stem to the stems of the words that mean much the same.
func synonymTable(stem func([]byte) []byte) map[string][]string {
	table := map[string][]string{}
	for line := range strings.Lines(synonymText) {
		line, _, _ = strings.Cut(line, "#")
		var stems []string
		for w := range strings.FieldsSeq(line) {
			stems = append(stems, string(stem([]byte(w))))
		}
		for _, a := range stems {
			for _, b := range stems {
				if a != b {
					table[a] = append(table[a], b)
				}
			}
		}
	}
	return table
}
