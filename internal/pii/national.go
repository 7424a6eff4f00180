package pii

import "strings"

// nationalScan finds account numbers and national id numbers.
type nationalScan struct{ *scan }

// letterNumber finds numbers that begin with a letter.
func (s nationalScan) letterNumber(i, j int) int {
	if end := s.iban(i, j); end > 0 {
		return end
	}
	word := strings.ToUpper(s.t[i:min(j, i+20)])
	found := false
	switch len(word) {
	case 16:
		found = isCodiceFiscale(word)
	case 9:
		found = isNINO(word) && s.around(i, j)&(other|weak) == 0 || isNIE(word)
	}
	if found && s.ended(j) && s.add(NationalID, i, j) {
		return j
	}
	return 0
}

// ibanLength returns the length of a country's IBANs, 0 if it has none.
func ibanLength(country string) int {
	const lengths = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28" +
		"HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29" +
		"RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30"
	for i := 0; i < len(lengths); i += 4 {
		if lengths[i:i+2] == country {
			return num(lengths[i+2 : i+4])
		}
	}
	return 0
}

// iban reads an IBAN in one piece or in groups, in any case.
func (s nationalScan) iban(i, j int) int {
	if j-i < 4 || s.isDigit(i) || s.isDigit(i+1) || !s.isDigit(i+2) || !s.isDigit(i+3) {
		return 0
	}
	want := ibanLength(strings.ToUpper(s.t[i : i+2]))
	if want == 0 {
		return 0
	}
	chars, end := s.fours(i, want)
	if end == 0 || numberScan(s).wordContinues(end) || mod97(string(chars[4:want])+string(chars[:4])) != 1 || !s.add(IBAN, i, end) {
		return 0
	}
	return end
}

// fours reads want letters and digits, in groups of four or in one piece; end 0 if there are fewer.
func (s nationalScan) fours(i, want int) (chars [34]byte, end int) {
	n := 0
	for k := i; k < len(s.t); k++ {
		switch b := capital(s.t[k]); {
		case isCapital(b), isDigit(b):
			chars[n] = b
			if n++; n == want {
				return chars, k + 1
			}
		case n%4 != 0 || !s.isGap(k):
			return chars, 0
		}
	}
	return chars, 0
}

// isGap reports whether one space or "-" is at i, with a group behind it.
func (s nationalScan) isGap(i int) bool {
	b := s.t[i]
	return (b == ' ' || b == '-') && s.at(i-1) != b && s.isAlnum(i+1)
}

func capital(b byte) byte {
	if isSmall(b) {
		b -= 'a' - 'A'
	}
	return b
}

// mod97 is ISO 7064's check over digits and capitals.
func mod97(text string) int {
	rest := 0
	for i := range len(text) {
		if b := text[i]; b >= 'A' {
			rest = (rest*100 + int(b-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(b-'0')) % 97
		}
	}
	return rest
}

// fits reports whether a text matches a form: 9 is a digit, A a capital, anything else itself.
func fits(text, form string) bool {
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		b := text[i]
		switch form[i] {
		case '9':
			if b < '0' || b > '9' {
				return false
			}
		case 'A':
			if b < 'A' || b > 'Z' {
				return false
			}
		case '?':
			if (b < '0' || b > '9') && (b < 'A' || b > 'Z') {
				return false
			}
		default:
			if b != form[i] {
				return false
			}
		}
	}
	return true
}

// isNINO: Great Britain.
func isNINO(w string) bool {
	if !fits(w, "AA999999A") || w[8] > 'D' || strings.ContainsRune("DFIQUV", rune(w[0])) || strings.ContainsRune("DFIOQUV", rune(w[1])) {
		return false
	}
	switch w[:2] {
	case "BG", "GB", "NK", "KN", "TN", "NT", "ZZ":
		return false
	}
	return true
}

// spacedNINO is one in groups of two: "AB 12 34 56 C".
func (s nationalScan) spacedNINO(i int) int {
	const length = 13
	if i+length > len(s.t) || s.joined(i) || s.isAlnum(i+length) || !fits(s.t[i:i+length], "AA 99 99 99 A") || !isNINO(strings.ReplaceAll(s.t[i:i+length], " ", "")) {
		return 0
	}
	if !s.add(NationalID, i, i+length) {
		return 0
	}
	return i + length
}

const dniLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

// isNIE: foreigners in Spain.
func isNIE(w string) bool {
	return fits(w, "A9999999A") && w[0] >= 'X' && w[0] <= 'Z' && dniLetters[num(string('0'+w[0]-'X')+w[1:8])%23] == w[8]
}

