package misuse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxSafe is the largest integer that a number in JavaScript holds exactly, with all smaller ones.
const maxSafe = 1<<53 - 1

// Inexact returns the first integer in a TypeScript program that loses digits, and how to write it; "" if there is none.
func Inexact(code string) string {
	for _, t := range lex(code, false) {
		digits := strings.ReplaceAll(t.text, "_", "")
		if t.kind != number || len(digits) < 16 || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err != nil || n > maxSafe {
			return fmt.Sprintf("%[1]s loses digits: write %[1]sn", digits)
		}
	}
	return ""
}

// Uncalled returns the function of a program that nothing calls, of several the last one; "" if there is none.
func Uncalled(code string, python bool) (function string) {
	tokens := lex(code, python)
	counts := map[string]int{}
	for _, t := range tokens {
		counts[t.text]++
	}
	for i := 1; i < len(tokens); i++ {
		defined := tokens[i-1].kind == name && slices.Contains([]string{"def", "function"}, tokens[i-1].text)
		arrow := i+1 < len(tokens) && tokens[i+1].text == "=" && tokens[i-1].text == "const" && isFunction(tokens[i+2:])
		if (defined || arrow) && tokens[i].kind == name && counts[tokens[i].text] == 1 {
			function = tokens[i].text
		}
	}
	return function
}

// isFunction reports whether an expression begins as a function does.
func isFunction(tokens []token) bool {
	return len(tokens) > 1 && (tokens[0].text == "async" || tokens[0].text == "function" || tokens[0].text == "(")
}
