package pii

import (
	"net/netip"
	"slices"
	"strings"
)

// digits are consecutive groups of digits at one position.
type digits struct {
	buf    [24]byte
	n      int
	count  int // groups
	groups [10]int
	ends   [10]int  // where each group ends in the text
	seps   [10]byte // before each group but the first
}

// all returns the digits of the first groups.
func (d *digits) all(groups int) string {
	n := 0
	for _, g := range d.groups[:groups] {
		n += g
	}
	return string(d.buf[:n])
}

// until returns the digits of the groups before a place in the text.
func (d *digits) until(end int) string {
	groups := 0
	for groups < d.count && d.ends[groups] <= end {
		groups++
	}
	return d.all(groups)
}

// like reports whether the first groups have these lengths, all with the same separator.
func (d *digits) like(sep byte, lengths ...int) bool {
	if d.count < len(lengths) {
		return false
	}
	for i, n := range lengths {
		if d.groups[i] != n || i > 0 && d.seps[i] != sep {
			return false
		}
	}
	return true
}

// numberScan finds addresses, card numbers and dates.
type numberScan struct{ *scan }

// digits reads groups of digits with " ", "-" or "." between them.
func (s numberScan) digits(i int) (d digits) {
	for d.count < len(d.groups) {
		start := i
		for s.isDigit(i) {
			if d.n == len(d.buf) {
				d.n -= i - start // drop this group
				return d
			}
			d.buf[d.n] = s.t[i]
			d.n++
			i++
		}
		d.groups[d.count], d.ends[d.count] = i-start, i
		d.count++
		sep := s.at(i)
		if sep != ' ' && sep != '-' && sep != '.' || !s.isDigit(i+1) || d.count == len(d.groups) {
			return d
		}
		d.seps[d.count] = sep
		i++
	}
	return d
}

// number examines a run from i to j of letters and digits, and returns the end of the finding, 0 for none.
func (s numberScan) number(i, j int, next byte) int {
	if s.joined(i) {
		return 0
	}
	if end := s.address(i, j, next); end > 0 {
		return end
	}
	if !s.isDigit(i) {
		return nationalScan(s).letterNumber(i, j)
	}
	d := s.digits(i)
	if d.count == 0 {
		return 0
	}
	if d.ends[0] != j && d.groups[0] == 8 && nationalScan(s).dni(i, j) {
		return j
	}
	if d.n < 5 && s.at(j) != '/' {
		return 0
	}
	if end := s.birthDate(i, &d); end > 0 || d.n < 5 {
		return end
	}
	if end := s.ssn(i, &d); end > 0 {
		return end
	}
	if end := nationalScan(s).nationalNumber(i, &d); end > 0 {
		return end
	}
	if end := s.card(i, &d); end > 0 {
		return end
	}
	return phoneScan(s).phone(i)
}

// address finds IP and MAC addresses.
func (s numberScan) address(i, j int, next byte) int {
	if (next == ':' || next == '-') && j-i == 2 {
		if end := s.mac(i, next); end > 0 {
			return end
		}
	}
	switch {
	case next == ':' && j-i <= 4:
		return s.ip6(i)
	case next == '.' && j-i <= 3:
		return s.ip4(i)
	}
	return 0
}

func (s numberScan) isHex(i int) bool { return i < len(s.t) && s.d.class[s.t[i]]&hex != 0 }

func (s numberScan) mac(i int, sep byte) int {
	const length = 17
	if i+length > len(s.t) || s.isAlnum(i+length) || s.at(i+length) == sep || s.at(i-1) == sep {
		return 0
	}
	for k := range length {
		if k%3 == 2 && s.t[i+k] != sep || k%3 < 2 && !s.isHex(i+k) {
			return 0
		}
	}
	switch strings.ToLower(s.t[i : i+length]) {
	case "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "00-00-00-00-00-00", "ff-ff-ff-ff-ff-ff":
		return 0 // not assigned to a device
	}
	if !s.add(MAC, i, i+length) {
		return 0
	}
	return i + length
}

