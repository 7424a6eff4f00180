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

// maker generates labelled text.
type maker struct {
	*rand.Rand
	src       source
	templates []string
	bad       map[string]bool // words that may be names of people
	places    map[string]bool
	pronoun   []string // examples of WordNet with a pronoun
	other     []string
	b         strings.Builder
	spans     []names.Span
}

func (m *maker) one(list []string) string { return list[m.IntN(len(list))] }

func (m *maker) of(list ...string) string { return m.one(list) }

// label writes a value and records its label.
func (m *maker) label(sort, value string) {
	start := m.b.Len()
	m.b.WriteString(value)
	m.spans = append(m.spans, names.Span{Sort: sort, Start: start, End: m.b.Len()})
}

func (m *maker) digits(n int) string {
	var b strings.Builder
	b.WriteByte(byte('1' + m.IntN(9)))
	for range n - 1 {
		b.WriteByte(byte('0' + m.IntN(10)))
	}
	return b.String()
}

func (m *maker) name() string {
	if m.IntN(20) == 0 {
		return strings.ToUpper(m.one(m.src.Given) + " " + m.one(m.src.Last))
	}
	first, last := m.one(m.src.Given), m.one(m.src.Last)
	switch m.IntN(14) {
	case 0:
		return fmt.Sprintf("%s %c. %s", first, 'A'+rune(m.IntN(26)), last)
	case 1:
		return first + " " + m.one(m.src.Given) + " " + last
	case 2:
		return fmt.Sprintf("%c. %s", 'A'+rune(m.IntN(26)), last)
	case 3:
		return first + " " + m.of("van", "de", "von", "del", "van der", "di", "al", "bin") + " " + last
	case 4:
		return first + " " + last + "-" + m.one(m.src.Last)
	case 5:
		return first
	}
	return first + " " + last
}

// word returns a common word with a capital.
func (m *maker) word() string { return capital(m.one(m.src.Common)) }

// made returns an invented, pronounceable name.
func (m *maker) made() string {
	var b strings.Builder
	for range 2 + m.IntN(2) {
		b.WriteString(m.of("ba", "co", "dex", "fi", "gra", "lu", "mer", "nix", "or", "per", "quo", "sint", "ta", "ver", "xi", "zen", "tron", "al", "cor", "tech", "va", "ly", "um"))
	}
	return capital(b.String())
}

func (m *maker) org() string {
	core := m.made()
	switch m.IntN(5) {
	case 0:
		core = m.word()
	case 1:
		core = m.one(m.src.Last)
		switch m.IntN(3) {
		case 0:
			core += m.of("-", " & ", " and ", ", "+m.one(m.src.Last)+" and ", ", "+m.one(m.src.Last)+" & ") + m.one(m.src.Last)
			if m.IntN(2) == 0 {
				return core
			}
		case 1:
			core = m.one(m.src.Given) + " " + core
		}
		return core + " " + m.of("Inc.", "GmbH", "Ltd", "& Sons", "LLC", "AG", "Group", "Bank", "Motors", "Foods", "Airlines", "Holdings", "University")
	case 2:
		core = m.word() + " " + m.word()
	}
	if m.IntN(2) == 0 {
		core += " " + m.of("Inc.", "GmbH", "Ltd", "Corp", "LLC", "AG", "Group", "Bank", "Systems", "Software", "Airlines", "Foundation", "Committee", "Institute")
	}
	return core
}

func (m *maker) product() string {
	switch m.IntN(5) {
	case 0:
		return m.made()
	case 1:
		return m.made() + m.word()
	case 2:
		return strings.ToUpper(m.made())
	case 3:
		return m.word() + m.word()
	}
	return m.word() + " " + m.digits(1+m.IntN(2))
}

// work returns the title of an invented work.
func (m *maker) work() string {
	if m.IntN(6) == 0 {
		return "The " + m.one(m.src.Last) + " " + m.word()
	}
	var words []string
	for range 1 + m.IntN(4) {
		words = append(words, m.word())
	}
	if len(words) > 2 {
		words[1] = m.of("of", "the", "and", "in", "for", words[1])
	}
	if m.IntN(3) == 0 {
		words = append([]string{"The"}, words...)
	}
	return strings.Join(words, " ")
}

