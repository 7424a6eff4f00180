package template

import "strings"

// part is a piece of a text: an expression, or what stands between two.
type part struct {
	text       string
	expression bool
	offset     int // where text begins
}

const (
	opening = "${{"
	closing = "}}"
)

// split takes a text apart. What is wrong with it has the offset where that is.
func split(text string) (parts []part, wrong string, offset int) {
	plain, from := strings.Builder{}, 0
	flush := func(at int) {
		if plain.Len() > 0 {
			parts = append(parts, part{text: plain.String(), offset: at})
			plain.Reset()
		}
	}
	for {
		open := strings.Index(text[from:], opening)
		if open < 0 {
			plain.WriteString(text[from:])
			flush(from)
			return parts, "", 0
		}
		open += from
		if open > from && text[open-1] == '$' {
			plain.WriteString(text[from:open-1] + opening)
			from = open + len(opening)
			continue
		}
		plain.WriteString(text[from:open])
		flush(from)
		start := open + len(opening)
		end, wrong, at := find(text, start)
		if wrong != "" {
			return nil, wrong, at
		}
		parts = append(parts, part{text: text[start:end], expression: true, offset: start})
		from = end + len(closing)
	}
}

// find returns where the expression that begins at start ends: at the first "}}" that closes no map and stands in no text and no comment of CEL's.
func find(text string, start int) (end int, wrong string, at int) {
	depth := 0
	for i := start; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			after := quoted(text, start, i)
			if after < 0 {
				return 0, "the text that begins here has no end", i
			}
			i = after - 1
		case c == '/' && strings.HasPrefix(text[i:], "//"):
			line := strings.IndexByte(text[i:], '\n')
			if line < 0 {
				return 0, "what follows // is a comment, so that the expression has no }}", i
			}
			i += line
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}' && strings.HasPrefix(text[i:], closing):
			return i, "", 0
		}
	}
	return 0, "this ${{ has no }}", start - len(opening)
}

// quoted returns the end of a CEL text that begins at i, -1 where it has none. A line's end ends it too, unless it has three quotes.
func quoted(text string, start, i int) int {
	quote, many := text[i:i+1], strings.Repeat(text[i:i+1], 3)
	raw := isRaw(text[start:i])
	long := strings.HasPrefix(text[i:], many)
	if long {
		quote = many
	}
	for j := i + len(quote); j < len(text); j++ {
		switch {
		case text[j] == '\\' && !raw:
			j++
		case strings.HasPrefix(text[j:], quote):
			return j + len(quote)
		case text[j] == '\n' && !long:
			return j
		}
	}
	return -1
}

// isRaw reports whether what stands before a quote makes it one in which a backslash is nothing special: r, br or rb.
func isRaw(before string) bool {
	word := len(before)
	for word > 0 && isWord(before[word-1]) {
		word--
	}
	prefix := strings.ToLower(before[word:])
	return prefix == "r" || prefix == "br" || prefix == "rb"
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