// dni: Spain. One number in 23 has the right letter by chance, so a context word is required as well.
func (s nationalScan) dni(i, j int) bool {
	w := strings.ToUpper(s.t[i:min(j, i+12)])
	return fits(w, "99999999A") && dniLetters[num(w[:8])%23] == w[8] && s.ended(j) && s.around(i, j)&ofID != 0 && s.add(NationalID, i, j)
}

// isCodiceFiscale: Italy.
func isCodiceFiscale(w string) bool {
	const odd = "\x01\x00\x05\x07\x09\x0d\x0f\x11\x13\x15\x02\x04\x12\x14\x0b\x03\x06\x08\x0c\x0e\x10\x0a\x16\x19\x18\x17"
	if !fits(w, "AAAAAA??A??A???A") || !strings.ContainsRune("ABCDEHLMPRST", rune(w[8])) {
		return false
	}
	sum := 0
	for i := range 15 {
		v := int(w[i] - 'A')
		if w[i] <= '9' {
			v = int(w[i] - '0')
		}
		if i%2 == 0 {
			v = int(odd[v])
		}
		sum += v
	}
	return byte('A'+sum%26) == w[15]
}

// idForms are ids of digits alone. Those that are not sure have a common form, and need a context word.
var idForms = []struct {
	form string
	is   func(digits string) bool
	sure bool
}{
	{"999.999.999-99", isCPF, true},
	{"999.9999.9999.99", isAHV, true},
	{"9999999999999", isAHV, true},
	{"9 99 99 99 999 999 99", isNIR, true},
	{"999999999999999", isNIR, true},
	{"9999 9999 9999", isAadhaar, false},
	{"999999999999", isAadhaar, false},
	{"99999999999", isCPF, false},
	{"99999999999", isPESEL, false},
	{"99999999999", isSteuerID, false},
	{"99 999 999 999", isSteuerID, false},
	{"999999999", isBSN, false},
}

// nationalNumber finds ids of digits alone.
func (s nationalScan) nationalNumber(i int, d *digits) int {
	for _, id := range idForms {
		end := i + len(id.form)
		if end <= len(s.t) && fits(s.t[i:end], id.form) && !s.isDigit(end) && id.is(d.until(end)) {
			return s.nationalID(i, end, id.sure)
		}
	}
	return 0
}

func (s nationalScan) nationalID(i, end int, sure bool) int {
	said := s.around(i, end)
	if !s.ended(end) || said&ofID == 0 && (!sure || said&(other|weak) != 0) || !s.add(NationalID, i, end) {
		return 0
	}
	return end
}

// weightedSum sums digits times weights.
func weightedSum(n string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		sum += int(n[i]-'0') * w
	}
	return sum
}

// isCPF: Brazil.
func isCPF(n string) bool {
	if n == strings.Repeat(n[:1], len(n)) {
		return false
	}
	first := weightedSum(n, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	second := weightedSum(n, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	return first == int(n[9]-'0') && second == int(n[10]-'0')
}

// isAHV: Switzerland, an EAN-13.
func isAHV(n string) bool {
	return n[:3] == "756" && (10-weightedSum(n, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3)%10)%10 == int(n[12]-'0')
}

// isNIR: France.
func isNIR(n string) bool {
	month := num(n[3:5])
	if n[0] != '1' && n[0] != '2' || month < 1 || month > 12 && month < 20 || month > 42 {
		return false
	}
	return 97-num(n[:13])%97 == num(n[13:])
}

// isPESEL: Poland.
func isPESEL(n string) bool {
	month := num(n[2:4]) % 20
	return month >= 1 && month <= 12 && num(n[4:6]) >= 1 && num(n[4:6]) <= 31 &&
		(10-weightedSum(n, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3)%10)%10 == int(n[10]-'0')
}

// isSteuerID: Germany.
func isSteuerID(n string) bool {
	if n[0] == '0' {
		return false
	}
	product := 10
	for i := range 10 {
		sum := (int(n[i]-'0') + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return (11-product)%10 == int(n[10]-'0')
}

// isBSN: the Netherlands.
func isBSN(n string) bool {
	return n != "000000000" && weightedSum(n, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0
}

// isAadhaar: India, Verhoeff's check.
func isAadhaar(n string) bool {
	const (
		product = "0123456789123406789523401789563401289567401239567859876043216598710432765982104387659321049876543210"
		permute = "01234567891576283094580379614289160435279453126870428657390127938064157046913258"
	)
	if n[0] < '2' {
		return false
	}
	c := 0
	for i := range len(n) {
		p := int(permute[i%8*10+int(n[len(n)-1-i]-'0')] - '0')
		c = int(product[c*10+p] - '0')
	}
	return c == 0
}
