package index

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"
)

// productText has the names of services and products, see its head.
//
//go:embed products.txt
var productText string

// role is what a word is in a query besides its meaning.
type role int

const (
	word role = iota
	// proper is what is written as a name is: of a place, a person, a thing. A tool
	// takes it as a value and does not mention it.
	proper
	// value is a number, or stands in quotes.
	value
	// product is the name of a service: a tool that lacks it is for another one.
	product
)

// productTable maps the names of products to whether they count only with a capital.
func productTable() map[string]bool {
	table := map[string]bool{}
	for line := range strings.Lines(productText) {
		line, _, _ = strings.Cut(line, "#")
		for name := range strings.FieldsSeq(line) {
			key := strings.ToLower(name)
			table[key] = key != name
		}
	}
	return table
}

// roles returns what words of a query are, by their texts, from how its fields are written.
func (a *analyzers) roles(fields []string) map[string]role {
	roles := map[string]role{}
	title := titled(fields)
	start, quote := true, ""
	for _, raw := range fields {
		f := strings.Trim(raw, "`'\"()[]{}<>,;:?!*.")
		if quote == "" && raw != f && raw != "" {
			quote = opened(raw)
		}
		role := a.roleOf(f, start || title, quote != "")
		if role != word {
			for _, w := range a.list(f) {
				roles[w.text] = max(roles[w.text], role)
			}
		}
		if quote != "" && strings.HasSuffix(strings.TrimRight(raw, ",.;:?!)"), quote) {
			quote = ""
		}
		start = strings.HasSuffix(raw, ".") || strings.HasSuffix(raw, ":") || strings.HasSuffix(raw, "?") || strings.HasSuffix(raw, "!")
	}
	return roles
}

// opened returns the quotation mark that a field begins with, or "".
func opened(field string) string {
	if mark := strings.TrimLeft(field, "([{")[:]; mark != "" && (mark[0] == '\'' || mark[0] == '"') {
		return mark[:1]
	}
	return ""
}

func (a *analyzers) roleOf(f string, head, quoted bool) role {
	first, _ := utf8.DecodeRuneInString(f)
	capital := unicode.IsUpper(first)
	bare := strings.TrimSuffix(strings.TrimSuffix(f, "'s"), "’s")
	if needs, ok := a.products[strings.ToLower(bare)]; ok && (capital || !needs) && !(head && needs) {
		return product
	}
	switch {
	case quoted, unicode.IsDigit(first):
		return value
	case capital && !head && len(f) > 1 && !identifier(f):
		return proper
	}
	return word
}

// titled reports whether most words begin with a capital, so that one says nothing.
func titled(fields []string) bool {
	capitals, small := 0, 0
	for _, f := range fields {
		first, _ := utf8.DecodeRuneInString(f)
		switch {
		case unicode.IsUpper(first):
			capitals++
		case unicode.IsLower(first):
			small++
		}
	}
	return capitals > small
}

// plainValues puts words in the place of paths and addresses: a tool takes these
// as values, and what they are named after is not what is asked for.
func plainValues(fields []string) []string {
	plain := make([]string, len(fields))
	for i, f := range fields {
		plain[i] = plainValue(f)
	}
	return plain
}

func plainValue(field string) string {
	f := strings.Trim(field, "`'\"()[]{}<>,;:?!*.")
	_, rest, isURL := strings.Cut(f, "://")
	switch {
	case strings.ContainsAny(f, "{<") || strings.Contains(f, "/api/"): // of an interface, which a tool may be named after
		return field
	case isURL:
		host, _, _ := strings.Cut(rest, "/")
		return "url " + hostWords(host)
	case strings.HasPrefix(f, "/") || strings.HasPrefix(f, "~/") || strings.HasPrefix(f, "./") || strings.Count(f, "/") > 2 || len(f) > 2 && f[1:3] == ":\\":
		return "file " + extension(f)
	}
	return field
}

// hostWords returns the words of an address that name its owner.
func hostWords(host string) string {
	labels := strings.Split(strings.TrimPrefix(host, "www."), ".")
	return strings.Join(labels[:max(1, len(labels)-1)], " ")
}

// extension returns what stands after the last dot of a path, "" if that is no extension.
func extension(path string) string {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || len(path)-dot > 6 || strings.ContainsAny(path[dot:], "/\\") {
		return ""
	}
	return path[dot+1:]
}
