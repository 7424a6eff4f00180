package pii

import (
	"slices"
	"strings"
)

// sense is what a word says about the value next to it.
type sense uint16

const (
	ofPhone sense = 1 << iota
	ofCard
	ofSSN
	ofID // a national id
	ofBirth
	ofSecret
	ofPerson // makes "name" the name of a person
	ofName
	ofAddress
	// other: a number of another sort.
	other
	// weak: a number of another sort, unless the word before it is more specific.
	weak
	// ofToken: a secret, if it looks like one. Pagination cursors are called tokens, too.
	ofToken
	// maybeName: a name, if it has the form of a person's name.
	maybeName
	// ofCity: a part of an address.
	ofCity
)

// hint is the context of a text: the key of a JSON member, the header of a column.
type hint struct {
	sense
	// field: the settings name it.
	field bool
	// skip: it is not searched.
	skip bool
}

// senseOf returns the sense of a word in lower case.
func senseOf(word string) sense {
	switch word {
	case "phone", "phones", "tel", "telephone", "telefon", "mobile", "cell", "cellphone", "fax", "call", "calling", "sms", "whatsapp", "msisdn",
		"dial", "handy", "landline", "hotline", "answering", "téléphone", "telefono", "teléfono", "mobil", "phonenumber", "office", "desk":
		return ofPhone
	case "card", "cards", "credit", "debit", "visa", "mastercard", "amex", "cc", "pan", "maestro", "discover", "creditcard", "cardnumber", "ccnum":
		return ofCard
	case "ssn", "social", "socialsecurity", "socialsecuritynumber":
		return ofSSN
	case "cpf", "dni", "nie", "nino", "nir", "insee", "pesel", "aadhaar", "aadhar", "bsn", "steuer", "steuerid", "idnr", "ahv", "avs", "codice", "fiscale",
		"national", "citizen", "insurance", "identification", "sofi", "burgerservicenummer", "uidai", "tax", "tin":
		return ofID
	case "birth", "born", "dob", "birthday", "birthdate", "dateofbirth", "geboren", "geburtsdatum", "bday":
		return ofBirth
	case "password", "passwd", "pwd", "passphrase", "secret", "apikey", "secretkey", "privatekey", "clientsecret", "accesstoken", "refreshtoken", "authtoken":
		return ofSecret
	case "firstname", "lastname", "fullname", "surname", "givenname", "familyname", "middlename", "maidenname", "nachname", "vorname",
		"displayname", "realname", "prenom", "prénom", "nomdefamille", "apellido", "apellidos", "sobrenome", "cognome", "voornaam", "achternaam", "nazwisko",
		"efternamn", "etternavn", "fornavn", "förnamn", "sukunimi", "etunimi", "soyad", "soyadi":
		return ofName
	case "first", "last", "full", "given", "family", "middle", "maiden", "legal", "patient", "employee", "cardholder", "holder", "beneficiary", "spouse", "person", "passenger", "guest":
		return ofPerson
	case "address", "street", "streetaddress", "addressline", "homeaddress",
		"strasse", "straße", "anschrift", "direccion", "dirección", "domicilio", "indirizzo", "endereco", "endereço", "adresse", "adres", "rue", "calle", "ulica", "line1", "addressline1", "street1": //nolint:misspell // other languages
		return ofAddress
	case "order", "orders", "uuid", "guid", "invoice", "tracking", "serial", "sku", "version", "versions", "ver", "v", "build", "release", "firmware", "transaction",
		"batch", "part", "item", "ticket", "hash", "commit", "revision", "timestamp", "epoch", "section", "chapter", "isbn", "ean", "upc", "asin", "shipment", "parcel",
		"count", "total", "size", "bytes", "price", "amount", "sha", "md5", "checksum", "job", "run", "trace", "span", "request", "session", "barcode", "gtin", "case",
		"issue", "pr", "port", "pid", "line", "row", "page", "type", "status", "created", "updated", "date", "time", "ts", "schema", "driver", "kernel", "chrome", "runtime", "semver", "sdk":
		return other
	case "id", "ids", "ref", "reference", "code", "key":
		return weak
	}
	return 0
}

const (
	// contextBytes is the distance from a value within which a word counts, in bytes and in words; after is the distance
	// after it.
	contextBytes, contextWords = 48, 6
	contextAfter               = 10
)

// around returns the sense of the words near the bytes from i to j, or else that of the text's context.
func (s *scan) around(i, j int) sense {
	said := s.before(i)
	if next := s.behind(j); next != 0 {
		return said | next
	}
	if (said == 0 || said == weak) && s.hint.sense != 0 {
		return s.hint.sense
	}
	return said
}

// before returns the sense of the nearest preceding word that has one.
func (s *scan) before(i int) (said sense) {
	same := true // same sentence
	for k, words, least := i, 0, max(0, i-contextBytes); k > least && words < contextWords; words++ {
		end, stop := s.gapBefore(k, least)
		same = same && !stop
		k = end
		for k > least && s.isAlnum(k-1) {
			k--
		}
		if k == end || k == least && s.isAlnum(k-1) {
			break
		}
		switch w := s.sense(k, end); {
		case !same && (said == weak || w&(weak|other) != 0): // belongs to something else
		case w == weak:
			said = weak
		case w&^ofPerson != 0:
			return w
		}
	}
	return said
}

