package pii

import (
	"strings"
	"unicode"
)

// Prose returns a Look that collects the texts of a document in which a recognizer could find names and addresses:
// those of two words or more. It visits the same texts as Replace with the same options.
func (d *Detector) Prose(texts *Texts) *Look {
	return &Look{NamesOnly: true, Names: func(text string) []Finding {
		if IsProse(text) {
			texts.add(text)
		}
		return nil
	}}
}

// Every is Prose for a recognizer that finds data in any text.
func (d *Detector) Every(texts *Texts) *Look {
	return &Look{NamesOnly: true, Names: func(text string) []Finding {
		texts.add(text)
		return nil
	}}
}

// Texts is a set of texts, in the order of insertion.
type Texts struct {
	List []string
	// Bytes is their total length.
	Bytes int
	known map[string]bool
}

func (t *Texts) add(text string) {
	if text == "" || t.known[text] {
		return
	}
	if t.known == nil {
		t.known = map[string]bool{}
	}
	t.known[text] = true
	t.List = append(t.List, text)
	t.Bytes += len(text)
}

// IsProse reports whether a text has two words of letters.
func IsProse(text string) bool {
	words := 0
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			if words++; words == 2 {
				return true
			}
		}
	}
	return false
}

// withRecognized adds the findings of a recognizer, except for the parts that were found already. recognized is
// sorted and has no overlaps.
func (d *Detector) withRecognized(text string, recognized, found []Finding) []Finding {
	if len(recognized) == 0 {
		return found
	}
	found = inOrder(found)
	var own []Finding
	next := 0
	for _, r := range recognized {
		for next < len(found) && found[next].End <= r.Start {
			next++
		}
		start := r.Start
		for i := next; i < len(found) && found[i].Start < r.End; i++ {
			own = d.addRecognized(own, text, Finding{Kind: r.Kind, Start: start, End: found[i].Start})
			start = found[i].End
		}
		own = d.addRecognized(own, text, Finding{Kind: r.Kind, Start: start, End: r.End})
	}
	if len(own) == 0 {
		return found
	}
	return mergeFindings(found, own)
}

// addRecognized adds a finding, without surrounding white space and signs, if its kind is wanted and it is not empty.
func (d *Detector) addRecognized(list []Finding, text string, f Finding) []Finding {
	if f.Start >= f.End || f.End > len(text) {
		return list
	}
	around := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	value := strings.TrimLeftFunc(text[f.Start:f.End], around)
	f.Start = f.End - len(value)
	value = strings.TrimRightFunc(value, func(r rune) bool { return around(r) && r != '.' && r != ')' })
	f.End = f.Start + len(value)
	if value == "" || !strings.ContainsFunc(value, unicode.IsLetter) && !strings.ContainsFunc(value, unicode.IsDigit) {
		return list
	}
	if !d.wanted(f.Kind) || d.allowed(f.Kind, value) {
		return list
	}
	return append(list, f)
}

// wanted reports whether a kind is enabled; custom kinds always are.
func (d *Detector) wanted(kind Kind) bool { return d.kinds[kind] || d.isCustom(kind) }

func (d *Detector) isCustom(kind Kind) bool {
	for _, c := range d.custom {
		if c.kind == kind {
			return true
		}
	}
	return false
}
