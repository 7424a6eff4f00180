package jsontype

import "strings"

// The formats of strings, as JSON Schema names them.
const (
	dateTime = "date-time"
	date     = "date"
	clock    = "time"
	uri      = "uri"
	email    = "email"
	uuid     = "uuid"
)

func isFormat(name string) bool {
	switch name {
	case dateTime, date, clock, uri, email, uuid:
		return true
	}
	return false
}

// maxFormatted is the longest string that is examined, in bytes.
const maxFormatted = 2048

// formatOf returns the format that a string has, "" for none.
func formatOf(s string) string {
	if len(s) < 5 || len(s) > maxFormatted {
		return ""
	}
	if isDigit(rune(s[0])) {
		if format := timeFormat(s); format != "" {
			return format
		}
	}
	switch {
	case fits(s, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"):
		return uuid
	case isURI(s):
		return uri
	case isEmail(s):
		return email
	}
	return ""
}

// timeFormat recognizes dates and times, with optional zone and fractional seconds.
func timeFormat(s string) string {
	switch {
	case fits(s, "dddd-dd-dd"):
		return date
	case len(s) > 11 && fits(s[:10], "dddd-dd-dd") && (s[10] == 'T' || s[10] == 't' || s[10] == ' ') && isClock(s[11:]):
		return dateTime
	case isClock(s) && len(s) >= 8:
		return clock
	}
	return ""
}

func isClock(s string) bool {
	if len(s) < 5 || !fits(s[:5], "dd:dd") {
		return false
	}
	s = s[5:]
	if len(s) >= 3 && fits(s[:3], ":dd") {
		s = s[3:]
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		s = strings.TrimLeft(rest, "0123456789")
		if s == rest {
			return false
		}
	}
	switch {
	case s == "" || s == "Z" || s == "z":
		return true
	case s[0] == '+' || s[0] == '-':
		return fits(s[1:], "dd:dd") || fits(s[1:], "dddd")
	}
	return false
}

// fits matches s against a pattern: d is a digit, h a hexadecimal digit.
func fits(s, pattern string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		digit := c >= '0' && c <= '9'
		switch pattern[i] {
		case 'd':
			if !digit {
				return false
			}
		case 'h':
			if !digit && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		default:
			if c != pattern[i] {
				return false
			}
		}
	}
	return true
}

func isURI(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	return ok && scheme != "" && rest != "" && len(scheme) <= 20 && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") == "" &&
		!isDigit(rune(scheme[0])) && !strings.ContainsFunc(s, blank)
}

func isEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	return ok && local != "" && len(s) <= 254 && strings.Contains(strings.Trim(domain, "."), ".") && !strings.Contains(domain, "@") && !strings.ContainsFunc(s, blank)
}

func blank(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`"<>`, r) }