func (s numberScan) ip4(i int) int {
	j, dots := i, 0
	for j < len(s.t) && j-i < 16 && (s.isDigit(j) || s.t[j] == '.' && s.isDigit(j+1)) {
		if s.t[j] == '.' {
			dots++
		}
		j++
	}
	if dots != 3 || s.wordContinues(j) || s.at(j) == '_' {
		return 0
	}
	addr, err := netip.ParseAddr(s.t[i:j])
	if err != nil || isReserved(addr) || s.before(i) == other || s.hint.sense == other || !s.add(IP, i, j) {
		return 0
	}
	return j
}

// isReserved reports whether an IPv4 address is reserved.
func isReserved(addr netip.Addr) bool {
	first := addr.As4()[0]
	return addr.IsLoopback() || first == 0 || first == 255
}

// wordContinues reports whether a word, or another one after "-", follows at i.
func (s numberScan) wordContinues(i int) bool {
	return s.isAlnum(i) || s.at(i) == '-' && s.isAlnum(i+1)
}

func (s numberScan) ip6(i int) int {
	j := s.ip6End(i)
	if j == 0 || s.isAlnum(j) || s.at(i-1) == ':' {
		return 0
	}
	text := s.t[i:j]
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.IsLoopback() || !isUsual6(text) || !strings.ContainsAny(text, "0123456789") || !s.add(IP, i, j) {
		return 0
	}
	return j
}

// ip6End returns the end of the characters of an IPv6 address at i, 0 if there are too many.
func (s numberScan) ip6End(i int) int {
	const longest = 45
	j := i
	for j-i <= longest && (s.isHex(j) || s.at(j) == ':' || s.at(j) == '.' && s.isDigit(j+1)) {
		j++
	}
	for j > i && s.t[j-1] == ':' {
		j--
	}
	if j-i > longest {
		return 0
	}
	return j
}

// isUsual6 reports whether a text has enough colons for an IPv6 address, or a prefix of shorter ones.
func isUsual6(text string) bool {
	return strings.Count(text, ":") >= 3 || text[0] == '2' || hasPrefixFold(text, "fe80") || hasPrefixFold(text, "fd")
}

// isSSN rejects numbers that were never issued.
func isSSN(n string) bool {
	area, group, serial := n[:3], n[3:5], n[5:]
	return area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000" && n != "078051120" && n != "219099999"
}

func (s numberScan) ssn(i int, d *digits) int {
	groups, sure := 0, false
	switch {
	case d.like('-', 3, 2, 4):
		groups, sure = 3, true
	case d.like(' ', 3, 2, 4), d.like('.', 3, 2, 4):
		groups = 3
	case d.groups[0] == 9:
		groups = 1
	default:
		return 0
	}
	end := d.ends[groups-1]
	if !s.ended(end) || !isSSN(d.all(groups)) {
		return 0
	}
	said := s.around(i, end)
	if said&ofSSN == 0 && (!sure || said&other != 0 || d.all(groups) == "123456789") || !s.add(SSN, i, end) {
		return 0
	}
	return end
}

func (s numberScan) card(i int, d *digits) int {
	groups := cardGroups(d)
	if groups == 5 && !luhn(d.all(groups)) {
		groups = 4
	}
	if groups == 0 {
		return 0
	}
	end, n := d.ends[groups-1], d.all(groups)
	if !luhn(n) || !s.ended(end) {
		return 0
	}
	said := s.around(i, end)
	grouped := groups > 1 || len(n) == 15 || len(n) == 16 // or of the usual length
	if said&ofCard == 0 && (said&(other|weak) != 0 || !grouped || !isCard(n)) || !s.add(Card, i, end) {
		return 0
	}
	return end
}

// cardForms are how the digits of cards are grouped.
var cardForms = [][]int{{4, 4, 4, 4, 3}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}, {4, 4, 5}}

// cardGroups returns how many groups may be a card number, 0 for none.
func cardGroups(d *digits) int {
	for _, form := range cardForms {
		if d.like(' ', form...) || d.like('-', form...) {
			return len(form)
		}
	}
	if d.groups[0] < 12 || d.groups[0] > 19 {
		return 0
	}
	return 1
}

