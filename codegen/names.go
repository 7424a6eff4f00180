package codegen

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/tool"
)

const (
	// maxName is the maximum wire name of a member that gets a type, in bytes.
	maxName = 256
	// maxParam is the longest name of a Python parameter.
	maxParam = 64
)

var wordPattern = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// isIdentifier reports whether name is an ASCII identifier in both languages.
func isIdentifier(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r != '_' && asciiIdentifier(r) == '_' })
}

// usable reports whether a name of a tool or upstream is valid in code and as a file name.
func usable(name string) bool {
	return len(name) <= 128 && isIdentifier(name) && !strings.HasPrefix(name, "__") &&
		(len(name) > maxParam || tool.Identifier(name) == name)
}

// name reserves and returns an unused type name for a hint, in Pascal case.
func (c *converter) name(hint string) string {
	base := pascal(hint)
	name := base
	for n := 2; c.takenNames[name] || reservedTypes[name]; n++ {
		name = base + strconv.Itoa(n)
	}
	c.takenNames[name] = true
	return name
}

func pascal(hint string) string {
	var b strings.Builder
	for _, w := range wordPattern.FindAllString(hint[:min(len(hint), maxName)], 8) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		if b.Len() > 40 {
			break
		}
	}
	name := b.String()
	if name == "" || name[0] < 'A' {
		return "Type" + name
	}
	return name
}

// singular returns a name for one element of a list with this name.
func singular(hint string) string {
	lower := strings.ToLower(hint)
	switch {
	case strings.HasSuffix(lower, "ies") && len(hint) > 4:
		return hint[:len(hint)-3] + "y"
	case hasAnySuffix(lower, "sses", "xes", "ches", "shes"):
		return hint[:len(hint)-2]
	case strings.HasSuffix(lower, "s") && len(hint) > 2 && !hasAnySuffix(lower, "ss", "us", "is"):
		return hint[:len(hint)-1]
	}
	return hint + "Item"
}

func hasAnySuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(s, suffix) })
}

// pyParams returns the Python names of the parameters, in order. It keeps valid wire
// names, converts others, and numbers duplicates.
func pyParams(fields []field) []string {
	taken := map[string]bool{}
	for _, f := range fields {
		if isPyParamName(f.name) {
			taken[f.name] = true
		}
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		if names[i] = f.name; !isPyParamName(f.name) {
			names[i] = uniqueName(pyName(f.name), taken)
		}
	}
	return names
}

// uniqueName returns name, with a number if it is taken, and adds the result to taken.
func uniqueName(name string, taken map[string]bool) string {
	candidate := name
	for n := 2; taken[candidate]; n++ {
		candidate = name + "_" + strconv.Itoa(n)
	}
	taken[candidate] = true
	return candidate
}

func isPyParamName(name string) bool {
	return len(name) <= maxParam && isIdentifier(name) && !strings.HasPrefix(name, "__") && !pyKeywords[name]
}

// pyName converts any text to the name of a parameter. "<" and ">", the suffixes of
// query filters, become "_lt" and "_gt".
func pyName(wire string) string {
	name := strings.ReplaceAll(strings.ReplaceAll(wire, "<", "_lt"), ">", "_gt")
	name = strings.Map(asciiIdentifier, name)
	switch {
	case strings.Trim(name, "_") == "":
		return "arg_" + shortDigest(wire)
	case len(name) > maxParam:
		return strings.TrimLeft(name[:maxParam-9], "_") + "_" + shortDigest(wire)
	}
	if name = strings.Trim(name, "_"); name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	if pyKeywords[name] {
		return name + "_"
	}
	return name
}

func asciiIdentifier(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '_'
}

func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// pyKeywords are invalid as names of parameters; _extra is reserved for the wrapper.
var pyKeywords = stringSet(strings.Fields(`False None True and as assert async await break class continue def del elif
	else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield
	_extra`))

// reservedTypes are names that the generated code uses itself, or that would be misleading.
var reservedTypes = stringSet(strings.Fields(`Any Blob Literal TypedDict NotRequired TypeAlias OMIT SPEC Promise Record Array Object String
	Number Boolean Function Symbol Date Error Map Set None True False`))
