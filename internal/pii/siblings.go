package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// siblingsWithin bounds how much of an object is searched for the keys of its other members, in bytes.
const siblingsWithin = 4096

// personKey reports whether the value of a key is a person, or an object about one.
func personKey(joined string) bool {
	switch joined {
	case "author", "assignee", "reporter", "creator", "owner", "user", "contact", "customer", "person", "employee", "member", "sender", "recipient",
		"organizer", "attendee", "approver", "reviewer", "committer", "createdby", "updatedby", "assignedto", "requester",
		"nom", "nomcomplet", "nombre", "nombrecompleto", "nome", "nomecompleto", "naam", "namn", "navn", "imie", "imię", "nimi", "isim", "autor", "auteur", "autore": //nolint:misspell // other languages
		return true
	}
	return false
}

// isPersonContext reports whether a key occurs only in objects about persons: there "name" is a person's.
func isPersonContext(joined string) bool {
	switch joined {
	case "gender", "jobtitle", "salutation", "nationality", "maritalstatus", "anrede", "geschlecht":
		return true
	}
	return false
}

// isAddressContext reports whether a key occurs in objects about addresses: there "city" is part of an address.
func isAddressContext(joined string) bool {
	switch joined {
	case "street", "streetaddress", "line1", "addressline1", "street1", "zip", "zipcode", "postcode", "postalcode", "plz", "strasse", "straße", "calle", "rue", "housenumber":
		return true
	}
	return false
}

func isCity(joined string) bool {
	switch joined {
	case "city", "town", "locality", "ort", "stadt", "wohnort", "ciudad", "ville", "cidade", "città", "citta", "plaats", "miasto", "stad", "by":
		return true
	}
	return false
}

// siblingSense returns the meaning of a key that ends at end, given the other keys of its object, which begins at
// start of the raw JSON, and the object's own key.
func siblingSense(key, raw string, start, end int, ofPersonObject bool) sense {
	if len(key) > maxKey {
		return 0
	}
	switch joined := joinedWords(key); {
	case personKey(joined):
		return maybeName
	case joined == "name" && (ofPersonObject || hasSibling(raw[start:], isPersonContext) || isInAddress(valueAfter(raw[end:]), raw[start:])):
		return maybeName
	case isCity(joined) && hasSibling(raw[start:], isAddressContext):
		return ofCity
	}
	return 0
}

// valueAfter returns the string value of a key, as encoded in JSON; "" for another value.
func valueAfter(raw string) string {
	rest := strings.TrimLeft(raw[:min(len(raw), 2*longestName)], " \t\r\n:")
	if !strings.HasPrefix(rest, `"`) {
		return ""
	}
	if end := stringEnd(rest, 0); end > 0 {
		return rest[1 : end-1]
	}
	return ""
}

// isInAddress reports whether a word of a person's name is in an e-mail address of the same object.
func isInAddress(name, raw string) bool {
	if !isPersonShape(name) {
		return false
	}
	raw = raw[:min(len(raw), siblingsWithin)]
	for i, b := range []byte(raw) {
		if b != '@' {
			continue
		}
		local := strings.ToLower(raw[max(0, i-64):i])
		local = local[strings.LastIndexAny(local, "\" :<")+1:]
		for word := range strings.FieldsSeq(strings.ToLower(name)) {
			if len(word) >= 3 && strings.Contains(local, word) {
				return true
			}
		}
	}
	return false
}

// hasSibling searches the keys of the object at the start of raw.
func hasSibling(raw string, fits func(joined string) bool) bool {
	raw = raw[:min(len(raw), siblingsWithin)]
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return false
			}
		case '"':
			end := stringEnd(raw, i)
			if end < 0 {
				return false
			}
			if next := strings.TrimLeft(raw[end:min(len(raw), end+8)], " \t\r\n"); depth == 1 && strings.HasPrefix(next, ":") && end-i-2 <= maxKey && fits(joinedWords(raw[i+1:end-1])) {
				return true
			}
			i = end - 1
		}
	}
	return false
}

// stringEnd returns the offset after the JSON string at i, -1 if it is not closed.
func stringEnd(raw string, i int) int {
	for k := i + 1; k < len(raw); k++ {
		switch raw[k] {
		case '\\':
			k++
		case '"':
			return k + 1
		}
	}
	return -1
}

// isPersonShape reports whether a text has the form of a person's full name: two to four capitalized words.
func isPersonShape(text string) bool {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > mostNameWords || len(text) > longestName {
		return false
	}
	capitals := 0
	for _, word := range words {
		first, size := utf8.DecodeRuneInString(word)
		switch {
		case strings.IndexFunc(word, notInName) >= 0, isThing(strings.ToLower(word)), len(word) > 3 && word == strings.ToUpper(word) && first < utf8.RuneSelf:
			return false
		case unicode.IsUpper(first):
			capitals++
		case !unicode.IsLetter(first), len(word) > 3+size: // von, de la
			return false
		}
	}
	return capitals >= 2
}

func notInName(r rune) bool { return !unicode.IsLetter(r) && !strings.ContainsRune("'’.-", r) }

// isThing reports whether a word marks the name of a thing or a company.
func isThing(word string) bool {
	switch strings.Trim(word, ".") {
	case "inc", "ltd", "llc", "gmbh", "ag", "corp", "company", "co", "team", "group", "project", "server", "service", "services", "api", "app", "bot", "test", "demo", "studio",
		"department", "board", "page", "the", "and", "new", "my", "default", "main", "admin", "system", "support", "public", "private", "project's", "open", "source",
		"issue", "report", "list", "table", "account", "user", "world", "systems", "software", "labs", "foundation", "university", "institute", "bank", "city", "database", "pipeline", "channel":
		return true
	}
	return false
}