// issuers are the ranges of the first four digits of card numbers, with the lengths. The first matching range
// applies.
var issuers = []struct {
	first, last int
	lengths     []int
}{
	{4000, 4999, []int{13, 16, 19}},
	{5100, 5599, []int{16}},
	{2221, 2720, []int{16}},
	{3400, 3499, []int{15}},
	{3700, 3799, []int{15}},
	{3000, 3059, []int{14, 16}},
	{3600, 3699, []int{14, 16}},
	{3800, 3999, []int{14, 16}},
	{2131, 2131, []int{15}},
	{1800, 1800, []int{15}},
	{3528, 3589, []int{16, 17, 18, 19}},
	{6011, 6011, []int{16, 17, 18, 19}},
	{6200, 6299, []int{16, 17, 18, 19}},
	{6440, 6599, []int{16, 17, 18, 19}},
	{5000, 5099, []int{12, 13, 14, 15, 16, 17, 18, 19}},
	{5600, 6999, []int{12, 13, 14, 15, 16, 17, 18, 19}},
}

// isCard checks the issuer range and the length of a card number.
func isCard(n string) bool {
	four := num(n[:4])
	for _, of := range issuers {
		if four >= of.first && four <= of.last {
			return slices.Contains(of.lengths, len(n))
		}
	}
	return false
}

func luhn(n string) bool {
	sum, same := 0, true
	for i := range len(n) {
		v := int(n[len(n)-1-i] - '0')
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
		same = same && n[i] == n[0]
	}
	return sum%10 == 0 && !same
}

// num parses a few digits.
func num(s string) int {
	v := 0
	for i := range len(s) {
		v = v*10 + int(s[i]-'0')
	}
	return v
}

// isDate reports whether the first three groups are a date.
func (d *digits) isDate() bool {
	if d.count < 3 || d.seps[1] != d.seps[2] {
		return false
	}
	a, b, c := d.groups[0], d.groups[1], d.groups[2]
	x, y, z := num(string(d.buf[:a])), num(string(d.buf[a:a+b])), num(string(d.buf[a+b:a+b+c]))
	switch {
	case a == 4 && max(b, c) <= 2:
		return isDay(x, y, z)
	case c == 4 && max(a, b) <= 2:
		return isDay(z, y, x) || isDay(z, x, y)
	case a == 2 && b == 2 && c == 2 && d.count == 3:
		return isDay(1900+z, y, x) || isDay(1900+z, x, y) || isDay(1900+x, y, z)
	}
	return false
}

func isDay(year, month, day int) bool {
	return year >= 1850 && year <= 2199 && month >= 1 && month <= 12 && day >= 1 && day <= 31
}

// birthDate accepts a date with a context word for a birth.
func (s numberScan) birthDate(i int, d *digits) int {
	end := d.ends[min(d.count, 3)-1]
	if !d.isDate() {
		end = s.slashDate(i)
	}
	if end == 0 || s.isAlnum(end) || s.around(i, end) != ofBirth || !s.add(BirthDate, i, end) {
		return 0
	}
	return end
}

// slashDate returns the end of a date with slashes, 0 for none.
func (s numberScan) slashDate(i int) int {
	j, slashes := i, 0
	for j < len(s.t) && j-i < 10 && (s.isDigit(j) || s.t[j] == '/' && s.isDigit(j+1)) {
		if s.t[j] == '/' {
			slashes++
		}
		j++
	}
	if slashes != 2 {
		return 0
	}
	parts := strings.Split(s.t[i:j], "/")
	if len(parts[0])+len(parts[1])+len(parts[2]) > 8 {
		return 0
	}
	x, y, z := num(parts[0]), num(parts[1]), num(parts[2])
	if len(parts[2]) == 2 {
		z += 1900
	}
	if isDay(x, y, z) || isDay(z, y, x) || isDay(z, x, y) {
		return j
	}
	return 0
}