func (m *maker) street() string {
	switch m.IntN(6) {
	case 0, 1:
		return m.one(m.src.Street)
	case 2:
		return m.of(m.one(m.src.Last), m.word(), m.one(m.src.Given)) + " " + m.of("Street", "St", "St.", "Road", "Rd", "Avenue", "Ave", "Ave.", "Lane", "Drive", "Dr", "Boulevard", "Blvd", "Way", "Court", "Ct", "Place", "Square", "Terrace", "Crescent", "Parkway", "Highway")
	case 3:
		return m.of(m.one(m.src.Last), m.one(m.src.City), m.word()) + m.of("straße", "strasse", "weg", "gasse", "platz", "allee", "gatan", "vägen", "katu", "tie", "gade", "vej", "veien", "straat", "laan", "stræde", "kuja")
	case 4:
		return m.of("Rue de", "rue", "avenue", "Avenue de", "Via", "Via della", "Calle", "Calle de", "Avenida", "Rua", "Rua da", "ul.", "Piazza", "Plaza", "Praça", "Viale", "Paseo") + " " + m.of(m.one(m.src.Last), m.one(m.src.City), capital(m.one(m.src.Common)))
	}
	return m.one(m.src.Last) + " " + m.one(m.src.Suffix)
}

func (m *maker) address() string {
	n := m.digits(1 + m.IntN(4))
	line := n + " " + m.street()
	switch m.IntN(6) {
	case 0, 1:
		line = m.street() + " " + n
	case 2:
		line = m.of(n+" ", "") + m.street() + " " + m.digits(1+m.IntN(3))
	case 3:
		line = n + ", " + m.street()
	}
	if m.IntN(25) == 0 {
		line = m.of("P.O. Box ", "PO Box ") + n
	}
	if m.IntN(4) == 0 {
		line += m.of(" ", ", ") + m.of("Apt. ", "Apt ", "Suite ", "Unit ", "Flat ", "#", "Floor ", "Room ") + m.digits(1+m.IntN(3)) + m.of("", "", "A", "B")
	}
	sep := m.of(", ", ", ", "\n", " ", "\n, ")
	city, zip := m.one(m.src.City), m.digits(4+m.IntN(2))
	if m.IntN(5) == 0 {
		zip = fmt.Sprintf("%c%c%d %d%c%c", 'A'+rune(m.IntN(26)), 'A'+rune(m.IntN(26)), m.IntN(20), m.IntN(9), 'A'+rune(m.IntN(26)), 'A'+rune(m.IntN(26)))
	}
	state := m.of(m.one(m.src.Region), string(rune('A'+m.IntN(26)))+string(rune('A'+m.IntN(26))))
	switch m.IntN(8) {
	case 0, 1, 2:
	case 3:
		line += sep + zip + " " + city
	case 4:
		line += sep + city
	case 5:
		line += sep + city + m.of(", ", " ", "\n") + state + " " + zip
	case 6:
		line += sep + city + m.of(", ", " ") + zip
	case 7:
		line += sep + city + sep + m.of(state, zip) + sep + m.of(m.one(m.src.Country), strings.ToUpper(m.one(m.src.Country))) + m.of("", " "+zip)
	}
	return line
}

func (m *maker) place() string {
	if m.IntN(10) == 0 {
		return strings.ToUpper(m.one(m.src.City))
	}
	return m.of(m.one(m.src.City), m.one(m.src.City), m.one(m.src.Country), m.one(m.src.Region), m.one(m.src.Places))
}

// slot writes a value for a slot of a template.
func (m *maker) slot(name string) {
	switch name {
	case "name":
		m.label(names.Person, m.name())
	case "possname":
		m.label(names.Person, m.name())
		m.b.WriteString(m.of("'s", "'s", "’s"))
	case "given":
		m.label(names.Person, m.one(m.src.Given))
	case "last":
		m.label(names.Person, m.one(m.src.Last))
	case "address":
		m.label(names.Address, m.address())
	case "street":
		m.label(names.Address, m.street())
	case "place":
		m.label(names.Place, m.place())
	case "country":
		m.label(names.Place, m.one(m.src.Country))
	default:
		m.b.WriteString(m.plain(name))
	}
}

