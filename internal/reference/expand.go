package reference

import (
	"fmt"
	"regexp"
	"strings"
)

// reference matches the text between "${" and "}", except for file:PATH and keyring:NAME.
var reference = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)

// Fault is a reference that cannot be expanded, by its offset in the text.
type Fault struct {
	Offset int
	// Missing is the start of the reference after "${", if its only problem is that it has no value.
	Missing string
	Message string
	// Fix says what to do; empty where Message does.
	Fix string
	// Managed: it is to a secret manager. Where is then its position in the file, once that is known.
	Managed bool
	Where   string
}

// clone returns a copy that may get an offset of its own.
func (f *Fault) clone() *Fault {
	if f == nil {
		return nil
	}
	other := *f
	return &other
}

// Text returns the whole message; owner is the upstream or section of the reference.
func (f Fault) Text(owner string) string {
	if f.Fix == "" {
		return f.Message
	}
	return fmt.Sprintf("%s (%s); %s", f.Message, owner, f.Fix)
}

// Problem returns the message for a section that cannot be used: of a secret manager with the position, and what to do.
func (f Fault) Problem() string {
	switch {
	case !f.Managed:
		return f.Message
	case f.Fix == "":
		return f.Where + f.Message
	}
	return f.Where + f.Message + "; " + f.Fix
}

// Expand replaces ${NAME}, ${NAME:-default} where NAME is unset or empty, ${file:PATH}, ${keyring:NAME} and references to
// secret managers, and makes "$$" a "$"; every other "$" stays.
// Values are not expanded again. A bad reference stays unchanged.
func (r *Resolver) Expand(text string) (string, []Fault) {
	var out strings.Builder
	var bad []Fault
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "${"):
			r.offset = i
			value, length, b := r.resolve(rest)
			if b != nil {
				b.Offset = i
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
func (r *Resolver) resolve(text string) (string, int, *Fault) {
	end := strings.IndexByte(text, '}')
	if end < 0 {
		return text, len(text), &Fault{Message: `"${" has no "}"; write "$${" for a plain "${"`}
	}
	whole, inside := text[:end+1], text[2:end]
	if strings.Contains(inside, "${") {
		return whole, len(whole), &Fault{Message: "a reference inside a reference is not expanded; write a plain default"}
	}
	if value, bad, ours := r.lookupSecret(inside); ours {
		r.note(inside, value, bad)
		return value, len(whole), bad
	}
	parts := reference.FindStringSubmatch(inside)
	if parts == nil {
		return whole, len(whole), &Fault{Message: formMessage(inside)}
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
	return `between "${" and "}" must be NAME, NAME:-default, file:PATH, keyring:NAME or a secret of vault, op, aws or gcp; write "$${" for a plain "${"`
}

func unsetVariable(name string) *Fault {
	return &Fault{Missing: name, Message: fmt.Sprintf("the variable %.80s is not set", name),
		Fix: fmt.Sprintf("set it, or give a default: ${%.80s:-...}", name)}
}
