package index

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"
)

// productText lists the names of services and products.
//
//go:embed products.txt
var productText string

// role classifies a word of a query by how it is written.
type role int

const (
	roleWord role = iota
	// roleProper is a capitalized name of a place, a person or a thing. A tool takes it as
	// a value and does not mention it.
	roleProper
	// roleValue is a number or a quoted word.
	roleValue
	// roleProduct is the name of a service: a tool that lacks it is for another service.
	roleProduct
)

// productTable maps the names of products to whether they must be capitalized.
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

// roles returns the roles of the words in fields, by word. Words that it omits have none.
func (a *analyzers) roles(fields []string) map[string]role {
	roles := map[string]role{}
	title := titled(fields)
	start, quote := true, ""
	for _, raw := range fields {
		f := strings.Trim(raw, "`'\"()[]{}<>,;:?!*.")
		if quote == "" && raw != f && raw != "" {
			quote = openingQuote(raw)
		}
		role := a.roleOf(f, start || title, quote != "")
		if role != roleWord {
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

// openingQuote returns the quotation mark at the start of a field, or "".
func openingQuote(field string) string {
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
		return roleProduct
	}
	switch {
	case quoted, unicode.IsDigit(first):
		return roleValue
	case capital && !head && len(f) > 1 && !identifier(f):
		return roleProper
	}
	return roleWord
}

// titled reports whether most words begin with a capital, so that a capital is no evidence for a name.
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

// replaceValues replaces paths and URLs by generic words: a tool takes them as values,
// and the words in them do not describe it.
func replaceValues(fields []string) []string {
	plain := make([]string, len(fields))
	for i, f := range fields {
		plain[i] = replaceValue(f)
	}
	return plain
}

func replaceValue(field string) string {
	f := strings.Trim(field, "`'\"()[]{}<>,;:?!*.")
	_, rest, isURL := strings.Cut(f, "://")
	switch {
	case strings.ContainsAny(f, "{<") || strings.Contains(f, "/api/"): // an API path, which a tool may be named after
		return field
	case isURL:
		host, _, _ := strings.Cut(rest, "/")
		return "url " + hostWords(host)
	case strings.HasPrefix(f, "/") || strings.HasPrefix(f, "~/") || strings.HasPrefix(f, "./") || strings.Count(f, "/") > 2 || len(f) > 2 && f[1:3] == ":\\":
		return "file " + extension(f)
	}
	return field
}

// hostWords returns the labels of a host without "www" and the top-level domain.
func hostWords(host string) string {
	labels := strings.Split(strings.TrimPrefix(host, "www."), ".")
	return strings.Join(labels[:max(1, len(labels)-1)], " ")
}

// extension returns the file extension of a path without its dot, "" if there is none.
func extension(path string) string {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || len(path)-dot > 6 || strings.ContainsAny(path[dot:], "/\\") {
		return ""
	}
	return path[dot+1:]
}
