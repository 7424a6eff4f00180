package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/names"
)

// generator generates labelled text.
type generator struct {
	*rand.Rand
	src         source
	templates   []string
	personWords map[string]bool // words that may be names of people
	places      map[string]bool
	pronoun     []string // examples of WordNet with a pronoun
	other       []string
	b           strings.Builder
	spans       []names.Span
}

func (m *generator) pick(list []string) string { return list[m.IntN(len(list))] }

func (m *generator) oneOf(list ...string) string { return m.pick(list) }

// label writes a value and records its label.
func (m *generator) label(sort, value string) {
	start := m.b.Len()
	m.b.WriteString(value)
	m.spans = append(m.spans, names.Span{Sort: sort, Start: start, End: m.b.Len()})
}

func (m *generator) digits(n int) string {
	var b strings.Builder
	b.WriteByte(byte('1' + m.IntN(9)))
	for range n - 1 {
		b.WriteByte(byte('0' + m.IntN(10)))
	}
	return b.String()
}

func (m *generator) name() string {
	if m.IntN(20) == 0 {
		return strings.ToUpper(m.pick(m.src.Given) + " " + m.pick(m.src.Last))
	}
	first, last := m.pick(m.src.Given), m.pick(m.src.Last)
	switch m.IntN(14) {
	case 0:
		return fmt.Sprintf("%s %c. %s", first, 'A'+rune(m.IntN(26)), last)
	case 1:
		return first + " " + m.pick(m.src.Given) + " " + last
	case 2:
		return fmt.Sprintf("%c. %s", 'A'+rune(m.IntN(26)), last)
	case 3:
		return first + " " + m.oneOf("van", "de", "von", "del", "van der", "di", "al", "bin") + " " + last
	case 4:
		return first + " " + last + "-" + m.pick(m.src.Last)
	case 5:
		return first
	}
	return first + " " + last
}

// word returns a common word with a capital.
func (m *generator) word() string { return capitalize(m.pick(m.src.Common)) }

// inventedWord returns an invented, pronounceable name.
func (m *generator) inventedWord() string {
	var b strings.Builder
	for range 2 + m.IntN(2) {
		b.WriteString(m.oneOf("ba", "co", "dex", "fi", "gra", "lu", "mer", "nix", "or", "per", "quo", "sint", "ta", "ver", "xi", "zen", "tron", "al", "cor", "tech", "va", "ly", "um"))
	}
	return capitalize(b.String())
}

func (m *generator) org() string {
	core := m.inventedWord()
	switch m.IntN(5) {
	case 0:
		core = m.word()
	case 1:
		core = m.pick(m.src.Last)
		switch m.IntN(3) {
		case 0:
			core += m.oneOf("-", " & ", " and ", ", "+m.pick(m.src.Last)+" and ", ", "+m.pick(m.src.Last)+" & ") + m.pick(m.src.Last)
			if m.IntN(2) == 0 {
				return core
			}
		case 1:
			core = m.pick(m.src.Given) + " " + core
		}
		return core + " " + m.oneOf("Inc.", "GmbH", "Ltd", "& Sons", "LLC", "AG", "Group", "Bank", "Motors", "Foods", "Airlines", "Holdings", "University")
	case 2:
		core = m.word() + " " + m.word()
	}
	if m.IntN(2) == 0 {
		core += " " + m.oneOf("Inc.", "GmbH", "Ltd", "Corp", "LLC", "AG", "Group", "Bank", "Systems", "Software", "Airlines", "Foundation", "Committee", "Institute")
	}
	return core
}

func (m *generator) product() string {
	switch m.IntN(5) {
	case 0:
		return m.inventedWord()
	case 1:
		return m.inventedWord() + m.word()
	case 2:
		return strings.ToUpper(m.inventedWord())
	case 3:
		return m.word() + m.word()
	}
	return m.word() + " " + m.digits(1+m.IntN(2))
}