// plain returns a value for a slot without a label.
func (m *maker) plain(name string) string {
	made := map[string]func() string{
		"org": m.org, "product": m.product, "work": m.work, "phone": m.phone, "iban": m.iban, "date": m.date,
		"num":     func() string { return m.digits(1 + m.IntN(5)) },
		"year":    func() string { return fmt.Sprint(1900 + m.IntN(130)) },
		"id":      func() string { return m.of("A", "INV-", "#", "REQ") + m.digits(5) },
		"initial": func() string { return string(rune('A' + m.IntN(26))) },
		"nation":  func() string { return m.one(m.src.Nations) },
	}
	if f := made[name]; f != nil {
		return f()
	}
	return m.one(map[string][]string{
		"title": {"Mr.", "Mrs.", "Ms.", "Dr.", "Mr", "Mrs", "Ms", "Dr", "Prof.", "Miss", "Sir", "Madam"},
		"role":  {"manager", "Sales Manager", "head of support", "CEO", "Chief Technology Officer", "director", "Software Engineer", "president", "Account Executive"},
		"day":   {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"},
		"month": {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
		"poss":  {"his", "her"},
	}[name])
}

func (m *maker) date() string {
	year := m.plain("year")
	return m.of(m.digits(1)+" "+m.plain("month")+" "+year, "2024-0"+m.digits(1)+"-1"+m.digits(1), "0"+m.digits(1)+"/1"+m.digits(1)+"/"+year)
}

func (m *maker) phone() string {
	return m.of("+"+m.digits(2)+" "+m.digits(3)+" "+m.digits(7), m.digits(3)+"-"+m.digits(3)+"-"+m.digits(4), "("+m.digits(3)+") "+m.digits(3)+"-"+m.digits(4), "0"+m.digits(3)+" "+m.digits(2)+" "+m.digits(2)+" "+m.digits(2))
}

func (m *maker) iban() string {
	return string(rune('A'+m.IntN(26))) + string(rune('A'+m.IntN(26))) + m.digits(2) + m.of("", "ABNA", "BUKB") + m.digits(14)
}

// newMaker returns a maker. Equal seeds give equal texts.
func newMaker(src source, templates string, seed uint64) (*maker, error) {
	data, err := os.ReadFile(templates)
	if err != nil {
		return nil, err
	}
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 2)), src: src, bad: map[string]bool{}, places: map[string]bool{}} //nolint:gosec // reproducible on purpose
	for line := range strings.SplitSeq(string(data), "\n") {
		if line != "" && (line[0] != '#' || strings.HasPrefix(line, "# {")) {
			m.templates = append(m.templates, strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	for _, s := range slices.Concat(src.Given, src.Last, src.People) {
		for w := range strings.FieldsSeq(strings.ToLower(s)) {
			m.bad[w] = true
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
func (m *maker) examples(n int) []names.Example {
	all := make([]names.Example, n)
	for i := range all {
		switch m.IntN(12) {
		case 0, 1:
			all[i] = m.sentence(m.one(m.pronoun))
		case 2:
			all[i] = m.sentence(m.one(m.other))
		case 3, 4:
			all[i] = names.Example{Text: m.one(m.src.comments)}
			continue
		default:
			all[i] = m.template(m.one(m.templates))
		}
		m.vary(&all[i])
	}
	return all
}

// vary changes some examples to lower or upper case, and appends a sentence to others.
func (m *maker) vary(e *names.Example) {
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
	next := m.sentence(m.one(m.other))
	for _, s := range next.Spans {
		by := len(before.Text) + 2
		before.Spans = append(before.Spans, names.Span{Sort: s.Sort, Start: s.Start + by, End: s.End + by})
	}
	e.Text, e.Spans = before.Text+". "+next.Text, before.Spans
}

// template fills the slots of a template.
func (m *maker) template(t string) names.Example {
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
	return m.done()
}

func (m *maker) done() names.Example {
	return names.Example{Text: m.b.String(), Spans: m.spans}
}

// sentence replaces pronouns of a WordNet sentence by names, and some other words by capitalized ones.
func (m *maker) sentence(s string) names.Example {
	m.b.Reset()
	m.spans = nil
	before := ""
	for i, w := range strings.Split(s, " ") {
		if i > 0 {
			m.b.WriteByte(' ')
		}
		if i == 0 && m.IntN(2) == 0 {
			w = capital(w)
		}
		core := strings.TrimRight(w, ",.;:!?")
		m.instead(core, before)
		m.b.WriteString(w[len(core):])
		before = w
	}
	return m.done()
}

// instead writes a word or a random replacement for it.
func (m *maker) instead(word, before string) {
	switch low := strings.ToLower(word); {
	case slices.Contains([]string{"he", "she", "him"}, low) && m.IntN(3) > 0:
		m.label(names.Person, m.of(m.name(), m.name(), m.one(m.src.Given), m.one(m.src.Last)))
	case slices.Contains([]string{"his", "he's", "she's"}, low) && m.IntN(3) > 0:
		m.label(names.Person, m.of(m.name(), m.one(m.src.Given), m.one(m.src.Last)))
		m.b.WriteString("'s")
	case slices.Contains([]string{"company", "team", "software"}, low) && m.IntN(2) == 0:
		m.b.WriteString(m.org())
	case slices.Contains(linking, before) && len(word) > 2 && m.IntN(8) == 0:
		m.b.WriteString(m.of(m.org(), m.product(), m.work(), m.plain("nation")))
	case m.places[word]:
		m.label(names.Place, word)
	default:
		m.b.WriteString(word)
	}
}

// linking lists words that may precede a name.
var linking = []string{"the", "a", "of", "in", "with", "from", "by", "to", "and", "for"}

// usable reports whether a sentence has no capitalized word that may be an unlabelled name of a person.
func (m *maker) usable(s string) bool {
	for i, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		r, _ := utf8.DecodeRuneInString(w)
		if unicode.IsUpper(r) && m.bad[strings.ToLower(w)] && !m.places[w] && !(i == 0) {
			return false
		}
	}
	return true
}
