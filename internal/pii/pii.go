// Package pii detects personal data and secrets in text and JSON, and replaces them by tokens such as [EMAIL_1]. A
// [Detector] finds values; a [Vault] issues tokens for values and restores the values. Nothing here uses the network,
// writes a file or logs.
//
// Detected by form alone: e-mail, card, IBAN, SSN and other national ids, IP, MAC, URLs with a password, secrets with
// a known prefix, phone numbers with a country code or in the North American form. Detected only with a context word
// (in a text) or a key (in JSON, in a CSV header): other phone numbers, digits without form, dates of birth, names,
// addresses, passwords.
package pii

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kind is a kind of data. In tokens it is in capitals.
type Kind string

// The kinds.
const (
	Email      Kind = "email"
	Phone      Kind = "phone"
	Card       Kind = "card"
	IBAN       Kind = "iban"
	SSN        Kind = "ssn"
	NationalID Kind = "national_id" // of Brazil, France, Germany, Great Britain, India, Italy, the Netherlands, Poland, Spain, Switzerland
	IP         Kind = "ip"
	MAC        Kind = "mac"
	URL        Kind = "url"    // with a password in it
	Secret     Kind = "secret" // API keys, private keys, passwords
	BirthDate  Kind = "dob"
	Name       Kind = "name"
	Address    Kind = "address"
	// Field is a value that only the settings name, by its path.
	Field Kind = "field"
	// Text is not personal data: foreign text that looks like one of our tokens.
	Text Kind = "text"
)

// Kinds returns the kinds that can be configured.
func Kinds() []Kind {
	return []Kind{Email, Phone, Card, IBAN, SSN, NationalID, IP, MAC, URL, Secret, BirthDate, Name, Address}
}

// reservedKinds occur in tokens and cannot be configured.
func reservedKinds() []Kind { return []Kind{Field, Text} }

// Finding is one piece of data in a text, at its bytes Start to End.
type Finding struct {
	Kind       Kind
	Start, End int
	// number: it is a JSON number.
	number bool
	// echo: it is a known value, or a part of one.
	echo bool
}

// Options configure a [Detector]; nil means everything.
type Options struct {
	// Kinds are those to find; empty is all.
	Kinds []Kind
	// Custom are further kinds, by name: lower-case letters and "_". Their findings take precedence.
	Custom map[string]*regexp.Regexp
	// Recognized are further kinds that only Look.Recognized finds, as the names of Custom.
	Recognized []string
	// Allow are values that are never findings: the value itself, "example.com" for addresses in that domain, or a
	// glob as of path.Match. Case is ignored.
	Allow []string
}

// customName matches the name of a custom kind. Digits would make tokens ambiguous.
var customName = regexp.MustCompile(`^[a-z]([a-z_]{0,30}[a-z])?$`)

// CheckName returns what is wrong with the name of a custom kind, "" if it is valid.
func CheckName(name string) string {
	switch {
	case !customName.MatchString(name):
		return fmt.Sprintf(`%.40q cannot name a kind: small letters and "_", at most 32`, name)
	case slices.Contains(slices.Concat(Kinds(), reservedKinds()), Kind(name)):
		return fmt.Sprintf("%q is a kind already", name)
	}
	return ""
}

// Detector finds personal data. It is safe for concurrent use.
type Detector struct {
	class  [256]class
	kinds  map[Kind]bool
	custom []custom
	allow  []string
	labels map[string]bool // the names in tokens, in capitals
}

type custom struct {
	kind Kind
	re   *regexp.Regexp
}

