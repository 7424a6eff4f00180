package index

import (
	_ "embed"
	"strings"
)

// synonymText has one group per line of words with a similar meaning in the names of tools.
//
//go:embed synonyms.txt
var synonymText string

// fillers lists words of requests that do not describe a tool; they are stop words of queries only.
const fillers = `please want wants need needs help can could would should tool tools let lets get got
	give show tell us using use also like im ive id ill`

// synonymTable maps a stem to the stems of its synonyms.
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
