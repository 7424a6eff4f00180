package config

import (
	"regexp"
	"strings"
)

// reference is what may stand between "${" and "}".
var reference = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)

// badReference is a reference that cannot be expanded, by its offset in the text.
type badReference struct {
	offset int
	// unset is the name of the variable, if that it is not set is all that is wrong.
	unset   string
	message string
}

// expand replaces ${NAME}, and ${NAME:-default} where NAME is unset or empty, and
// makes "$$" a "$"; every other "$" stays. What it puts in is not expanded again.
// A bad reference stays as it is written.
func expand(text string, getenv func(string) (string, bool)) (string, []badReference) {
	var out strings.Builder
	var bad []badReference
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "${"):
			value, length, b := resolve(rest, getenv)
			if b != nil {
				b.offset = i
				bad = append(bad, *b)
			}
			out.WriteString(value)
			i += length
		default:
			out.WriteByte(rest[0])
			i++
		}
	}
	return out.String(), bad
}

// resolve returns the value of the reference that text starts with, and the length of the reference.
func resolve(text string, getenv func(string) (string, bool)) (string, int, *badReference) {
	end := strings.IndexByte(text, '}')
	if end < 0 {
		return text, len(text), &badReference{message: `"${" has no "}"; write "$${" for a plain "${"`}
	}
	whole, inside := text[:end+1], text[2:end]
	parts := reference.FindStringSubmatch(inside)
	switch {
	case strings.Contains(inside, "${"):
		return whole, len(whole), &badReference{message: "a reference inside a reference is not expanded; write a plain default"}
	case parts == nil:
		return whole, len(whole), &badReference{message: `between "${" and "}" must be NAME or NAME:-default; write "$${" for a plain "${"`}
	}
	name, hasDefault, otherwise := parts[1], parts[2] != "", parts[3]
	value, set := getenv(name)
	switch {
	case hasDefault && (!set || value == ""):
		return strings.ReplaceAll(otherwise, "$$", "$"), len(whole), nil
	case !set:
		return whole, len(whole), &badReference{unset: name}
	}
	return value, len(whole), nil
}