// New returns a detector.
func New(opts *Options) (*Detector, error) {
	if opts == nil {
		opts = &Options{}
	}
	d := &Detector{class: classes(), kinds: map[Kind]bool{}, labels: map[string]bool{}}
	for _, k := range opts.Kinds {
		if !slices.Contains(Kinds(), k) {
			return nil, fmt.Errorf("detect personal data: unknown kind %.40q", k)
		}
		d.kinds[k] = true
	}
	if len(opts.Kinds) == 0 {
		for _, k := range Kinds() {
			d.kinds[k] = true
		}
	}
	for name, re := range opts.Custom {
		if wrong := CheckName(name); wrong != "" {
			return nil, fmt.Errorf("detect personal data: %s", wrong)
		}
		d.custom = append(d.custom, custom{Kind(name), re})
	}
	for _, name := range opts.Recognized {
		if wrong := CheckName(name); wrong != "" {
			return nil, fmt.Errorf("detect personal data: %s", wrong)
		}
		d.kinds[Kind(name)], d.labels[label(Kind(name))] = true, true
	}
	slices.SortFunc(d.custom, func(a, b custom) int { return strings.Compare(string(a.kind), string(b.kind)) })
	for _, k := range slices.Concat(Kinds(), reservedKinds()) {
		d.labels[label(k)] = true
	}
	for _, c := range d.custom {
		d.labels[label(c.kind)] = true
	}
	for _, a := range opts.Allow {
		a = strings.ToLower(a)
		if _, err := path.Match(a, ""); err != nil {
			return nil, fmt.Errorf("detect personal data: %.40q is not a glob", a)
		}
		d.allow = append(d.allow, a)
	}
	return d, nil
}

// label returns a kind's name in tokens.
func label(k Kind) string { return strings.ToUpper(string(k)) }

// allowed reports whether a value is on the allow list.
func (d *Detector) allowed(kind Kind, value string) bool {
	if len(d.allow) == 0 || kind == Text {
		return false
	}
	value = strings.ToLower(value)
	_, domain, _ := strings.Cut(value, "@")
	for _, a := range d.allow {
		if a == value || kind == Email && (domain == strings.TrimPrefix(a, "@") || strings.HasSuffix(domain, "."+strings.TrimPrefix(a, "@"))) {
			return true
		}
		if ok, _ := path.Match(a, value); ok {
			return true
		}
	}
	return false
}

// Find returns the findings in a text, in order and without overlap, including text that looks like a token, as of
// kind [Text].
func (d *Detector) Find(text string) []Finding { return d.find(text, hint{}, nil) }

// find is Find with the hint of the text's context; room is an empty buffer for the findings.
func (d *Detector) find(text string, h hint, room []Finding) []Finding {
	if kind, ok := d.whole(text, h); ok {
		return append(room, Finding{Kind: kind, Start: 0, End: len(text)})
	}
	s := scan{d: d, t: text, hint: h, found: room}
	s.run()
	if d.kinds[Secret] {
		s.found = d.withRules(text, s.found)
	}
	if len(d.custom) > 0 {
		s.found = d.withCustom(text, s.found)
	}
	return s.found
}

// withCustom adds the findings of the custom patterns, which take precedence over what they overlap.
func (d *Detector) withCustom(text string, found []Finding) []Finding {
	var own []Finding
	for _, c := range d.custom {
		for _, at := range c.re.FindAllStringIndex(text, -1) {
			if at[0] < at[1] && !d.allowed(c.kind, text[at[0]:at[1]]) {
				own = append(own, Finding{Kind: c.kind, Start: at[0], End: at[1]})
			}
		}
	}
	if len(own) == 0 {
		return found
	}
	return mergeFindings(own, found)
}

// mergeFindings merges two lists; of findings that overlap, the earlier one stays, then the one of the first list.
func mergeFindings(first, second []Finding) []Finding {
	own := inOrder(first)
	var all []Finding
	for _, f := range second {
		for len(own) > 0 && own[0].End <= f.Start {
			all, own = append(all, own[0]), own[1:]
		}
		if len(own) == 0 || f.End <= own[0].Start {
			all = append(all, f)
		}
	}
	return inOrder(append(all, own...))
}

// inOrder sorts findings and drops those that overlap an earlier one.
func inOrder(list []Finding) []Finding {
	slices.SortStableFunc(list, func(a, b Finding) int { return a.Start - b.Start })
	end := 0
	return slices.DeleteFunc(list, func(f Finding) bool {
		if f.Start < end {
			return true
		}
		end = f.End
		return false
	})
}
