// Package piitest generates labelled text to evaluate a detector of personal data. [Samples] is deterministic for a
// seed. Values follow the rules of their kinds, independently of the detector's code, and appear in sentences, JSON,
// CSV and Markdown among similar values.
package piitest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"sallyport/internal/pii"
)

// Sample is one labelled text.
type Sample struct {
	Text   string
	Labels []Label
	// Fields is the number of benign fields.
	Fields int
}

// Label is one value and its kind.
type Label struct {
	Kind  pii.Kind
	Value string
}

// Samples returns n samples, a third of which contain only look-alikes.
func Samples(seed uint64, n int) []Sample {
	g := generator{rand.New(rand.NewPCG(seed, 8))}
	samples := make([]Sample, n)
	for i := range samples {
		switch i % 6 {
		case 0, 1:
			samples[i] = g.benign()
		case 2:
			samples[i] = g.document()
		case 3:
			samples[i] = g.table()
		default:
			samples[i] = g.sentence()
		}
	}
	return samples
}

type generator struct{ *rand.Rand }

func (g generator) one(list ...string) string { return list[g.IntN(len(list))] }

// fill replaces each 9 by a digit, each 8 by a nonzero digit, each A by a letter, each F by a hex digit.
func (g generator) fill(form string) string {
	var b strings.Builder
	for _, r := range form {
		switch r {
		case '9':
			b.WriteByte(byte('0' + g.IntN(10)))
		case '8':
			b.WriteByte(byte('1' + g.IntN(9)))
		case 'A':
			b.WriteByte(byte('A' + g.IntN(26)))
		case 'F':
			b.WriteByte("0123456789abcdef"[g.IntN(16)])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (g generator) first() string {
	return g.one("Ann", "José", "Marie-Claire", "Yusuf", "Li", "Sean", "Zoë", "Bob", "Priya", "Olaf", "Ngozi", "Ivan")
}

func (g generator) last() string {
	return g.one("O'Neil", "Garcia", "van der Berg", "Smith", "Müller", "Nakamura", "Silva", "Kowalski", "Dubois", "Okafor")
}

func (g generator) email() string {
	plain := strings.NewReplacer("é", "e", "ë", "e", "ü", "u", "'", "", " ", "").Replace(strings.ToLower(g.first() + g.one(".", "_", "", "-") + g.last()))
	return plain + g.one("", g.fill("99"), "+news", "+"+g.fill("9")) + "@" + g.one("example.com", "mail.example.org", "acme.co.uk", "uni-bonn.de", "x.io", "sub.dept.corp.example", "Example.COM", "münchen.de")
}

func luhn(body string) string {
	sum := 0
	for i := range len(body) {
		v := int(body[len(body)-1-i] - '0')
		if i%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return body + fmt.Sprint((10-sum%10)%10)
}

func (g generator) card() string {
	switch g.IntN(6) {
	case 0:
		n := luhn(g.fill(g.one("34", "37") + "999999999999"))
		return g.one(n, n[:4]+" "+n[4:10]+" "+n[10:], n[:4]+"-"+n[4:10]+"-"+n[10:])
	case 1:
		n := luhn(g.fill("4999999999999999999"[:15]))
		return g.quads(n)
	case 2:
		return g.quads(luhn(g.one("51", "52", "53", "54", "55") + g.fill("9999999999999")))
	case 3:
		return g.quads(luhn("6011" + g.fill("99999999999")))
	case 4:
		return g.quads(luhn(g.one("3530", "3566") + g.fill("99999999999")))
	}
	return g.quads(luhn("2" + g.one("3", "4", "5", "6") + g.fill("9999999999999")))
}

func (g generator) quads(n string) string {
	sep := g.one("", " ", "-")
	return n[:4] + sep + n[4:8] + sep + n[8:12] + sep + n[12:]
}

func mod97(digits string) int {
	rest := 0
	for _, r := range digits {
		rest = (rest*10 + int(r-'0')) % 97
	}
	return rest
}

func (g generator) iban() string {
	country, form, _ := strings.Cut(g.one("DE:999999999999999999", "GB:AAAA99999999999999", "FR:99999999999999999999999", "ES:99999999999999999999", "NL:AAAA9999999999", "NO:99999999999", "CH:99999999999999999", "PL:999999999999999999999999"), ":")
	body := g.fill(form)
	var digits strings.Builder
	for _, r := range body + country + "00" {
		if r >= 'A' {
			fmt.Fprint(&digits, int(r-'A')+10)
		} else {
			digits.WriteRune(r)
		}
	}
	all := country + fmt.Sprintf("%02d", 98-mod97(digits.String())) + body
	switch g.IntN(4) {
	case 0:
		return strings.ToLower(all)
	case 1:
		var groups []string
		for i := 0; i < len(all); i += 4 {
			groups = append(groups, all[i:min(len(all), i+4)])
		}
		return strings.Join(groups, " ")
	}
	return all
}

func (g generator) ssn() string {
	return fmt.Sprintf("%03d-%02d-%04d", 1+g.IntN(600), 1+g.IntN(99), 1+g.IntN(9999))
}

func (g generator) ip() string {
	if g.IntN(3) == 0 {
		return g.one(g.fill("2001:db8:FFFF:FFFF::FF"), g.fill("fe80::8FFF:FFFF:FFFF:8FFF"), g.fill("2a02:8FFF:8FFF:8FFF:8FFF:8FFF:8FFF:8FFF"))
	}
	return fmt.Sprintf("%d.%d.%d.%d", 1+g.IntN(126), g.IntN(256), g.IntN(256), 1+g.IntN(254))
}

// phone returns a number, and whether it is detectable without a context word.
func (g generator) phone() (number string, sure bool) {
	switch g.IntN(8) {
	case 0:
		return g.fill("+1415555") + g.fill("9999"), true
	case 1:
		return "+44 20 7946 0" + g.fill("999"), true
	case 2:
		return "+49 30 " + g.fill("9999999"), true
	case 3:
		return g.fill("(212) 555-9999"), true
	case 4:
		return g.fill("312-555-9999"), true
	case 5:
		return g.fill("+33 6 89 99 99 99"), true
	case 6:
		return g.fill("01.89.99.99.99"), false
	}
	return g.fill("0879 999 99 99"), false
}

func (g generator) national() (value, word string) {
	switch g.IntN(6) {
	case 0:
		return g.one("AB", "CE", "JK", "PW") + g.fill("999999") + g.one("A", "B", "C", "D"), "NINO"
	case 1:
		body := fmt.Sprintf("%d%02d%02d75%03d%03d", 1+g.IntN(2), g.IntN(100), 1+g.IntN(12), 1+g.IntN(900), 1+g.IntN(900))
		return body + fmt.Sprintf("%02d", 97-mod97(body)), "NIR"
	case 2:
		n := g.IntN(100_000_000)
		return fmt.Sprintf("%08d%c", n, "TRWAGMYFPDXBNJZSQVHLCKE"[n%23]), "DNI"
	case 3:
		d := g.fill("899999999")
		for range 2 {
			sum := 0
			for i := range len(d) {
				sum += int(d[i]-'0') * (len(d) + 1 - i)
			}
			d += fmt.Sprint(sum * 10 % 11 % 10)
		}
		return d[:3] + "." + d[3:6] + "." + d[6:9] + "-" + d[9:], "CPF"
	case 4:
		d := "756" + g.fill("999999999")
		sum := 0
		for i := range len(d) {
			sum += int(d[i]-'0') * (1 + i%2*2)
		}
		d += fmt.Sprint((10 - sum%10) % 10)
		return d[:3] + "." + d[3:7] + "." + d[7:11] + "." + d[11:], "AHV"
	}
	d := g.fill("99") + fmt.Sprintf("%02d%02d", 1+g.IntN(12), 1+g.IntN(28)) + g.fill("9999")
	sum := 0
	for i, w := range []int{1, 3, 7, 9, 1, 3, 7, 9, 1, 3} {
		sum += int(d[i]-'0') * w
	}
	return d + fmt.Sprint((10-sum%10)%10), "PESEL"
}

func (g generator) secret() string {
	const chars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	long := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = chars[g.IntN(len(chars))]
		}
		return string(b) + "a1B2"
	}
	return g.one("ghp_"+long(32), "sk-"+long(40), "AKIA"+strings.ToUpper(long(12)), "xoxb-"+g.fill("999999999999")+"-"+long(20), "glpat-"+long(16), "AIza"+long(31), "eyJ"+long(20)+"."+long(30)+"."+long(40), "npm_"+long(32), "sk_live_"+long(20))
}

// sentence is a text with one or two values.
func (g generator) sentence() Sample {
	var s Sample
	say := func(kind pii.Kind, value string, forms ...string) {
		s.Text += fmt.Sprintf(g.one(forms...), value) + g.one(" ", "\n", "\n\n", " "+g.filler()+" ")
		s.Labels = append(s.Labels, Label{kind, value})
	}
	for range 1 + g.IntN(3) {
		switch g.IntN(11) {
		case 0, 1:
			say(pii.Email, g.email(), "Write to %s.", "Contact: %s", "<%s>", "%s, please.", "- **Mail**: [%s]", "from=%s;", "mailto:%s", "“%s”")
		case 2, 3:
			number, sure := g.phone()
			forms := []string{"Call %s today.", "Phone: %s", "tel. %s,", "My mobile is %s.", "| phone | %s |", "%s (mobile)"}
			if sure {
				forms = append(forms, "You reach us under %s.", "%s")
			}
			say(pii.Phone, number, forms...)
		case 4:
			say(pii.Card, g.card(), "I paid with %s yesterday.", "card number %s", "Card: %s, exp 12/29", "VISA %s", "charge %s please")
		case 5:
			say(pii.IBAN, g.iban(), "Transfer to %s.", "IBAN: %s", "account %s at the bank", "(%s)")
		case 6:
			say(pii.SSN, g.ssn(), "SSN %s.", "My social security number is %s", "ssn: %s", "applicant %s")
		case 7:
			say(pii.IP, g.ip(), "Login from %s at noon", "client=%s ", "host %s is down.", "[%s]", "ping %s")
		case 8:
			value, word := g.national()
			say(pii.NationalID, value, word+": %s", "the "+word+" %s was given")
		case 9:
			say(pii.Secret, g.secret(), "token %s", "export KEY=%s", "Authorization: Bearer %s", "`%s`")
		case 10:
			say(pii.MAC, g.fill("08:FF:FF:FF:FF:88"), "device %s joined", "ether %s txqueuelen")
			say(pii.URL, "https://"+g.fill("user99:pwFFFF")+"@db.example.com/x", "see %s", "DATABASE_URL=%s")
		}
	}
	return s
}

func (g generator) filler() string {
	return g.one("Thank you.", "The build took 12.5 s.", "Version 1.24.3 is out since 2024-05-17.", "It costs $1,299.00.", "Ask again on 12/05/2025 at 14:30:05.", "Room 3.141, floor 7.")
}

// document is JSON with values that only keys identify.
func (g generator) document() Sample {
	var s Sample
	label := func(kind pii.Kind, value string) string {
		s.Labels = append(s.Labels, Label{kind, value})
		return value
	}
	phone, _ := g.phone()
	id, word := g.national()
	plainPhone := g.fill("8999999999")
	record := map[string]any{
		"id": g.IntN(1e9), "order_id": g.fill("8999999999999999"),
		g.one("email", "e_mail", "contact"):                       label(pii.Email, g.email()),
		g.one("phone", "mobile_phone", "tel", "phoneNumber"):      label(pii.Phone, phone),
		g.one("first_name", "fullName", "last_name", "surname"):   label(pii.Name, g.first()+" "+g.last()),
		g.one("dob", "birth_date", "dateOfBirth"):                 label(pii.BirthDate, fmt.Sprintf("%d-%02d-%02d", 1930+g.IntN(80), 1+g.IntN(12), 1+g.IntN(28))),
		g.one("street_address", "home_address", "billingAddress"): label(pii.Address, g.fill("89 ")+g.one("Main Street", "Rue de l'Été", "Hauptstraße")+", Springfield"),
		strings.ToLower(word):                                     label(pii.NationalID, id),
		"name":                                                    g.one("widget", "Blue Chair", "main"),
		"created_at":                                              fmt.Sprintf("20%02d-%02d-%02dT10:11:12Z", g.IntN(30), 1+g.IntN(12), 1+g.IntN(28)),
		"nested":                                                  map[string]any{"fax": json.Number(label(pii.Phone, plainPhone)), "note": "“" + label(pii.Email, g.email()) + "” \\ \"said\""},
		"payment":                                                 map[string]any{"card_number": label(pii.Card, g.card()), "iban": label(pii.IBAN, g.iban()), "ip": label(pii.IP, g.ip())},
		g.one("api_key", "client_secret", "password"):             label(pii.Secret, g.fill("FFFFFFFFFFFFFFFF")),
	}
	raw, err := json.Marshal(record)
	if err != nil {
		panic(err) // strings and maps of them
	}
	s.Text = string(raw)
	return s
}

// table is CSV or Markdown with a header.
func (g generator) table() Sample {
	var s Sample
	lines := []string{"id,first_name,email,mobile,dob,total"}
	for range 2 + g.IntN(5) {
		phone, _ := g.phone()
		name, mail, born := g.first(), g.email(), fmt.Sprintf("%02d/%02d/%d", 1+g.IntN(28), 1+g.IntN(12), 1930+g.IntN(80))
		s.Labels = append(s.Labels, Label{pii.Name, name}, Label{pii.Email, mail}, Label{pii.Phone, phone}, Label{pii.BirthDate, born})
		lines = append(lines, fmt.Sprintf("%d,%s,%s,%s,%s,%d.50", g.IntN(1e6), name, mail, phone, born, g.IntN(1000)))
	}
	s.Text = strings.Join(lines, "\n") + "\n"
	if g.IntN(2) == 0 {
		lines = append([]string{lines[0], "-,-,-,-,-,-"}, lines[1:]...)
		for i, l := range lines {
			lines[i] = "| " + strings.ReplaceAll(l, ",", " | ") + " |"
		}
		s.Text = "# People\n\n" + strings.Join(lines, "\n") + "\n"
	}
	return s
}

// benign is a record of look-alikes.
func (g generator) benign() Sample {
	record := map[string]any{
		"id": g.IntN(1e9), "uuid": g.fill("FFFFFFFF-FFFF-4FFF-8FFF-FFFFFFFFFFFF"), "sha": g.fill(strings.Repeat("F", 40)), "digest": "sha256:" + g.fill(strings.Repeat("F", 64)),
		"version": g.fill("8.9.9"), "runtime": g.fill("8.89.899.99"), "date": fmt.Sprintf("%d-%02d-%02d", 1990+g.IntN(40), 1+g.IntN(12), 1+g.IntN(28)), "when": fmt.Sprintf("%02d.%02d.%d", 1+g.IntN(28), 1+g.IntN(12), 1990+g.IntN(40)),
		"at": fmt.Sprintf("20%02d-%02d-%02d %02d:%02d:%02d", g.IntN(30), 1+g.IntN(12), 1+g.IntN(28), g.IntN(24), g.IntN(60), g.IntN(60)), "unix": 1_600_000_000 + g.IntN(2e8), "millis": fmt.Sprint(1_600_000_000_000 + g.Int64N(2e11)),
		"price": g.fill("8,999.99"), "amount": g.fill("$899999.99"), "order": g.fill("8999999999999999"), "order_number": g.fill("899-9999999-9999999"), "tracking": g.fill("1ZFFF99999999999"), "snowflake_id": g.fill("8999999999999999999"[:18]),
		"sku": g.fill("AA-9999-99"), "isbn": g.fill("978-9-999-99999-9"), "lat": g.fill("48.999999"), "lon": g.fill("-122.999999"), "range": g.fill("1000-8999"), "build": g.fill("8999.99.99.9"), "package": "left-pad@" + g.fill("8.9.9"), "image": "icon@2x.png",
		"ref": g.fill("RFC 8999"), "path": g.fill("/var/lib/99/FFFFFF.json"), "hex": g.fill("0xFFFFFFFF"), "color": g.fill("#FFFFFF"), "size": g.fill("8999999"), "name": g.one("Payments API", "web-01", "README"), "email_sent": true, "phone_count": g.IntN(99),
		"text": "Since " + g.fill("200") + g.fill("9") + " there were " + g.fill("8,999,999") + " rows in " + g.fill("89") + " files; see chapter " + g.fill("8.9.9.8") + " (" + g.fill("89%") + ").", "score": g.fill("0.9999999999"), "mime": "text/html", "url": "https://example.com/users/" + g.fill("8999999999") + "?page=" + g.fill("89"),
		"invoice": g.fill("INV-2024-99999"), "serial": g.fill("AA999999999A"), "time": g.fill("12:34:56.999"), "port": "127.0.0.1:8080", "base64": "aGVsbG8gd29ybGQ" + g.fill("FFFFFFFF"), "next_token": g.fill(strings.Repeat("F", 24)), "address": "0x" + g.fill(strings.Repeat("F", 40)), "batch": g.fill("999-99-9999"),
	}
	raw, err := json.Marshal(record)
	if err != nil {
		panic(err) // strings and numbers
	}
	s := Sample{Text: string(raw), Fields: len(record)}
	if g.IntN(3) == 0 { // as a text
		var b strings.Builder
		for key, value := range record {
			fmt.Fprintf(&b, "%s: %v\n", key, value)
		}
		s.Text = b.String()
	}
	return s
}
