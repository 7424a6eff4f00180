package pii

import (
	"math"
	"strings"
)

// longestSecret bounds the length of a secret, in bytes.
const longestSecret = 4096

// secretPrefix returns the prefix of the keys of a well-known service, and the minimum length of the rest.
func secretPrefix(t string) (mark string, least int) {
	switch t[0] {
	case 's':
		return firstOf(t, 20, "sk-", "sk_live_", "sk_test_", "shpat_", "shpss_", "secret-token:")
	case 'r':
		return firstOf(t, 20, "rk_live_", "rk_test_")
	case 'g':
		if mark, least = firstOf(t, 30, "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"); mark != "" {
			return mark, least
		}
		return firstOf(t, 20, "glpat-", "gsk_")
	case 'x':
		return firstOf(t, 15, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-")
	case 'A':
		if mark, least = firstOf(t, 16, "AKIA", "ASIA"); mark != "" {
			return mark, least
		}
		return firstOf(t, 35, "AIza")
	case 'e':
		return firstOf(t, 40, "eyJ")
	case 'y':
		return firstOf(t, 30, "ya29.")
	case 'n':
		return firstOf(t, 30, "npm_")
	case 'p':
		return firstOf(t, 40, "pypi-")
	case 'd':
		return firstOf(t, 40, "dop_v1_", "dckr_pat_")
	case 'h':
		return firstOf(t, 30, "hf_", "hvs.")
	case 'S':
		return firstOf(t, 40, "SG.")
	}
	return "", 0
}

func firstOf(t string, least int, marks ...string) (string, int) {
	for _, m := range marks {
		if strings.HasPrefix(t, m) {
			return m, least
		}
	}
	return "", 0
}

// secretScan finds secrets and passwords.
type secretScan struct{ *scan }

// secret finds a key with a well-known prefix in a word that begins at i.
func (s secretScan) secret(i int) int {
	mark, least := secretPrefix(s.t[i:])
	if mark == "" || s.joined(i) {
		return 0
	}
	start := i + len(mark)
	end := s.secretEnd(start, i+longestSecret)
	text := s.t[start:end]
	if len(text) < least || !fitsPrefix(mark, text) || !mixed(text) || !s.add(Secret, i, end) {
		return 0
	}
	return end
}

// secretEnd returns the end of the characters of a secret that begin at i.
func (s secretScan) secretEnd(i, limit int) int {
	k := i
	for k < len(s.t) && k < limit && s.inSecret(k) {
		k++
	}
	for k > i && s.t[k-1] == '.' {
		k--
	}
	return k
}

func (s secretScan) inSecret(i int) bool {
	b := s.t[i]
	return s.d.class[b]&alnum != 0 && b < 0x80 || b == '_' || b == '-' || b == '.'
}

// fitsPrefix applies the further rules of some prefixes.
func fitsPrefix(mark, text string) bool {
	switch mark {
	case "eyJ":
		return strings.Count(text, ".") == 2
	case "AKIA", "ASIA":
		return len(text) == 16 && text == strings.ToUpper(text)
	}
	return true
}

// mixed reports whether a text has both letters and digits, and is not repetitive.
func mixed(text string) bool {
	return strings.ContainsAny(text, "0123456789") && strings.ContainsAny(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz") && entropy(text) > 2.5
}

// entropy returns the entropy of a text, in bits per byte.
func entropy(text string) float64 {
	var counts [256]int
	text = text[:min(len(text), 512)]
	for i := range len(text) {
		counts[text[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// longestURL bounds the length of a URL, in bytes.
const longestURL = 2048

// url finds a URL with a password; its scheme ends at j.
func (s secretScan) url(i, j int) int {
	if !s.d.kinds[URL] {
		return 0
	}
	limit := i + longestURL
	at := s.credentials(j+3, limit)
	if at == 0 {
		return 0
	}
	k := at + 1
	for k < limit && s.inURL(k) {
		k++
	}
	for k > at && strings.IndexByte(".,;:)]}!?", s.t[k-1]) >= 0 {
		k--
	}
	if k <= at+1 || !s.add(URL, i, k) {
		return 0
	}
	return k
}

// credentials returns the position of the @ after "user:password" at k, 0 for none.
func (s secretScan) credentials(k, limit int) int {
	colon := 0
	for ; k < limit && s.inURL(k); k++ {
		switch s.t[k] {
		case '/', '?', '#':
			return 0 // the host has ended
		case ':':
			if colon == 0 {
				colon = k
			}
		case '@':
			if colon == 0 || k-colon < 2 {
				return 0 // no password
			}
			return k
		}
	}
	return 0
}

func (s secretScan) inURL(i int) bool {
	return i < len(s.t) && s.t[i] > ' ' && strings.IndexByte("\"'<>`\\", s.t[i]) < 0
}

// privateKey finds a PEM block at i.
func (s secretScan) privateKey(i int) int {
	const begin, end = "-----BEGIN ", "-----END "
	if !strings.HasPrefix(s.t[i:], begin) {
		return 0
	}
	head := s.t[i:min(len(s.t), i+80)]
	if !strings.Contains(head, "PRIVATE KEY-----") && !strings.Contains(head, "PRIVATE KEY BLOCK-----") {
		return 0
	}
	block := s.t[i:min(len(s.t), i+16<<10)]
	last := i + keyEnd(block)
	if at := strings.Index(block, end); at >= 0 {
		if stop := strings.Index(block[at+len(end):], "-----"); stop >= 0 {
			last = i + at + len(end) + stop + len("-----")
		}
	}
	if !s.add(Secret, i, last) {
		return 0
	}
	return last
}

// keyEnd returns the end of a key block without an end marker: the first line that is not part of it.
func keyEnd(block string) int {
	end := strings.Index(block, "-----\n")
	if end < 0 {
		return len(strings.TrimRight(block, " \n"))
	}
	end += len("-----\n")
	for end < len(block) {
		line, _, more := strings.Cut(block[end:], "\n")
		if trimmed := strings.TrimRight(line, " \r"); trimmed != "" && strings.Trim(trimmed, base64Letters) != "" && !strings.Contains(trimmed, ": ") {
			break
		}
		end += len(line)
		if !more {
			break
		}
		end++
	}
	return len(strings.TrimRight(block[:end], " \r\n"))
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

// labelValue examines a word before ":" or "=", as in "password: x", "First name: Ann", "postgres://".
func (s secretScan) labelValue(i, j int, next byte) int {
	if next == ':' && strings.HasPrefix(s.t[j:], "://") {
		return s.url(i, j)
	}
	said := s.labelSense(i, j)
	if said == 0 {
		return 0
	}
	k := s.valueAt(j)
	switch {
	case k == 0:
		return 0
	case said == ofSecret:
		return s.password(k)
	}
	return s.nameAt(k)
}

// labelSense returns whether the word from i to j names a secret or a person, 0 for neither.
func (s secretScan) labelSense(i, j int) sense {
	switch said := s.sense(i, j); {
	case said&(ofSecret|ofName) != 0:
		return said
	case said&^(other|weak) != 0:
		return 0
	case s.isKeyName(i, j), j-i > 8 && senseOfKey(s.t[i:j]) == ofSecret:
		return ofSecret
	case s.isPersonName(i, j):
		return ofName
	}
	return 0
}

// valueAt returns the start of the value of a label that ends at j, 0 for none.
func (s secretScan) valueAt(j int) int {
	k := j
	if s.at(j) == '"' {
		k++
	}
	for k < j+3 && s.at(k) == ' ' {
		k++
	}
	if b := s.at(k); b != ':' && b != '=' {
		return 0
	}
	for k++; k < len(s.t) && k < j+8 && strings.IndexByte(" \"'*", s.t[k]) >= 0; {
		k++
	}
	return k
}

// isPersonName reports whether the word from i to j is the "name" of "first name".
func (s secretScan) isPersonName(i, j int) bool {
	return strings.EqualFold(s.t[i:j], "name") && s.wordBefore(i)&ofPerson != 0
}

// isKeyName reports whether the word from i to j is the "key" of "api key".
func (s secretScan) isKeyName(i, j int) bool {
	if !strings.EqualFold(s.t[i:j], "key") && !strings.EqualFold(s.t[i:j], "token") || !s.isAlnum(i-2) {
		return false
	}
	k := i - 1
	for k > 0 && k > i-12 && s.isAlnum(k-1) {
		k--
	}
	return isSecretBefore(strings.ToLower(s.t[k : i-1]))
}

func (s secretScan) wordBefore(i int) sense {
	k := i - 1
	for k > 0 && k > i-20 && s.isAlnum(k-1) {
		k--
	}
	if k < 0 {
		return 0
	}
	return s.sense(k, i-1)
}

// password finds a value after "password:" that is not an ordinary word.
func (s secretScan) password(i int) int {
	k := s.passwordEnd(i)
	if !isPassword(s.t[i:k]) || !s.add(Secret, i, k) {
		return 0
	}
	return k
}

// passwordEnd returns the end of a value after a label: at its closing quote, else at a blank, without punctuation
// that ends a sentence or closes a bracket opened before.
func (s secretScan) passwordEnd(i int) int {
	quote := s.at(i - 1)
	quoted := quote == '"' || quote == '\'' || quote == '`'
	k := i
	if quoted { // a value in quotes may have blanks
		line, _, _ := strings.Cut(s.t[i:min(len(s.t), i+100)], "\n")
		if at := strings.IndexByte(line, quote); at >= 0 {
			return i + at
		}
	}
	for k < len(s.t) && k-i < 200 && s.t[k] > ' ' && !(quoted && s.t[k] == quote) {
		k++
	}
	if quoted && s.at(k) == quote {
		return k
	}
	for k > i && strings.IndexByte(".,;:\"'`)]}>\\", s.t[k-1]) >= 0 {
		k--
	}
	return k
}

// isPassword is strict in texts, where people write about passwords: a value needs a digit, a sign that words lack,
// or a mix of letters that words lack.
func isPassword(text string) bool {
	if len(text) < 6 || strings.HasPrefix(text, "$") || strings.Count(text, "*") > len(text)/2 || strings.ContainsAny(text[:1], "<{([|") || nextParameter(text) || strings.Contains(text, "://") {
		return false
	}
	letters := strings.ContainsAny(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz")
	switch {
	case strings.ContainsAny(text, "0123456789"):
		return letters || len(text) >= 8
	case strings.ContainsAny(text, "!@#$%^&+=~"):
		return letters
	}
	return mixedCase(text) >= 3 || isUnpronounceable(strings.ToLower(text))
}

// isUnpronounceable reports whether letters cannot be a word: they have no vowel, or are neighbours in the alphabet or on a
// keyboard.
func isUnpronounceable(text string) bool {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") != "" {
		return false
	}
	if !strings.ContainsAny(text, "aeiouy") {
		return true
	}
	const run = 5
	for i := 0; i+run <= len(text); i++ {
		if strings.Contains("abcdefghijklmnopqrstuvwxyz qwertyuiop asdfghjkl zxcvbnm", text[i:i+run]) {
			return true
		}
	}
	return false
}

// nextParameter reports whether a value is empty and followed by the next query parameter: "password=&user=x".
func nextParameter(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && len(name) > 1 && name[0] == '&' && strings.Trim(strings.ToLower(name[1:]), "abcdefghijklmnopqrstuvwxyz_") == ""
}

// mixedCase counts the changes between capitals and lower case within a text.
func mixedCase(text string) (turns int) {
	for i := 1; i < len(text); i++ {
		if !isLetter(text[i]) || !isLetter(text[i-1]) {
			return 0
		}
		if isCapital(text[i]) != isCapital(text[i-1]) {
			turns++
		}
	}
	return turns
}

// statedSecret finds "password is x" after a word that ends at j.
func (s secretScan) statedSecret(i, j int) int {
	rest := s.t[j:min(len(s.t), j+5)]
	if !strings.HasPrefix(rest, " is ") || s.sense(i, j)&ofSecret == 0 && !s.isKeyName(i, j) {
		return 0
	}
	k := j + len(" is ")
	if b := s.at(k); b == '"' || b == '\'' || b == '`' {
		k++
	}
	return s.password(k)
}

// nameAt finds up to four capitalized words.
func (s secretScan) nameAt(i int) int {
	k, end := i, 0
	for range 4 {
		if first := s.at(k); !isCapital(first) && first < 0x80 {
			break
		}
		for k < len(s.t) && k-i < 80 && s.inName(k) {
			k++
		}
		end = k
		if s.at(k) != ' ' {
			break
		}
		k++
	}
	for end > i && s.t[end-1] == '.' {
		end--
	}
	if end <= i+1 || !s.add(Name, i, end) {
		return 0
	}
	return end
}

func (s secretScan) inName(i int) bool {
	b := s.t[i]
	return s.d.class[b]&letter != 0 || b == '\'' || b == '-' || b == '.'
}