// work returns the title of an invented work.
func (m *generator) work() string {
	if m.IntN(6) == 0 {
		return "The " + m.pick(m.src.Last) + " " + m.word()
	}
	var words []string
	for range 1 + m.IntN(4) {
		words = append(words, m.word())
	}
	if len(words) > 2 {
		words[1] = m.oneOf("of", "the", "and", "in", "for", words[1])
	}
	if m.IntN(3) == 0 {
		words = append([]string{"The"}, words...)
	}
	return strings.Join(words, " ")
}

func (m *generator) street() string {
	switch m.IntN(6) {
	case 0, 1:
		return m.pick(m.src.Street)
	case 2:
		return m.oneOf(m.pick(m.src.Last), m.word(), m.pick(m.src.Given)) + " " + m.oneOf("Street", "St", "St.", "Road", "Rd", "Avenue", "Ave", "Ave.", "Lane", "Drive", "Dr", "Boulevard", "Blvd", "Way", "Court", "Ct", "Place", "Square", "Terrace", "Crescent", "Parkway", "Highway")
	case 3:
		return m.oneOf(m.pick(m.src.Last), m.pick(m.src.City), m.word()) + m.oneOf("straße", "strasse", "weg", "gasse", "platz", "allee", "gatan", "vägen", "katu", "tie", "gade", "vej", "veien", "straat", "laan", "stræde", "kuja")
	case 4:
		return m.oneOf("Rue de", "rue", "avenue", "Avenue de", "Via", "Via della", "Calle", "Calle de", "Avenida", "Rua", "Rua da", "ul.", "Piazza", "Plaza", "Praça", "Viale", "Paseo") + " " + m.oneOf(m.pick(m.src.Last), m.pick(m.src.City), capitalize(m.pick(m.src.Common)))
	}
	return m.pick(m.src.Last) + " " + m.pick(m.src.Suffix)
}

func (m *generator) address() string {
	n := m.digits(1 + m.IntN(4))
	line := n + " " + m.street()
	switch m.IntN(6) {
	case 0, 1:
		line = m.street() + " " + n
	case 2:
		line = m.oneOf(n+" ", "") + m.street() + " " + m.digits(1+m.IntN(3))
	case 3:
		line = n + ", " + m.street()
	}
	if m.IntN(25) == 0 {
		line = m.oneOf("P.O. Box ", "PO Box ") + n
	}
	if m.IntN(4) == 0 {
		line += m.oneOf(" ", ", ") + m.oneOf("Apt. ", "Apt ", "Suite ", "Unit ", "Flat ", "#", "Floor ", "Room ") + m.digits(1+m.IntN(3)) + m.oneOf("", "", "A", "B")
	}
	sep := m.oneOf(", ", ", ", "\n", " ", "\n, ")
	city, zip := m.pick(m.src.City), m.digits(4+m.IntN(2))
	if m.IntN(5) == 0 {
		zip = fmt.Sprintf("%c%c%d %d%c%c", 'A'+rune(m.IntN(26)), 'A'+rune(m.IntN(26)), m.IntN(20), m.IntN(9), 'A'+rune(m.IntN(26)), 'A'+rune(m.IntN(26)))
	}
	state := m.oneOf(m.pick(m.src.Region), string(rune('A'+m.IntN(26)))+string(rune('A'+m.IntN(26))))
	switch m.IntN(8) {
	case 0, 1, 2:
	case 3:
		line += sep + zip + " " + city
	case 4:
		line += sep + city
	case 5:
		line += sep + city + m.oneOf(", ", " ", "\n") + state + " " + zip
	case 6:
		line += sep + city + m.oneOf(", ", " ") + zip
	case 7:
		line += sep + city + sep + m.oneOf(state, zip) + sep + m.oneOf(m.pick(m.src.Country), strings.ToUpper(m.pick(m.src.Country))) + m.oneOf("", " "+zip)
	}
	return line
}

func (m *generator) place() string {
	if m.IntN(10) == 0 {
		return strings.ToUpper(m.pick(m.src.City))
	}
	return m.oneOf(m.pick(m.src.City), m.pick(m.src.City), m.pick(m.src.Country), m.pick(m.src.Region), m.pick(m.src.Places))
}

