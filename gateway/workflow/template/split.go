package template

import "strings"

// part is a piece of a text: an expression, or the text between expressions.
type part struct {
	text       string
	expression bool
	offset     int // where text begins
}

const (
	opening = "${{"
	closing = "}}"
)

// split splits a text into parts. wrong is a syntax error at offset, "" for none.
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

// find returns the end of the expression at start: the first "}}" that does not close a map and is not in a CEL string or comment.
func find(text string, start int) (end int, wrong string, at int) {
	depth := 0
	for i := start; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			after := quoteEnd(text, start, i)
			if after < 0 {
				return 0, "the string that begins here has no end", i
			}
			i = after - 1
		case c == '/' && strings.HasPrefix(text[i:], "//"):
			line := strings.IndexByte(text[i:], '\n')
			if line < 0 {
				return 0, "// begins a comment, so the expression has no }}", i
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

// quoteEnd returns the end of a CEL string that begins at i, -1 if it has none. A line break ends it too, unless it has triple quotes.
func quoteEnd(text string, start, i int) int {
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

// isRaw reports whether the text before a quote makes it a raw string, without escapes: r, br or rb.
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