// gapBefore returns the end of the word before k, least if its line has none, and whether a sentence ends between.
func (s *scan) gapBefore(k, least int) (end int, stop bool) {
	for k > least && !s.isAlnum(k-1) {
		k--
		if s.t[k] == '\n' && s.at(k-1) != ':' {
			return least, stop
		}
		stop = stop || s.isBreak(k)
	}
	return k, stop
}

// isBreak reports whether a sentence ends at i.
func (s *scan) isBreak(i int) bool {
	return strings.IndexByte(".?!;", s.t[i]) >= 0 && s.at(i+1) == ' '
}

// behind examines the word after a value: "555-2671 mobile".
func (s *scan) behind(j int) sense {
	k := j
	for k < len(s.t) && k < j+3 && strings.IndexByte(` -()\,`, s.t[k]) >= 0 {
		k++
	}
	end := k
	for end < len(s.t) && end < k+contextAfter && s.d.class[s.t[end]]&alnum != 0 {
		end++
	}
	return s.sense(k, end) & ofPhone
}

// sense is senseOf of a part of the text.
func (s *scan) sense(i, j int) sense {
	if j-i > 20 || j-i < 1 {
		return 0
	}
	var small [20]byte
	return senseOf(string(appendLower(small[:0], s.t[i:j])))
}

func appendLower(into []byte, text string) []byte {
	for i := range len(text) {
		b := text[i]
		if isCapital(b) {
			b += 'a' - 'A'
		}
		into = append(into, b)
	}
	return into
}

// maxKey is the longest key that is classified, in bytes.
const maxKey = 64

// senseOfKey returns the sense of a JSON key or column header: that of its last word that has one, and "name" where
// another word makes it a person's.
func senseOfKey(key string) sense {
	if len(key) > maxKey {
		return 0
	}
	if all := senseOf(joinedWords(key)); all != 0 {
		return all
	}
	if strings.EqualFold(key, "token") {
		return ofToken
	}
	var room [8]string
	words := split(room[:0], key)
	for i, word := range slices.Backward(words) {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		if said, ok := senseBehind(before, word); ok {
			return said
		}
	}
	return 0
}

// senseBehind returns the sense of a word of a key, given the word before it; ok false if it has none.
func senseBehind(before, word string) (said sense, ok bool) {
	switch said = senseOf(word) &^ ofPerson; {
	case word == "name" && senseOf(before) == ofPerson:
		return ofName, true
	case (word == "key" || word == "token") && isSecretBefore(before):
		return ofSecret, true
	case said == ofAddress && notAStreet(before):
		return 0, true
	case said&(weak|other) != 0:
		return senseOfNumber(before, said), true
	}
	return said, said != 0
}

// senseOfNumber returns the sense of a number after a more specific word: birth_date, national_id.
func senseOfNumber(before string, said sense) sense {
	known := senseOf(before)
	if known&(ofID|ofSSN) != 0 || known == ofBirth && said == other {
		return known
	}
	return said
}

func isSecretBefore(word string) bool {
	switch word {
	case "api", "secret", "private", "access", "refresh", "auth", "signing", "encryption":
		return true
	}
	return false
}

func notAStreet(word string) bool {
	switch word {
	case "email", "mail", "ip", "mac", "wallet", "contract", "memory", "base", "web", "url", "bitcoin", "eth", "bind", "listen", "server", "remote", "network":
		return true
	}
	return false
}

// joinedWords returns a key in lower case, without separators.
func joinedWords(key string) string {
	var small [maxKey]byte
	n := 0
	for i := range len(key) {
		b := key[i]
		switch {
		case isJoint(b):
			continue
		case isCapital(b):
			b += 'a' - 'A'
		}
		small[n] = b
		n++
	}
	return string(small[:n])
}

// isJoint reports whether a byte separates the words of a key.
func isJoint(b byte) bool { return b == '_' || b == '-' || b == ' ' || b == '.' }

// split splits a key into words: snake_case, kebab-case, camelCase.
func split(words []string, key string) []string {
	start := 0
	for i := range len(key) {
		switch {
		case isJoint(key[i]):
			words, start = withWord(words, key[start:i]), i+1
		case i > start && startsWord(key, i):
			words, start = withWord(words, key[start:i]), i
		}
	}
	return withWord(words, key[start:])
}

func withWord(words []string, word string) []string {
	if word == "" {
		return words
	}
	return append(words, strings.ToLower(word))
}

// startsWord reports whether a word begins at i without a separator: at a capital or the first digit.
func startsWord(key string, i int) bool {
	if isDigit(key[i]) {
		return !isDigit(key[i-1])
	}
	return isCapital(key[i]) && (isSmall(key[i-1]) || i+1 < len(key) && isSmall(key[i+1]))
}
