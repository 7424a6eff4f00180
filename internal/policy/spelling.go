package policy

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"sallyport/internal/expr"
)

// Errors of keys that an upstream may read differently from the rules.
var (
	errAmbiguousKeys = errors.New("an object has two keys that differ only in case or encoding")
	errSpelling      = errors.New("a key differs only in case or encoding from one that a rule names")
)

// spellings maps the folded form of keys to the names that rules use.
type spellings map[string][]string

// ruleKeys returns the argument names that the rules for a tool use.
func (p *Policy) ruleKeys(tool string) spellings {
	s := spellings{}
	for i := range p.rules {
		if r := &p.rules[i]; r.covers(tool) {
			s.add(r.when)
			s.add(r.cost)
		}
	}
	return s
}

func (s spellings) add(p *expr.Program) {
	if p == nil {
		return
	}
	for _, name := range p.Keys("args") {
		s[fold(name)] = append(s[fold(name)], name)
	}
}

// check finds keys that an upstream might confuse with others. Their order and values are ignored.
func (s spellings) check(value any) error {
	switch v := value.(type) {
	case map[string]any:
		return s.object(v)
	case []any:
		for _, item := range v {
			if err := s.check(item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s spellings) object(object map[string]any) error {
	seen := make(map[string]bool, len(object))
	for key, value := range object {
		folded := fold(key)
		if seen[folded] {
			return errAmbiguousKeys
		}
		seen[folded] = true
		if !s.knows(folded, key) {
			return errSpelling
		}
		if err := s.check(value); err != nil {
			return err
		}
	}
	return nil
}

// knows reports whether a key is spelled as in a rule, or resembles none of a rule.
func (s spellings) knows(folded, key string) bool {
	names, ok := s[folded]
	return !ok || slices.Contains(names, key)
}

// fold maps keys that differ only in case, in Unicode form (NFKC) or in invisible characters to the same text.
func fold(key string) string {
	if isASCII(key) {
		return strings.ToLower(key)
	}
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, key)
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(seen)))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