// slot writes a value for a slot of a template.
func (m *generator) slot(name string) {
	switch name {
	case "name":
		m.label(names.Person, m.name())
	case "possname":
		m.label(names.Person, m.name())
		m.b.WriteString(m.oneOf("'s", "'s", "’s"))
	case "given":
		m.label(names.Person, m.pick(m.src.Given))
	case "last":
		m.label(names.Person, m.pick(m.src.Last))
	case "address":
		m.label(names.Address, m.address())
	case "street":
		m.label(names.Address, m.street())
	case "place":
		m.label(names.Place, m.place())
	case "country":
		m.label(names.Place, m.pick(m.src.Country))
	default:
		m.b.WriteString(m.unlabelled(name))
	}
}

// unlabelled returns a value for a slot without a label.
func (m *generator) unlabelled(name string) string {
	made := map[string]func() string{
		"org": m.org, "product": m.product, "work": m.work, "phone": m.phone, "iban": m.iban, "date": m.date,
		"num":     func() string { return m.digits(1 + m.IntN(5)) },
		"year":    func() string { return fmt.Sprint(1900 + m.IntN(130)) },
		"id":      func() string { return m.oneOf("A", "INV-", "#", "REQ") + m.digits(5) },
		"initial": func() string { return string(rune('A' + m.IntN(26))) },
		"nation":  func() string { return m.pick(m.src.Nations) },
	}
	if f := made[name]; f != nil {
		return f()
	}
	return m.pick(map[string][]string{
		"title": {"Mr.", "Mrs.", "Ms.", "Dr.", "Mr", "Mrs", "Ms", "Dr", "Prof.", "Miss", "Sir", "Madam"},
		"role":  {"manager", "Sales Manager", "head of support", "CEO", "Chief Technology Officer", "director", "Software Engineer", "president", "Account Executive"},
		"day":   {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"},
		"month": {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
		"poss":  {"his", "her"},
	}[name])
}

func (m *generator) date() string {
	year := m.unlabelled("year")
	return m.oneOf(m.digits(1)+" "+m.unlabelled("month")+" "+year, "2024-0"+m.digits(1)+"-1"+m.digits(1), "0"+m.digits(1)+"/1"+m.digits(1)+"/"+year)
}

func (m *generator) phone() string {
	return m.oneOf("+"+m.digits(2)+" "+m.digits(3)+" "+m.digits(7), m.digits(3)+"-"+m.digits(3)+"-"+m.digits(4), "("+m.digits(3)+") "+m.digits(3)+"-"+m.digits(4), "0"+m.digits(3)+" "+m.digits(2)+" "+m.digits(2)+" "+m.digits(2))
}

func (m *generator) iban() string {
	return string(rune('A'+m.IntN(26))) + string(rune('A'+m.IntN(26))) + m.digits(2) + m.oneOf("", "ABNA", "BUKB") + m.digits(14)
}

// newGenerator returns a maker. Equal seeds give equal texts.
func newGenerator(src source, templates string, seed uint64) (*generator, error) {
	data, err := os.ReadFile(templates)
	if err != nil {
		return nil, err
	}
	m := &generator{Rand: rand.New(rand.NewPCG(seed, 2)), src: src, personWords: map[string]bool{}, places: map[string]bool{}} //nolint:gosec // reproducible on purpose
	for line := range strings.SplitSeq(string(data), "\n") {
		if line != "" && (line[0] != '#' || strings.HasPrefix(line, "# {")) {
			m.templates = append(m.templates, strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	for _, s := range slices.Concat(src.Given, src.Last, src.People) {
		for w := range strings.FieldsSeq(strings.ToLower(s)) {
			m.personWords[w] = true
		}
	}
	common := map[string]bool{}
	for _, w := range src.Common {
		common[w] = true
	}
	for _, s := range src.Places {
		m.places[s] = !common[strings.ToLower(s)]
	}
	for _, s := range src.Examples {
		low := " " + strings.ToLower(s) + " "
		switch has := func(w string) bool { return strings.Contains(low, " "+w+" ") }; {
		case !m.usable(s):
		case has("he"), has("she"), has("him"), has("his"):
			m.pronoun = append(m.pronoun, s)
		default:
			m.other = append(m.other, s)
		}
	}
	return m, nil
}

// examples returns n examples.
func (m *generator) examples(n int) []names.Example {
	all := make([]names.Example, n)
	for i := range all {
		switch m.IntN(12) {
		case 0, 1:
			all[i] = m.sentence(m.pick(m.pronoun))
		case 2:
			all[i] = m.sentence(m.pick(m.other))
		case 3, 4:
			all[i] = names.Example{Text: m.pick(m.src.comments)}
			continue
		default:
			all[i] = m.template(m.pick(m.templates))
		}
		m.vary(&all[i])
	}
	return all
}

// vary changes some examples to lower or upper case, and appends a sentence to others.
func (m *generator) vary(e *names.Example) {
	switch {
	case m.IntN(30) == 0:
		if low := strings.ToLower(e.Text); len(low) == len(e.Text) {
			e.Text = low
		}
	case len(e.Spans) == 0 && m.IntN(20) == 0:
		e.Text = strings.ToUpper(e.Text)
	}
	if m.IntN(4) > 0 {
		return
	}
	before := *e
	next := m.sentence(m.pick(m.other))
	for _, s := range next.Spans {
		by := len(before.Text) + 2
		before.Spans = append(before.Spans, names.Span{Sort: s.Sort, Start: s.Start + by, End: s.End + by})
	}
	e.Text, e.Spans = before.Text+". "+next.Text, before.Spans
}

// template fills the slots of a template.
func (m *generator) template(t string) names.Example {
	m.b.Reset()
	m.spans = nil
	for {
		before, rest, found := strings.Cut(t, "{")
		m.b.WriteString(before)
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		m.slot(name)
		t = after
	}
	return m.example()
}

func (m *generator) example() names.Example {
	return names.Example{Text: m.b.String(), Spans: m.spans}
}

// sentence replaces pronouns of a WordNet sentence by names, and some other words by capitalized ones.
func (m *generator) sentence(s string) names.Example {
	m.b.Reset()
	m.spans = nil
	before := ""
	for i, w := range strings.Split(s, " ") {
		if i > 0 {
			m.b.WriteByte(' ')
		}
		if i == 0 && m.IntN(2) == 0 {
			w = capitalize(w)
		}
		core := strings.TrimRight(w, ",.;:!?")
		m.replaceWord(core, before)
		m.b.WriteString(w[len(core):])
		before = w
	}
	return m.example()
}

// replaceWord writes a word or a random replacement for it.
func (m *generator) replaceWord(word, before string) {
	switch low := strings.ToLower(word); {
	case slices.Contains([]string{"he", "she", "him"}, low) && m.IntN(3) > 0:
		m.label(names.Person, m.oneOf(m.name(), m.name(), m.pick(m.src.Given), m.pick(m.src.Last)))
	case slices.Contains([]string{"his", "he's", "she's"}, low) && m.IntN(3) > 0:
		m.label(names.Person, m.oneOf(m.name(), m.pick(m.src.Given), m.pick(m.src.Last)))
		m.b.WriteString("'s")
	case slices.Contains([]string{"company", "team", "software"}, low) && m.IntN(2) == 0:
		m.b.WriteString(m.org())
	case slices.Contains(beforeNames, before) && len(word) > 2 && m.IntN(8) == 0:
		m.b.WriteString(m.oneOf(m.org(), m.product(), m.work(), m.unlabelled("nation")))
	case m.places[word]:
		m.label(names.Place, word)
	default:
		m.b.WriteString(word)
	}
}

// beforeNames lists words that may precede a name.
var beforeNames = []string{"the", "a", "of", "in", "with", "from", "by", "to", "and", "for"}

// usable reports whether a sentence has no capitalized word that may be an unlabelled name of a person.
func (m *generator) usable(s string) bool {
	for i, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		r, _ := utf8.DecodeRuneInString(w)
		if unicode.IsUpper(r) && m.personWords[strings.ToLower(w)] && !m.places[w] && !(i == 0) {
			return false
		}
	}
	return true
}
