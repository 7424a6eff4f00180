package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWhole is the longest value that is classified as a whole by its key, in bytes.
const maxWhole = 300

// whole classifies a value as a whole, by its key.
func (d *Detector) whole(text string, h hint) (kind Kind, ok bool) {
	switch trimmed := strings.TrimSpace(text); {
	case h.field:
		kind = Field
		if k := wholeKind(h.sense); k != "" && (h.sense != maybeName || isPersonShape(text)) {
			kind = k
		}
		return kind, trimmed != ""
	case len(text) > maxWhole || trimmed != text || text == "":
		return "", false
	default:
		kind = wholeKind(h.sense)
	}
	if kind == "" || !d.kinds[kind] || !isLikeBy(h.sense, kind, text) || d.allowed(kind, text) {
		return "", false
	}
	if d.tokenAt(text, 0) == len(text) {
		return "", false
	}
	return kind, true
}

func wholeKind(said sense) Kind {
	switch said {
	case ofName:
		return Name
	case maybeName:
		return Name
	case ofAddress, ofCity:
		return Address
	case ofSecret, ofToken:
		return Secret
	}
	return ""
}

// isLikeBy is isLike for an ambiguous key: then the value has to have the right form.
func isLikeBy(said sense, kind Kind, text string) bool {
	switch said {
	case ofToken:
		return len(text) >= 16 && !strings.Contains(text, " ") && mixed(text)
	case maybeName:
		return isPersonShape(text)
	case ofCity:
		return isLike(Name, text)
	}
	return isLike(kind, text)
}

// isLike reports whether a value is of the kind that its key names, rather than a word about it.
func isLike(kind Kind, text string) bool {
	switch kind {
	case Name:
		letters := 0
		for _, r := range text {
			switch {
			case unicode.IsLetter(r):
				letters++
			case unicode.IsDigit(r), r == '@', r == '/', r == '{', r == '<', r == '=', r == ':':
				return false
			}
		}
		return letters >= 2 && !isNothing(text)
	case Address:
		return utf8.RuneCountInString(text) >= 6 && strings.ContainsAny(text, " ,\n") && !strings.ContainsAny(text, "@{}<>=") && !strings.Contains(text, "://")
	case Secret:
		return len(text) >= 4 && !isNothing(text) && strings.Trim(text, "*x•.") != "" && !strings.HasPrefix(text, "${")
	}
	return false
}

// isNothing reports whether a text is a placeholder for no value.
func isNothing(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "null", "none", "unknown", "n/a", "nil", "undefined", "string", "yes", "required", "optional", "redacted", "hidden", "[hidden]", "changeme":
		return true
	}
	return false
}
