package endpoint

import (
	"regexp"
	"strings"
	"unicode"
)

// Same reports whether a model's answer is what was wanted. Tasks ask for an answer alone, and
// models like to say more; an answer counts where no one could take it for another:
//
//   - it is what was wanted, but for white space, marks of Markdown or quotes around it, and a full stop;
//   - its last line is, or what follows the last colon and space of that line;
//   - the one thing in it that is marked (bold, or code) is;
//   - what was wanted is one word with digits, and the answer has one word of that form: "It closes at 17:45." for 17:45.
//
// The answer itself must be right to the letter.
func Same(answer, want string) bool {
	want, answer = normalize(want), strings.TrimSpace(answer)
	last := answer[strings.LastIndexByte(answer, '\n')+1:]
	if fenced := fence.FindStringSubmatch(answer); fenced != nil {
		last = fenced[1]
	}
	if normalize(answer) == want || normalize(last) == want || strings.HasSuffix(normalize(last), ": "+want) {
		return true
	}
	if spans := marked.FindAllString(answer, -1); len(spans) == 1 && normalize(spans[0]) == want {
		return true
	}
	return onlyOne(answer, want)
}

var (
	fence  = regexp.MustCompile("(?s)```[a-z]*\n(.*?)\n?```\\s*$")
	marked = regexp.MustCompile("\\*\\*[^*\n]+\\*\\*|`[^`\n]+`")
	spaces = regexp.MustCompile(`\s+`)
)

// marks may stand around an answer, and between a colon and it.
const marks = "*_`\"'“”"

// normalize removes insignificant parts of a text.
func normalize(text string) string {
	text = strings.NewReplacer("**", "", "`", "").Replace(spaces.ReplaceAllString(text, " "))
	return strings.Trim(strings.TrimSuffix(strings.Trim(text, marks+" "), "."), marks+" ")
}

// onlyOne reports whether want is one word with digits, and the only one of its form in the answer.
func onlyOne(answer, want string) bool {
	if strings.Contains(want, " ") || !strings.ContainsFunc(want, unicode.IsDigit) {
		return false
	}
	found, n := "", 0
	for word := range strings.FieldsSeq(answer) {
		word = strings.Trim(word, marks+".,;:!?()[]")
		if form(word) == form(want) {
			found, n = word, n+1
		}
	}
	return n == 1 && found == want
}

var (
	digits  = regexp.MustCompile(`\d+`)
	letters = regexp.MustCompile(`\pL+`)
)

// form is a word with 0 in place of its numbers and a in place of its letters.
func form(word string) string {
	return digits.ReplaceAllString(letters.ReplaceAllString(word, "a"), "0")
}
