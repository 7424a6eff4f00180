package trust

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

// Visible returns s with every character that is invisible, or changes how others are
// displayed, written as <U+200B>. Newlines and tabs stay. It is safe for a terminal.
func Visible(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, "<byte %02X>", s[i])
		case isInvisible(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isInvisible is true for more than sanitize.Hidden: also for joiners and selectors of scripts and emoji.
func isInvisible(r rune) bool {
	return sanitize.Hidden(r) || !unicode.IsGraphic(r) || isJoiner(r) || isVariationSelector(r) || isBlank(r)
}

func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

func isVariationSelector(r rune) bool {
	return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef
}

// isBlank reports whether a letter or symbol looks like a space, or like nothing.
func isBlank(r rune) bool {
	return r == '\u2800' || r == '\u3164' || r == '\uffa0' || r == '\u115f' || r == '\u1160' || r == '\u034f' || r == '\u17b4' || r == '\u17b5'
}

// checkHidden finds characters that a person does not see and a model reads. It allows
// those that emoji and living scripts need.
func (in *inspector) checkHidden(where, s string) {
	if isASCII(s) {
		return
	}
	runes := []rune(s)
	found := map[string]bool{}
	for i, r := range runes {
		rule := hiddenRule(runes, i, r)
		if rule != "" && !found[rule] {
			found[rule] = true
			in.add(rule, where, string(runes[max(i-40, 0):min(i+60, len(runes))]))
		}
	}
	if !utf8.ValidString(s) {
		in.add("not UTF-8", where, s)
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

func hiddenRule(all []rune, i int, r rune) string {
	switch {
	case r < 0xa0:
		return controlRule(r)
	case r >= 0xe0000 && r <= 0xe007f:
		return rule(!inFlag(all, i), "tag characters")
	case changesDirection(r):
		return rule(!isDirectionMark(r) || !hasRightToLeft(all), "text direction")
	case isJoiner(r):
		return rule(!joinerAllowed(all, i), "invisible characters")
	case isVariationSelector(r):
		return rule(!variationAllowed(all, i), "variation selectors")
	case r == 0xfeff:
		return rule(i > 0, "invisible characters") // at the start it is a byte order mark
	case r == 0xad:
		return rule(!hyphenAllowed(all, i), "invisible characters")
	}
	return rule(sanitize.Hidden(r) || isBlank(r), "invisible characters")
}

func controlRule(r rune) string {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r == 0x85 || r < 0x7f && r >= ' ':
		return ""
	case r == 0x1b || r == 0x9b:
		return "terminal escape"
	}
	return "control character"
}

// changesDirection is true for characters that change the direction of text, marks for those of them that benign text has.
func changesDirection(r rune) bool {
	return isDirectionMark(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func isDirectionMark(r rune) bool { return r == 0x200e || r == 0x200f || r == 0x61c }

func rule(broken bool, name string) string {
	if broken {
		return name
	}
	return ""
}

// inFlag holds inside the flags of England, Scotland and Wales, the only ones with tags.
func inFlag(all []rune, i int) bool {
	for from := max(i-6, 0); from < i; from++ {
		if all[from] != 0x1f3f4 {
			continue
		}
		var tags []rune
		for _, r := range all[from+1 : min(from+7, len(all))] {
			tags = append(tags, r-0xe0000)
		}
		switch string(tags) {
		case "gbeng\x7f", "gbsct\x7f", "gbwls\x7f":
			return true
		}
	}
	return false
}

func hasRightToLeft(all []rune) bool {
	for _, r := range all {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana) {
			return true
		}
	}
	return false
}

// joinerAllowed is true between emoji, and between letters of scripts that have joiners.
func joinerAllowed(all []rune, i int) bool {
	if i == 0 || i+1 >= len(all) {
		return false
	}
	before, after := all[i-1], all[i+1]
	if isPictorial(before) || isVariationSelector(before) {
		return isPictorial(after)
	}
	return usesJoiners(before) && usesJoiners(after)
}

func isPictorial(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) || r >= 0x2190 && r <= 0x2bff || r >= 0x1f000 && r <= 0x1faff
}

// usesJoiners is true for letters and marks of the scripts in which joiners matter.
func usesJoiners(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// variationAllowed is true for one selector after a character that has variants.
func variationAllowed(all []rune, i int) bool {
	if i == 0 {
		return false
	}
	before := all[i-1]
	if all[i] >= 0xe0100 {
		return unicode.Is(unicode.Han, before)
	}
	return before == '#' || before == '*' || before >= '0' && before <= '9' || isPictorial(before) || unicode.IsSymbol(before) ||
		before > 0x7f && unicode.IsPunct(before) || unicode.Is(unicode.Han, before) || before == '©' || before == '®' || before == 'ℹ' || before == 'Ⓜ'
}

// hyphenAllowed is true for a soft hyphen inside a word that is not ASCII.
func hyphenAllowed(all []rune, i int) bool {
	return i > 0 && i+1 < len(all) && unicode.IsLetter(all[i-1]) && unicode.IsLetter(all[i+1]) && all[i-1] > 0x7f
}

// checkMixedScript finds a name with letters of several alphabets that look alike.
func (in *inspector) checkMixedScript(where, s string) {
	if isASCII(s) {
		return
	}
	latin, other := false, false
	for _, r := range s {
		latin = latin || r < 0x7f && unicode.IsLetter(r)
		other = other || lookalike(r) != r
	}
	if latin && other {
		in.add("lookalike letters", where, s)
	}
}

// lookalike returns the Latin letter that a Cyrillic or Greek one looks like.
func lookalike(r rune) rune {
	const (
		odd   = "аеорсухіјѕһԁԛԝьвнкмтАВЕКМНОРСТУХІЈЅаοανικρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡı"
		plain = "aeopcyxijshdqwbbhkmtABEKMHOPCTYXIJSaoavikptuxABEZHIKMNOPTYXgi"
	)
	if r < 0x131 || r > 0x51d {
		return r
	}
	for i, o := range []rune(odd) {
		if o == r {
			return rune(plain[i])
		}
	}
	return r
}
