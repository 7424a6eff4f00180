package clients

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// textKind is the place of a text, which determines what may be secret in it.
type textKind int

const (
	plainText textKind = iota // only parts that look like secrets
	urlText                   // also user, password and query
	envText                   // also by its name, as for the next three
	headerText
	argText
	authText
)

// usesName reports whether the name of a text can mark it as secret.
func usesName(kind textKind) bool { return kind >= envText }

// location describes where a secret was found.
func location(kind textKind, name string) string {
	switch kind {
	case envText:
		return "the variable " + name
	case headerText:
		return "the header " + name
	case authText:
		return "its OAuth settings"
	case urlText:
		return "its URL"
	}
	return "an argument"
}

var (
	scheme    = regexp.MustCompile(`(?i)^\s*(bearer|basic|token|apikey|api-key|bot|digest)\s+`)
	userinfo  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^/\s:@?#]*):([^@/\s]+)@`)
	userOnly  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^/\s:@?#]{8,})@`)
	queryPair = regexp.MustCompile(`[?&;]([A-Za-z0-9_.\-\[\]]+)=([^&#\s]+)`)
	segment   = regexp.MustCompile(`/([A-Za-z0-9_.=~-]{16,})`)
	assigned  = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9_.-]*|[A-Za-z_][A-Za-z0-9_]*)=(.+)$`)
	headerArg = regexp.MustCompile(`(?s)^([A-Za-z][A-Za-z0-9-]*):\s*(.+)$`)
	camel     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	separator = regexp.MustCompile(`[^A-Za-z0-9]+`)
	hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	harmless  = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|none|null|[0-9]{1,5}|oauth2?|basic|bearer|apikey|api_key|token|auto|default)$`)
	uuid      = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	jwt       = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	known     = regexp.MustCompile(`(?:^|[^A-Za-z0-9])(gh[pousr]_|github_pat_|glpat-|glrt-|sk-|sk_live_|sk_test_|rk_live_|pk_live_|whsec_|xox[abeprs]-|xapp-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|hf_|dop_v1_|SG\.|shp(at|ss|ca)_|lin_api_|ntn_|secret_|tvly-|fc-|pplx-|gsk_|r8_|figd_|sntry[su]_|dapi|ATATT|nvapi-|phx_|rnd_|eyJ|BSA)[A-Za-z0-9_.=/+-]{10,}`)
)

// secretWords returns words that mark a name as secret, harmlessWords those that, as
// the last word, mark it as not secret: TOKEN_URL.
func secretWords() []string {
	return []string{"KEY", "KEYS", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PWD", "PASSPHRASE", "PASSCODE",
		"AUTH", "AUTHORIZATION", "CREDENTIAL", "CREDENTIALS", "BEARER", "COOKIE", "PAT", "DSN", "JWT", "SIGNATURE", "WEBHOOK", "OTP", "PIN", "SID"}
}

func harmlessWords() []string {
	return []string{"URL", "URI", "HOST", "ENDPOINT", "FILE", "PATH", "DIR", "TYPE", "METHOD", "MODE", "NAME", "ENABLED", "DISABLED", "PORT",
		"SCOPE", "SCOPES", "REGION", "PROVIDER", "TTL", "EXPIRY", "TIMEOUT", "LIMIT", "HEADER", "FORMAT", "ALGORITHM", "ISSUER", "AUDIENCE", "REQUIRED"}
}

// secretName reports whether a name marks its value as secret.
func secretName(name string) bool {
	words := strings.Split(strings.ToUpper(separator.ReplaceAllString(camel.ReplaceAllString(name, "${1}_${2}"), "_")), "_")
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	if len(words) == 0 || slices.Contains(harmlessWords(), words[len(words)-1]) {
		return false
	}
	for _, word := range words {
		if slices.Contains(secretWords(), word) {
			return true
		}
		for _, end := range []string{"APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"} {
			if strings.HasSuffix(word, end) {
				return true
			}
		}
	}
	return false
}

// secretValue reports whether a text looks like a secret regardless of its name.
func secretValue(text string) bool {
	if known.MatchString(text) || jwt.MatchString(text) || uuid.MatchString(text) || strings.Contains(text, "PRIVATE KEY-----") {
		return true
	}
	if len(text) < 20 || strings.ContainsAny(text, " \t\n@:\\") || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") {
		return false
	}
	words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("/-_.,=+", c) })
	return slices.ContainsFunc(words, looksRandom)
}

// looksRandom reports whether a word looks random: long, with alternating letters and digits, and high entropy.
func looksRandom(word string) bool {
	if len(word) < 16 {
		return false
	}
	digits, turns, counts := 0, 0, map[rune]int{}
	last := -1
	for _, c := range word {
		class := 0
		switch {
		case unicode.IsDigit(c):
			class = 1
			digits++
		case unicode.IsUpper(c):
			class = 2
		}
		if class != last && last >= 0 {
			turns++
		}
		last = class
		counts[c]++
	}
	entropy := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(word))
		entropy -= p * math.Log2(p)
	}
	return turns >= 4 && entropy > 2.8 && (digits >= 2 || turns >= 6)
}

// isPlausible reports whether the value of a secret name can be a secret.
func isPlausible(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !harmless.MatchString(text) && !pathLike(text)
}

