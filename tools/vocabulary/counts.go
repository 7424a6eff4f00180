package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"

	"github.com/tiktoken-go/tokenizer"
)

// sample is a text with its number of tokens in both vocabularies.
type sample struct {
	Text   string
	O200k  int
	Cl100k int
}

// writeCounts writes samples, the same in every run.
func writeCounts() error {
	o200k, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return err
	}
	cl100k, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		return err
	}
	var list []sample
	for _, text := range texts() {
		s := sample{Text: text}
		if s.O200k, err = o200k.Count(text); err != nil {
			return err
		}
		if s.Cl100k, err = cl100k.Count(text); err != nil {
			return err
		}
		list = append(list, s)
	}
	data, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile("../../internal/tokens/testdata/counts.json", append(data, '\n'), 0o644)
}

// bits are what the texts are made of: words, code, digits, spaces, scripts, signs, runs.
var bits = []string{
	"hello", " world", "HTTPServer", "don't", " I'LL", "'s", "search_tools", "{\"a\": [1, 2]}", "1234567", " 3.14159", "\n", "\r\n\n", "   ", "\t\t", " \n ",
	"お誕生日おめでとう", "Übergrößenträger", "Привет, мир", "मैं", "e\u0301", "👩‍👩‍👧‍👦", "—", "…", "//", "!=", "<|endoftext|>", "ſtate", "İ", "ǅ", "\u00a0", "\x00",
	strings.Repeat("a", 150), strings.Repeat("=", 97), strings.Repeat("ab", 40), strings.Repeat("語", 60), "https://example.com/a?b=c&d=%20", "func (c *T) F() error {\n\treturn nil\n}",
}

func texts() (list []string) {
	list = append(list, bits...)
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var text strings.Builder
		for range 1 + random.IntN(12) {
			text.WriteString(bits[random.IntN(len(bits))])
		}
		if !apart.MatchString(text.String()) {
			list = append(list, text.String())
		}
	}
	return list
}

// apart are two ends of lines with spaces between. The expression takes them as one piece; the generated code of this
// version of tiktoken-go makes two, so it is no judge of them.
var apart = regexp.MustCompile(`[\r\n][^\S\r\n]+[\r\n]`)
