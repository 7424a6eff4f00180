package config

import (
	"fmt"
	"regexp"
	"strings"
)

// reference matches the text between "${" and "}", except for file:PATH and keyring:NAME.
var reference = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)

// badReference is a reference that cannot be expanded, by its offset in the text.
type badReference struct {
	offset int
	// missing is the start of the reference after "${", if its only problem is that it has no value.
	missing string
	message string
	// fix says what to do; empty where message does.
	fix string
}

// clone returns a copy that may get an offset of its own.
func (b *badReference) clone() *badReference {
	if b == nil {
		return nil
	}
	other := *b
	return &other
}

// text returns the whole message; owner is the upstream or section of the reference.
func (b *badReference) text(owner string) string {
	if b.fix == "" {
		return b.message
	}
	return fmt.Sprintf("%s (%s); %s", b.message, owner, b.fix)
}

// expand replaces ${NAME}, ${NAME:-default} where NAME is unset or empty,
// ${file:PATH} and ${keyring:NAME}, and makes "$$" a "$"; every other "$" stays.
// Values are not expanded again. A bad reference stays unchanged.
func (r *resolver) expand(text string) (string, []badReference) {
	var out strings.Builder
	var bad []badReference
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "${"):
			value, length, b := r.resolve(rest)
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
func (r *resolver) resolve(text string) (string, int, *badReference) {
	end := strings.IndexByte(text, '}')
	if end < 0 {
		return text, len(text), &badReference{message: `"${" has no "}"; write "$${" for a plain "${"`}
	}
	whole, inside := text[:end+1], text[2:end]
	if strings.Contains(inside, "${") {
		return whole, len(whole), &badReference{message: "a reference inside a reference is not expanded; write a plain default"}
	}
	if value, bad, ours := r.lookupSecret(inside); ours {
		r.note(inside, value, bad)
		return value, len(whole), bad
	}
	parts := reference.FindStringSubmatch(inside)
	if parts == nil {
		return whole, len(whole), &badReference{message: formMessage(inside)}
	}
	name, hasDefault, otherwise := parts[1], parts[2] != "", parts[3]
	value, set := r.variable(name)
	switch {
	case hasDefault && (!set || value == ""):
		return strings.ReplaceAll(otherwise, "$$", "$"), len(whole), nil
	case !set:
		return whole, len(whole), unsetVariable(name)
	}
	r.note(name, value, nil)
	return value, len(whole), nil
}

// formMessage says what is wrong with the form of a reference. Several clients write env:NAME and input:NAME.
func formMessage(inside string) string {
	for _, scheme := range []string{"env:", "input:"} {
		if name, ok := strings.CutPrefix(inside, scheme); ok && reference.MatchString(name) {
			return fmt.Sprintf("references have no %q here; write ${%.60s}", scheme, name)
		}
	}
	return `between "${" and "}" must be NAME, NAME:-default, file:PATH or keyring:NAME; write "$${" for a plain "${"`
}

func unsetVariable(name string) *badReference {
	return &badReference{missing: name, message: fmt.Sprintf("the variable %.80s is not set", name),
		fix: fmt.Sprintf("set it, or give a default: ${%.80s:-...}", name)}
}