func pathLike(text string) bool {
	for _, start := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	for _, end := range []string{".pem", ".key", ".json", ".crt", ".yaml", ".env"} {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// hide replaces secrets in a text with variables. name is the variable or header of
// the text.
func (r *serverParser) hide(kind textKind, name string, parts []part) []part {
	var out []part
	for _, p := range parts {
		if p.reference {
			out = append(out, p)
			continue
		}
		if usesName(kind) && secretName(name) && !hasScheme.MatchString(p.text) && (len(parts) == 1 || len(strings.TrimSpace(scheme.ReplaceAllString(p.text, ""))) >= 6) {
			out = append(out, r.hideNamed(kind, name, p.text)...)
			continue
		}
		out = append(out, r.hideInside(kind, name, p.text)...)
	}
	return out
}

// hideNamed replaces a whole text, except the scheme of an authorization.
func (r *serverParser) hideNamed(kind textKind, name, text string) []part {
	start := scheme.FindString(text)
	rest := text[len(start):]
	if !isPlausible(rest) {
		return []part{literal(text)}
	}
	variable := variableName(name)
	if kind == headerText {
		variable = r.headerVariable(name)
	}
	hidden := []part{reference(r.assignVariable(variable, rest, location(kind, name)))}
	if start != "" {
		hidden = append([]part{literal(start)}, hidden...)
	}
	return hidden
}

func (r *serverParser) headerVariable(name string) string {
	if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Proxy-Authorization") {
		return r.prefix + "_TOKEN"
	}
	return r.prefix + "_" + strings.TrimPrefix(variableName(name), "X_")
}

// span is a secret inside a text.
type span struct {
	from, to int
	variable string
	where    string
}

// hideInside replaces what looks like a secret: parts of URLs, or the whole text.
func (r *serverParser) hideInside(kind textKind, name, text string) []part {
	spans := r.urlSpans(kind, text)
	if len(spans) == 0 && secretValue(text) {
		variable := r.prefix + "_SECRET"
		switch {
		case kind == headerText:
			variable = r.headerVariable(name)
		case name != "":
			variable = variableName(name)
		}
		start := scheme.FindString(text)
		spans = []span{{len(start), len(text), variable, location(kind, name)}}
	}
	var out []part
	at := 0
	for _, s := range spans {
		if s.from < at {
			continue
		}
		if s.from > at {
			out = append(out, literal(text[at:s.from]))
		}
		out = append(out, reference(r.assignVariable(s.variable, text[s.from:s.to], s.where)))
		at = s.to
	}
	if at < len(text) {
		out = append(out, literal(text[at:]))
	}
	return out
}

func (r *serverParser) urlSpans(kind textKind, text string) []span {
	if kind != urlText && !strings.Contains(text, "://") {
		return nil
	}
	var spans []span
	for _, m := range userinfo.FindAllStringSubmatchIndex(text, -1) {
		spans = append(spans, span{m[4], m[5], r.prefix + "_PASSWORD", "the URL's password"})
	}
	for _, m := range userOnly.FindAllStringSubmatchIndex(text, -1) {
		spans = append(spans, span{m[4], m[5], r.prefix + "_URL_USER", "the URL's user"})
	}
	for _, m := range queryPair.FindAllStringSubmatchIndex(text, -1) {
		name, value := text[m[2]:m[3]], text[m[4]:m[5]]
		if secretName(name) && isPlausible(value) || secretValue(value) {
			spans = append(spans, span{m[4], m[5], r.prefix + "_" + variableName(name), "the URL's " + name})
		}
	}
	if start := strings.Index(text, "://"); start >= 0 {
		route := text[start+3:]
		if cut := strings.IndexAny(route, "?#"); cut >= 0 {
			route = route[:cut]
		}
		for _, m := range segment.FindAllStringSubmatchIndex(route, -1) {
			if secretValue(route[m[2]:m[3]]) || looksRandom(route[m[2]:m[3]]) {
				spans = append(spans, span{start + 3 + m[2], start + 3 + m[3], r.prefix + "_URL_KEY", "the URL's path"})
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	return spans
}

// args converts arguments. A value may follow its flag, be part of it, or be in a header.
func (r *serverParser) args(raw []string) []string {
	var out []string
	for i, arg := range raw {
		flag := ""
		if i > 0 && strings.HasPrefix(raw[i-1], "-") && !strings.Contains(raw[i-1], "=") && !strings.HasPrefix(arg, "-") {
			flag = strings.TrimLeft(raw[i-1], "-")
		}
		out = append(out, r.arg(flag, arg))
	}
	return out
}

func (r *serverParser) arg(flag, arg string) string {
	if m := assigned.FindStringSubmatch(arg); m != nil && !hasScheme.MatchString(arg) {
		name := strings.TrimLeft(m[1], "-")
		kind := plainText
		if secretName(name) {
			kind = argText
		}
		return m[1] + "=" + r.text(kind, r.argVariable(name, m[1] != name), m[2])
	}
	if m := headerArg.FindStringSubmatch(arg); m != nil && !hasScheme.MatchString(arg) && secretName(m[1]) {
		return arg[:len(arg)-len(m[2])] + r.text(headerText, m[1], m[2])
	}
	if secretName(flag) {
		return r.text(argText, r.argVariable(flag, true), arg)
	}
	return r.text(plainText, "", arg)
}

// argVariable returns the variable for an argument: for a flag one with the server's prefix.
func (r *serverParser) argVariable(name string, flag bool) string {
	if flag {
		return r.prefix + "_" + variableName(name)
	}
	return name
}

// LooksSecret reports whether a text, by its name or value, looks like a secret that
// should be a reference. It returns false for a text with a reference in it.
func LooksSecret(name, text string) bool {
	if strings.Contains(text, "${") {
		return false
	}
	rest := scheme.ReplaceAllString(text, "")
	return secretName(name) && !hasScheme.MatchString(text) && isPlausible(rest) || secretValue(rest) || userinfo.MatchString(text)
}
