package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxName is the longest identifier, in bytes; longer ones are cut and get a digest.
const maxName = 64

// Identifier converts a wire name into an identifier of Python and TypeScript: letters, digits and underscores stay,
// everything else becomes "_"; a reserved word gets a trailing "_"; a leading digit gets a leading "_". A name
// without readable characters, or one that is too long, gets a digest of the wire name, so that two such names stay
// different.
func Identifier(wire string) string {
	id := strings.Map(identifierRune, wire)
	if strings.Trim(id, "_") == "" {
		return "tool_" + shortDigest(wire)
	}
	if id[0] >= '0' && id[0] <= '9' || strings.HasPrefix(id, "__") {
		id = "_" + strings.TrimLeft(id, "_")
	}
	if len(id) > maxName {
		id = id[:maxName-9] + "_" + shortDigest(wire)
	}
	if reserved[id] {
		id += "_"
	}
	return id
}

// Identifiers converts a list of names injectively and independently of its order, also on case-insensitive file
// systems: if two wire names would get the same identifier, the one that needed no change keeps it (of several, the
// one in lower case) and the others get a digest of their wire name. Equal wire names get equal identifiers.
func Identifiers(wires []string) []string {
	chosen := map[string]string{} // wire name to identifier
	taken := map[string]bool{}    // by identifiers in lower case
	names := slices.Compact(slices.Sorted(slices.Values(wires)))
	wanted := map[string][]string{}
	for _, w := range names {
		id := strings.ToLower(Identifier(w))
		wanted[id] = append(wanted[id], w)
	}
	for id, rivals := range wanted {
		if w, ok := unchangedName(rivals); ok {
			chosen[w], taken[id] = Identifier(w), true
		}
	}
	for _, w := range names {
		if chosen[w] == "" { // all names that need no digest are taken by now
			id := withDigest(Identifier(w), w, taken)
			chosen[w], taken[strings.ToLower(id)] = id, true
		}
	}
	ids := make([]string, len(wires))
	for i, w := range wires {
		ids[i] = chosen[w]
	}
	return ids
}

// unchangedName returns the one of sorted rivals that keeps the identifier. Lower case sorts last.
func unchangedName(rivals []string) (string, bool) {
	if len(rivals) == 1 {
		return rivals[0], true
	}
	for _, w := range slices.Backward(rivals) {
		if Identifier(w) == w {
			return w, true
		}
	}
	return "", false
}

// withDigest appends a digest of the wire name, and another one while the result is taken, since a hostile list may
// contain such names.
func withDigest(id, wire string, taken map[string]bool) string {
	id = cut(id, maxName-9)
	for seed := wire; ; seed += "\x00" {
		if name := id + "_" + shortDigest(seed); !taken[strings.ToLower(name)] {
			return name
		}
	}
}

func identifierRune(r rune) rune {
	switch {
	case r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return r
	}
	return '_'
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// reserved holds the keywords of both languages, and names that a wrapper package uses itself, that change the
// behaviour of JavaScript objects, or under which programs reach the gateway itself ("sallyport").
var reserved = wordSet(`
	False None True and as assert async await break class continue def del elif else except finally for from
	global if import in is lambda nonlocal not or pass raise return try while with yield match case type
	arguments catch const debugger default delete do enum eval export extends function implements instanceof
	interface let new null package private protected public static super switch this throw true false typeof
	undefined var void constructor prototype then index servers call resources prompts sallyport`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}
